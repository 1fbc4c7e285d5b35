import sys
import threading

sys.setrecursionlimit(2**31 - 1)
threading.stack_size(1 << 28)


class Link:
    def __init__(self, rest):
        self.rest = rest

    def __repr__(self):
        return repr(self.rest)


chain = None
for _ in range(5_000_000):
    chain = Link(chain)
print(repr(chain))
