"""`python -m bench [NAME ...]`: runs the named measurements, or all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench import judge_injection, judge_miniatures, judge_speed, math_reward, sandbox, wire
from bench.common import print_machine

BENCHES: dict[str, Callable[[], None]] = {
    "wire": wire.run,
    "math": math_reward.run,
    "sandbox": sandbox.run,
    "judge-speed": judge_speed.run,
    "judge-injection": judge_injection.run,
    "judge-miniatures": judge_miniatures.run,
}


def main(names: list[str]) -> int:
    """Runs the measurements; 2 for an unknown name."""
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"bench: no measurement is called {unknown[0]!r}; known: {', '.join(BENCHES)}")
        return 2
    print_machine()
    for name in names or BENCHES:
        BENCHES[name]()
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a pipe is text too
    sys.exit(main(sys.argv[1:]))
