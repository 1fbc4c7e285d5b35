def add(a, b):
    ring = []
    ring.append(ring)
    book = {1: ring}
    ring.append(book)
    return ring
