"""An adversary on one of two slots against honest callers.

    python -m bench sandbox-adversary --rounds 5 --seconds 4

One caller sends an expensive program after the other; an honest one sends batches of HumanEval-like
programs with their tests. For each trick the honest programs a second are measured alone and beside
the adversary, by turns, on the same service. The claim: an adversary on one of two slots takes at
most half of the throughput of the honest. With more callers than slots the queue is shared by who
asks, and what one of them costs is bounded by the time limit of a job and by its slot.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from assay.clients import EmbeddedServices
from assay.clients.execution import (
    AssertTest,
    CallTest,
    ExecutionClient,
    Fault,
    Limits,
    Program,
    TestCase,
    TestJob,
    TestReport,
    TestSuite,
)
from bench import sandbox_puppet
from bench.common import spread

BATCH: Final = 16
LIMITS: Final = Limits(wall_time_s=4.0)
CLAIM: Final = 0.5
_PUPPET: Final = Path(sandbox_puppet.__file__).read_text(encoding="utf-8")
_LONG: Final = """
import random
def long(seed):
    return {"i": format(random.Random(seed).getrandbits(3_999_999), "x")}
"""
_SETS: Final = '{"s": [{"i": format((2 ** 61 - 1) * n, "x")} for n in range(1, 990)]}'
_FORKS: Final = """
import os
def f(*a):
    while True:
        try:
            os.fork()
        except OSError:
            pass
"""
_THREADS: Final = """
import threading, time
def f(*a):
    while True:
        try:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        except RuntimeError:
            pass
"""
_FLOOD: Final = """
import sys
def f(*a):
    while True:
        sys.stdout.write("x" * 1_000_000)
"""
_SLOW_REPR: Final = """
import time
class L:
    def __repr__(self):
        time.sleep(60)
    __str__ = __len__ = __bool__ = __iter__ = __repr__
def f(*a):
    return L()
"""


def _saying(value: str) -> str:
    return (
        f"{_PUPPET}\n{_LONG}\nVALUE = {value}\ndef serve(tag, request):\n"
        "    returned(tag, request, VALUE)\ntake_over(serve)\n"
    )


TRICKS: Final = {
    "Fraction": _saying('{"F": [long(1), long(2)]}'),
    "four Fractions": _saying('[{"F": [long(n), long(n + 4)]} for n in range(4)]'),
    "nested lists": _saying("[[[1]]] * 5_000_000"),
    "deep lists": _saying('[json.loads("[" * 90 + "]" * 90)] * 200_000'),
    "colliding sets": _saying(f"[{_SETS}] * 1_000"),
    "references": _saying('[mine(n, "instance", "__len__") for n in range(600_000)]'),
    "slow repr": _SLOW_REPR,
    "output flood": _FLOOD,
    "fork bomb": _FORKS,
    "thread bomb": _THREADS,
    "endless loop": "def f(*a):\n    while True:\n        pass\n",
}
_UNIT: Final = (
    "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n"
    "        self.assertEqual(f(3), 834729105)\n"
)
TESTS: Final[tuple[TestCase, ...]] = (
    AssertTest("assert f(3) == 834729105"),
    AssertTest(_UNIT),
    CallTest("f", (3,), 834_729_105),
)
HONEST: Final = "def f(x):\n    return sorted([x, 834729105])[1]\n"


class Callers:
    """The honest caller, and the adversary while `trick` is a name."""

    def __init__(self, honest: ExecutionClient, adversary: ExecutionClient) -> None:
        self._honest = honest
        self._adversary = adversary
        self.faults: list[str] = []

    def rate(self, seconds: float, trick: str = "") -> float:
        """Honest programs a second, beside an adversary where a trick is named."""
        over = threading.Event()
        thread = threading.Thread(target=self._attack, args=(trick, over))
        if trick:
            thread.start()
            time.sleep(0.5)  # it has its slot
        began_s, done = time.monotonic(), 0
        while time.monotonic() - began_s < seconds:
            self._send()
            done += BATCH
        took_s = time.monotonic() - began_s
        over.set()
        if trick:
            thread.join()
        return done / took_s

    def _send(self) -> None:
        jobs = [
            TestJob(Program("python", HONEST), TestSuite((TESTS[n % len(TESTS)],)))
            for n in range(BATCH)
        ]
        for result in self._honest.run_tests(jobs):
            if not (isinstance(result, TestReport) and result.all_passed):
                raise RuntimeError(f"an honest program did not pass: {result}")

    def _attack(self, trick: str, over: threading.Event) -> None:
        number = 0
        while not over.is_set():
            test = TESTS[number % len(TESTS)]
            job = TestJob(Program("python", TRICKS[trick]), TestSuite((test,), LIMITS))
            [result] = self._adversary.run_tests([job])
            if isinstance(result, Fault):
                self.faults.append(f"{trick}: {result.reason}: {result.message[:100]}")
            elif result.all_passed:
                self.faults.append(f"{trick}: PASSED")
            number += 1


def run(arguments: Sequence[str]) -> None:
    """`python -m bench sandbox-adversary`."""
    parser = argparse.ArgumentParser(description="An adversary on one of two slots.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each turn")
    parser.add_argument("--tricks", default=",".join(TRICKS), help="which, with commas")
    chosen = parser.parse_args(arguments)
    tricks = chosen.tricks.split(",")
    if unknown := [trick for trick in tricks if trick not in TRICKS]:
        parser.error(f"no trick is called {unknown[0]!r}; known: {', '.join(TRICKS)}")
    flags = ("--slots", "2", "--languages", "python", "--log-level", "ERROR")
    with ExitStack() as stack:
        services = stack.enter_context(EmbeddedServices(("sandbox",), arguments={"sandbox": flags}))
        target = services.address_of("sandbox")
        made = [stack.enter_context(ExecutionClient(target, timeout_s=600.0)) for _ in range(2)]
        callers = Callers(made[0], made[1])
        callers.rate(1.0)
        print(f"honest programs a second, 2 slots, batches of {BATCH}, {chosen.rounds} rounds")
        print(f"{'':16s} {'alone':>28s} {'beside it':>28s}   share")
        for trick in tricks:
            _measure(callers, trick, chosen.rounds, chosen.seconds)
        for fault in sorted(set(callers.faults)):
            print(f"no verdict that should be: {fault}")


def _measure(callers: Callers, trick: str, rounds: int, seconds: float) -> None:
    """One line: alone and beside the adversary, by turns."""
    alone, beside = [], []
    for _ in range(rounds):
        alone.append(callers.rate(seconds))
        beside.append(callers.rate(seconds, trick))
    share = statistics.median(b / a for a, b in zip(alone, beside, strict=True))
    told = "holds" if share >= CLAIM else "DOES NOT HOLD"
    print(f"{trick:16s} {spread(alone):>28s} {spread(beside):>28s}   {share:.2f}  {told}")
