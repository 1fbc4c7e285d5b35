"""A program that somebody kills from outside runs once more; to kill itself gains it nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from assay.sandbox.box import Box, Running
from assay.sandbox.domain import ENDED_BY_US, BoxFile, EndKind, RunMode, RunRecord, RunRequest
from assay.sandbox.jail import detect
from assay.sandbox.jail.monitor import descendants
from assay.sandbox.jail.run import JailRunning
from assay.sandbox.judging.model import AssertCase, CallCase, StdioCase, TestCase, TestVerdict
from assay.sandbox.judging.verdicts import killed_from_outside
from sandbox_support import JailedBoxes, judge_python

pytestmark = pytest.mark.skipif(not detect().reaches("namespaces"), reason="needs namespaces")

KILLED = RunRecord(EndKind.SIGNALLED, signal=signal.SIGKILL)
SLOW = "import time\ntime.sleep(0.3)\nprint(int(input()) + 1)\n"
NOT_BY_THEN = SLOW.replace("0.3", "20")
SLOW_TO_LOAD = "import time\ntime.sleep(0.3)\ndef inc(n):\n    return n + 1\n"
SLOW_TO_ANSWER = "import time\ndef inc(n):\n    time.sleep(0.1)\n    return n + 1\n"
KILLS_ITSELF = "import os\nos.kill(os.getpid(), 9)\n"
KILLS_ITSELF_WHEN_CALLED = f"def inc(n):\n    {KILLS_ITSELF.replace(chr(10), chr(10) + '    ')}\n"
CALLS = tuple(CallCase(f"t{n}", "inc", (n,), n + 1) for n in range(4))
ASSERTS = AssertCase("a", "assert inc(1) == 2\n")
UNFOLDED = AssertCase(
    "u", "import math\nfor n in range(3):\n    assert math.floor(inc(n)) == n + 1\n"
)


class KilledBox:
    """A box whose programs are killed a moment after their start, as often as is said."""

    level = "namespaces"

    def __init__(self, box: Box, times: int, after_s: float) -> None:
        self._box = box
        self._times = times
        self._after_s = after_s
        self.starts = 0

    def start(self, request: RunRequest) -> Running:
        running = self._box.start(request)
        self.starts += 1
        if self.starts <= self._times:
            zygote = cast("JailRunning", running)._link.pid
            threading.Timer(self._after_s, self._kill, (zygote,)).start()
        return running

    @staticmethod
    def _kill(zygote: int) -> None:
        os.kill(descendants(zygote)[0], signal.SIGKILL)

    def close(self) -> None:
        self._box.close()


class KilledBoxes(JailedBoxes):
    """The boxes of a slot whose candidates somebody kills."""

    killed: KilledBox

    def kill(self, times: int, after_s: float = 0.15) -> None:
        self.killed = KilledBox(super().candidate(), times, after_s)

    def candidate(self, source: str = "") -> Box:
        return self.killed


@pytest.fixture(scope="module")
def boxes() -> Iterator[KilledBoxes]:
    made = KilledBoxes()
    yield made
    made.close()


def stdio(number: int = 1) -> StdioCase:
    return StdioCase("s", f"{number}\n".encode(), f"{number + 1}\n".encode())


@pytest.mark.parametrize(
    ("source", "tests"),
    [
        (SLOW, (stdio(1), stdio(2))),
        (SLOW_TO_LOAD, CALLS),
        (SLOW_TO_ANSWER, CALLS),
        (SLOW_TO_LOAD, (ASSERTS,)),
        (SLOW_TO_LOAD, (UNFOLDED,)),
        (SLOW_TO_LOAD, (*CALLS, ASSERTS, *CALLS)),
    ],
)
@pytest.mark.parametrize("stop", [False, True])
def test_a_right_program_that_is_killed_passes(
    boxes: KilledBoxes, source: str, tests: tuple[TestCase, ...], stop: bool
) -> None:
    boxes.kill(1)
    outcomes = judge_python(boxes, source, *tests, stop_at_first_failure=stop)
    assert [outcome.verdict for outcome in outcomes] == [TestVerdict.PASSED] * len(tests)
    # What was used is told of the run that was judged.
    assert all(made.record is not None and made.record.ok for made in outcomes[-1:])


def test_once_more_and_no_more(boxes: KilledBoxes) -> None:
    boxes.kill(2)
    [outcome] = judge_python(boxes, NOT_BY_THEN, stdio())
    assert outcome.verdict is TestVerdict.RUNTIME_ERROR
    assert boxes.killed.starts == 2


def test_a_program_that_kills_itself_has_failed(boxes: KilledBoxes) -> None:
    boxes.kill(0)
    outcomes = judge_python(boxes, KILLS_ITSELF, stdio(1), stdio(2))
    assert [outcome.verdict for outcome in outcomes] == [TestVerdict.RUNTIME_ERROR] * 2
    assert boxes.killed.starts == 4


@pytest.mark.parametrize("source", [KILLS_ITSELF, KILLS_ITSELF_WHEN_CALLED])
def test_it_gains_at_most_its_limits_a_second_time(boxes: KilledBoxes, source: str) -> None:
    boxes.kill(0)
    tests = [CallCase(f"t{n}", "inc", (n,), n + 1) for n in range(20)]
    outcomes = judge_python(boxes, source, *tests)
    assert [outcome.verdict for outcome in outcomes] == [TestVerdict.RUNTIME_ERROR] * 20
    assert boxes.killed.starts <= 40


def test_the_rest_goes_on_after_a_kill(boxes: KilledBoxes) -> None:
    """A call that fails for a reason of its own stays failed, before and after the kill."""
    source = "import time\ndef inc(n):\n    time.sleep(0.1)\n    return n + (n != 2)\n"
    boxes.kill(1)
    outcomes = judge_python(boxes, source, *CALLS)
    expected = [TestVerdict.PASSED] * 4
    expected[2] = TestVerdict.WRONG_ANSWER
    assert [outcome.verdict for outcome in outcomes] == expected
    boxes.kill(1)
    stopped = judge_python(boxes, source, *CALLS, stop_at_first_failure=True)
    assert [outcome.verdict for outcome in stopped] == [*expected[:3], TestVerdict.NOT_RUN]


def test_which_ends_are_of_somebody_elses_making() -> None:
    assert killed_from_outside(KILLED)
    for record in (
        replace(KILLED, detail=ENDED_BY_US),
        replace(KILLED, signal=signal.SIGSEGV),
        replace(KILLED, end=EndKind.MEMORY_LIMIT),
        replace(KILLED, end=EndKind.CPU_TIME_LIMIT),
        RunRecord(EndKind.EXITED, exit_code=137),
    ):
        assert not killed_from_outside(record)


def test_a_kill_of_ours_is_told_from_another_s(boxes: KilledBoxes) -> None:
    boxes.kill(0)
    program = BoxFile("main.py", b"import time; time.sleep(60)")
    running = boxes.candidate().start(RunRequest(RunMode.PYTHON, ("main.py",), (program,)))
    boxes.pump.add(running)
    running.kill()
    record = boxes.pump.finish(running)
    assert (record.signal, record.detail) == (signal.SIGKILL, ENDED_BY_US)
