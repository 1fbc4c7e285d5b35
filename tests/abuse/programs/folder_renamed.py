import os

here = os.path.realpath(".")
parent = os.path.dirname(here)
os.chdir("/")
for act in (
    lambda: os.rename(here, parent + "/elsewhere"),
    lambda: os.rename(here, "/tmp/elsewhere"),
    lambda: os.rmdir(here),
    lambda: os.symlink("/etc", here),
    lambda: os.rename(os.path.realpath("/tmp"), parent + "/tmp2"),
    lambda: os.chmod(parent, 0),
):
    try:
        act()
        print("done")
    except OSError as error:
        print(error)
