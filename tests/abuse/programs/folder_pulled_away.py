import os

here = os.getcwd()
os.makedirs("in/ner", exist_ok=True)
os.chmod("in/ner", 0)
os.chmod("in", 0)
for act in (
    lambda: os.chmod(here, 0),
    lambda: os.rename(here, here + "2"),
    lambda: os.rmdir(here),
    lambda: os.unlink(here),
    lambda: os.symlink("/etc", here + "/" + "x" * 255),
    lambda: os.mkdir("\n\x1b[2J\udcff"),
):
    try:
        act()
    except OSError as error:
        print(error)
