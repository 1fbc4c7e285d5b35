import itertools


class Endless:
    def __iter__(self):
        return itertools.count()

    def __len__(self):
        return 2**62


def add(a, b):
    return Endless()
