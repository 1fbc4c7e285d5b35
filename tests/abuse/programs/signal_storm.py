import os
import signal
import time

hits = [0]
signal.signal(signal.SIGALRM, lambda *_: hits.__setitem__(0, hits[0] + 1))
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
children = []
for _ in range(8):
    try:
        child = os.fork()
    except OSError:
        break
    if child == 0:
        parent = os.getppid()
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            os.kill(parent, signal.SIGALRM)
    children.append(child)
ends = time.monotonic() + 60
while time.monotonic() < ends:
    pass
