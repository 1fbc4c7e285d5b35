import os

held = []
try:
    while len(held) < 2_000_000:
        held.append(os.open("/dev/null", os.O_RDONLY))
    print("ESCAPED two million descriptors")
except OSError as error:
    print(len(held), error)
os.execv("/bin/sh", ["sh", "-c", "echo still; exit 3"])
