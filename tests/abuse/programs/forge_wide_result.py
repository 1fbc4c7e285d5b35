def add(a, b):
    return [[]] * 30_000_000
