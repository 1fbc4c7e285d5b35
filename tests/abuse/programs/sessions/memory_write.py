# writes into the memory of every other process
# control: wrote
for pid in others():
    def write():
        with open(f"/proc/{pid}/mem", "r+b", 0) as memory, open(f"/proc/{pid}/maps") as maps:
            for line in maps:
                low, high = (int(x, 16) for x in line.split()[0].split("-"))
                if "rw" not in line.split()[1] or high > 1 << 47 or high - low > 1 << 26:
                    continue
                memory.seek(low)
                for found in re.finditer(b"SPOT-[a-z0-9-]{8,60}", memory.read(high - low)):
                    memory.seek(low + found.start())
                    memory.write(b"FORGED-")
                    escaped("wrote", pid)
    attempt("mem", write)
print("TRIED")
