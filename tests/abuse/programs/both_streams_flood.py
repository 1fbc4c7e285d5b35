import os
import threading
import time


def flood(descriptor):
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        os.write(descriptor, b"x" * 65536)


threading.Thread(target=flood, args=(2,), daemon=True).start()
flood(1)
