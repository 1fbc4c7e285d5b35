"""What every measurement does alike: say where it ran, take turns, and print medians and ratios."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import distributions, version

PACKAGES = (
    "assay-rl-api",
    "assay-rl-kit",
    "grpcio",
    "math-verify",
    "protobuf",
    "sympy",
    "torch",
    "transformers",
    "trl",
)


def print_machine() -> None:
    """The date, the machine and the versions."""
    cores = len(os.sched_getaffinity(0))
    print(
        f"{time.strftime('%Y-%m-%d')}, {cores} cores, {platform.machine()}, {platform.platform()}"
    )
    there = {dist.name for dist in distributions()}  # an environment of its own may lack some
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES if name in there)
    print(f"Python {platform.python_version()}, {versions}")


_REPORTED_S = 2.0


def interleaved(
    contestants: Mapping[str, Callable[[], None]], rounds: int
) -> dict[str, list[float]]:
    """Seconds of each round of each contestant, who take turns: one machine, one run.

    Turns of over two seconds are reported on stderr as they end.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(1, rounds + 1):
        for name, go in contestants.items():
            started = time.perf_counter()
            go()
            seconds[name].append(time.perf_counter() - started)
            if seconds[name][-1] > _REPORTED_S:
                line = f"  round {number} of {rounds}: {name} {seconds[name][-1]:.1f} s"
                print(line, file=sys.stderr, flush=True)
    return seconds


def spread(values: list[float]) -> str:
    """Median, and the least and the greatest in brackets."""
    return f"{statistics.median(values):8.3f} [{min(values):.3f}, {max(values):.3f}]"
