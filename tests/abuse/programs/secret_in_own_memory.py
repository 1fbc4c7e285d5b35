import re

SIGN = re.compile(rb"SBX_CANARY[=]SBX_CANARY[_]VALUE")  # does not match itself
try:
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            low, high = (int(part, 16) for part in span.split("-"))
            if not rights.startswith("r") or low >= 1 << 47:
                continue
            for start in range(low, high, 1 << 22):
                try:
                    memory.seek(start)
                    data = memory.read(min(high - start, 1 << 22))
                except (OSError, ValueError):
                    break
                if SIGN.search(data):
                    print("ESC" + "APED the service's environment is in this memory")
except OSError as error:
    print(error)
try:
    with open("/proc/self/environ", "rb") as environ:
        if SIGN.search(environ.read()):
            print("ESC" + "APED /proc/self/environ")
except OSError as error:
    print(error)
