import mmap
import os

for size in (1 << 40, 1 << 50, 1 << 62):
    try:
        descriptor = os.open("giant", os.O_CREAT | os.O_RDWR)
        os.ftruncate(descriptor, size)
        print("truncated to", size)
        block = mmap.mmap(descriptor, min(size, 1 << 42))
        for at in range(0, 1 << 36, 1 << 21):
            block[at] = 1
        print("ESCAPED wrote 32 GiB worth of pages")
    except (OSError, ValueError, MemoryError) as error:
        print(error)
