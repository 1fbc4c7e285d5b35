import os
import sys

for path in (sys.executable, "/proc/self/exe", "/proc/1/exe", f"/proc/{os.getppid()}/exe", os.__file__, "/bin/sh", "/lib64/ld-linux-x86-64.so.2"):
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
        try:
            os.close(os.open(path, flags))
            print("ESCAPED opened for writing", path)
        except OSError:
            pass
for number in range(64):
    for path in (f"/proc/1/fd/{number}", f"/proc/{os.getppid()}/fd/{number}", f"/proc/self/fd/{number}/../../../../etc/shadow"):
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            print("ESCAPED opened", path)
        except OSError:
            pass
