import os
import time

made = 0
ends = time.monotonic() + 30
while made < 20_000 and time.monotonic() < ends:
    try:
        if os.fork() == 0:
            os._exit(0)
        made += 1
    except OSError:
        break
print(made)
