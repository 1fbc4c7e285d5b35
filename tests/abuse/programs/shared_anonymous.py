import mmap

held = []
for _ in range(256):
    block = mmap.mmap(-1, 64 << 20)
    for at in range(0, 64 << 20, 4096):
        block[at] = 1
    held.append(block)
print("held", len(held) * 64, "MiB")
