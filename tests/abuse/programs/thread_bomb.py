import threading
import time

made = 0
try:
    while made < 50_000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        made += 1
except (RuntimeError, MemoryError) as error:
    print(made, type(error).__name__)
