import os
import time

ends = time.monotonic() + 60
while time.monotonic() < ends:
    if os.fork() == 0:
        spin = time.process_time() + 0.3
        while time.process_time() < spin:
            pass
        os._exit(0)
    os.wait()
