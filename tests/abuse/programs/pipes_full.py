import fcntl
import os

held = []
try:
    while len(held) < 100_000:
        ends = os.pipe()
        held.append(ends)
        try:
            fcntl.fcntl(ends[1], 1031, 1 << 20)
        except OSError:
            pass
        os.set_blocking(ends[1], False)
        try:
            while True:
                os.write(ends[1], b"x" * 65536)
        except BlockingIOError:
            pass
except OSError as error:
    print(len(held), error)
