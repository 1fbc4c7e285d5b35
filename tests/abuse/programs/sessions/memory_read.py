# reads the memory of every other process by /proc/PID/mem
# control: read
for pid in others():
    for name in (f"/proc/{pid}/mem", f"/proc/{pid}/task/{pid}/mem"):
        def read():
            with open(name, "rb", 0) as memory, open(f"/proc/{pid}/maps") as maps:
                for line in maps:
                    low, high = (int(x, 16) for x in line.split()[0].split("-"))
                    if "r" not in line.split()[1] or high > 1 << 47 or high - low > 1 << 26:
                        continue
                    memory.seek(low)
                    found = re.search(b"SPOT-[a-z0-9-]{8,60}", memory.read(high - low))
                    if found:
                        escaped("read", pid, found[0].decode())
                        return
        attempt("mem", read)
        if attempt("open", lambda: os.close(os.open(name, os.O_RDONLY)) or True):
            escaped("opened", name)
print("TRIED")
