"""The sandbox against programs that speak its protocol at random.

    python -m bench sandbox-fuzz --minutes 60 --seed N     games until the time is up
    python -m bench sandbox-fuzz --seed N --case K          one of them again

A game is a program that takes its channel over (`bench.sandbox_puppet`) under one suite of tests,
drawn by the seed. It knows no expected value: each is a number of 60 bits, drawn beside it. What
must hold: no game passes, none is a fault, and the honest programs between them all pass. Anything
else is printed with the line that plays it again; the exit code is then 1. A seed draws the same
games on every machine; how far one gets depends a little on who answers first.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    TestResult,
    TestSuite,
)
from bench import sandbox_puppet

PUPPET: Final = Path(sandbox_puppet.__file__).read_text(encoding="utf-8")
BATCH: Final = 60
LIMITS: Final = Limits(wall_time_s=1.0)
HONEST: Final = "def f(*a, **k):\n    return {secret}\n"
_POINT: Final = "class P:\n    x = 1\n    def m(self, y):\n        return y\n    expected = 3\n"
_UNIT: Final = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        "
# {s} is what the program cannot know.
SUITES: Final[dict[str, str]] = {
    "asserts": "assert f(3) == {s}\nassert f([1, 2], a=3) == {s}",
    "near": "assert abs(f(3) - {s}) < 1e-6",
    "all": "assert all(f(i) == {s} for i in range(3))",
    "check": "def check(candidate):\n    for i in range(3):\n        assert candidate(i) == {s}\n",
    "helper": "def same(a, b):\n    return a == b\nassert same(f(3), {s}) and same({s}, f(4))",
    "unequal": "def g(x):\n    assert not (x != {s})\ng(f(3))",
    "formatted": "def g(x):\n    assert f'{{x}}' == '{s}'\ng(f(3))",
    "unittest": _UNIT + "self.assertEqual(f(3), {s})",
    "unittest many": _UNIT + "self.assertAlmostEqual(f(3), {s})\n        self.assertIn(f(3), [{s}])"
    "\n        self.assertTrue(f(3) == {s})\n        self.assertIsInstance(f(3), int)",
    "unittest import": "from solution import f\n" + _UNIT + "self.assertEqual(f(3), {s})",
    "pytest": "import pytest\ndef test_it():\n    assert f(3) == pytest.approx({s})",
    "raises": "import pytest\ndef test_it():\n    with pytest.raises(ValueError):\n        f(-1)\n"
    "    assert f(3) == {s}",
    "callback": "seen = []\ndef g(x=1, *a):\n    seen.append(x)\n    return x\n"
    "assert f(g, 3) == {s}",
    "object": _POINT + "p = P()\ndef g():\n    assert f(p, p.m, P) == {s}\ng()",
    "generator": "def numbers():\n    yield 1\n    yield 2\nassert f(numbers(), iter([1])) == {s}",
    "iterated": "got = []\nfor x in f(3):\n    got.append(x)\n    assert len(got) < 50\n"
    "assert got == [{s}]",
    "sorted": "def g(x):\n    return sorted(x)\nassert g(f(3)) == [{s}]",
    "attribute": "def g(x):\n    assert x.total == {s}\ng(f(3))",
    "called": "def g(x):\n    assert x(4) == {s}\ng(f(3))",
    "managed": "with f(3) as x:\n    pass\nassert x == {s}",
    "item": "def g(x):\n    assert x[0] == {s} and {s} in x\ng(f(3))",
    "mutated": "a = [3, [1], {{'k': 2}}]\nf(a, a)\nassert a == [{s}]",
    "class": "def g():\n    s = Stack(3)\n    s.push(4)\n    assert s.pop() == {s}\ng()",
    "caught": "try:\n    got = f(3)\nexcept Exception:\n    got = None\nassert got == {s}",
    "numpy": "import numpy as np\ndef g(x):\n    np.testing.assert_allclose(x, [{s}.0])\ng(f(3))",
    "numpy equal": "import numpy as np\nassert np.array_equal(f(np.arange(3)), np.array([{s}]))",
}
CALLS: Final = ("calls", "calls exact")


@dataclass(slots=True)
class Tally:
    """What the games came to."""

    verdicts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    games: int = 0


def suite_of(draw: random.Random) -> tuple[str, TestCase, int]:
    """A suite's name, its test, and the number that a right program returns."""
    secret = draw.getrandbits(60) | 1 << 59
    name = draw.choice((*SUITES, *CALLS))
    if name in SUITES:
        return (
            name,
            AssertTest(SUITES[name].format(s=secret), "f" if name == "check" else ""),
            secret,
        )
    return name, CallTest("f", (3, [1, 2]), secret), secret


def game(seed: int, number: int) -> TestJob:
    """One of a seed's games."""
    name, test, _ = suite_of(random.Random(f"{seed}/{number}"))
    source = f"{PUPPET}\n\nPlayer({f'{seed}/{number}'!r}).play()\n"
    return TestJob(Program("python", source), TestSuite((test,), LIMITS), id=f"{number} {name}")


def neighbour(number: int) -> TestJob:
    """An honest program."""
    name, secret = ("asserts", "helper", "unittest", "callback")[number % 4], 10**17 + number
    test = AssertTest(SUITES[name].format(s=secret))
    source = HONEST.format(secret=secret)
    return TestJob(Program("python", source), TestSuite((test,)), id=f"honest {number}")


def play(client: ExecutionClient, seed: int, numbers: Sequence[int], tally: Tally) -> None:
    """Plays some games, with honest programs between them and one after them."""
    jobs = [game(seed, number) for number in numbers]
    between = [neighbour(number) for number in numbers[:4]]
    results = client.run_tests([*jobs, *between])
    [after] = client.run_tests([neighbour(numbers[0])])
    for number, job, result in zip(numbers, jobs, results, strict=False):
        trouble = _trouble(result)
        tally.games += 1
        tally.verdicts[_word(result)] += 1
        if trouble:
            again = f"python -m bench sandbox-fuzz --seed {seed} --case {number}"
            tally.findings.append(f"game {job.id}: {trouble}; again: {again}")
    for result in (*results[len(jobs) :], after):
        if not (isinstance(result, TestReport) and result.all_passed):
            span = f"{numbers[0]} to {numbers[-1]}"
            tally.findings.append(f"an honest neighbour of {span}, seed {seed}: {_word(result)}")


def _trouble(result: TestResult) -> str:
    if isinstance(result, Fault):
        return f"FAULT {result.reason}: {result.message[:200]}"
    return "PASSED" if any(outcome.passed for outcome in result.outcomes) else ""


def _word(result: TestResult) -> str:
    return result.reason if isinstance(result, Fault) else result.outcomes[0].verdict


def fuzz(
    client: ExecutionClient,
    seed: int,
    seconds: float,
    tell: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Plays a seed's games in order until the time is up; `tell` is called after each batch."""
    tally = Tally()
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        play(client, seed, range(tally.games, tally.games + BATCH), tally)
        tell(tally)
    return tally


class _Progress:
    """Prints findings at once, and every half minute how far it is."""

    def __init__(self) -> None:
        self._began_s = self._told_s = time.monotonic()
        self._shown = 0

    def __call__(self, tally: Tally) -> None:
        for finding in tally.findings[self._shown :]:
            print(finding)
        self._shown = len(tally.findings)
        now_s = time.monotonic()
        if now_s - self._told_s > 30:
            self._told_s = now_s
            print(self.line(tally))

    def line(self, tally: Tally) -> str:
        """How far it is."""
        took_s = time.monotonic() - self._began_s
        verdicts = ", ".join(f"{name} {count}" for name, count in tally.verdicts.most_common())
        return (
            f"{took_s / 60:6.1f} min: {tally.games} games, {tally.games / took_s:.0f} a second, "
            f"{len(tally.findings)} findings; {verdicts}"
        )


def run(arguments: Sequence[str]) -> None:
    """`python -m bench sandbox-fuzz`."""
    parser = argparse.ArgumentParser(description="Programs that speak the protocol at random.")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="play this game alone, and tell what came of it")
    parser.add_argument("--slots", type=int, default=2)
    chosen = parser.parse_args(arguments)
    flags = ("--slots", str(chosen.slots), "--languages", "python", "--log-level", "ERROR")
    with (
        EmbeddedServices(("sandbox",), arguments={"sandbox": flags}) as services,
        ExecutionClient(services.address_of("sandbox"), timeout_s=300.0) as client,
    ):
        if chosen.case is not None:
            job = game(chosen.seed, chosen.case)
            print(f"game {job.id}\n{client.run_tests([job])[0]}")
            return
        progress = _Progress()
        tally = fuzz(client, chosen.seed, chosen.minutes * 60, progress)
        print(progress.line(tally))
    if tally.findings:
        sys.exit(1)
