import os

while True:
    os.lseek(0, 0, os.SEEK_SET)
    os.write(1, os.read(0, 65536) or b"end\n")
