import time


def add(a, b):
    time.sleep(1.5)
    return a + b
