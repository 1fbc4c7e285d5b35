def add(a, b):
    nest = []
    for _ in range(200_000):
        nest = [nest]
    return nest
