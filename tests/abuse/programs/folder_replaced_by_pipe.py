import os
import shutil

here = os.path.realpath(".")
os.chdir("/")
try:
    shutil.rmtree(here, ignore_errors=True)
    os.mkfifo(here)
except OSError as error:
    print(error)
