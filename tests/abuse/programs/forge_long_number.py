def add(a, b):
    return (1 << 4_000_000) - 1
