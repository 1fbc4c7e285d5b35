def add(a, b):
    return {
        float("nan"): "\ud800",
        float("inf"): {frozenset({float("nan"), -0.0})},
        b"\xff": (1, [2, {3: bytearray(b"4")}]),
        (1, (2,)): complex(1, 2),
        True: 1,
        2**70: -(2**70),
    }
