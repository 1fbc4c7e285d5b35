"""The budget of judging: what is small is done at once, what overruns costs its own test."""

from __future__ import annotations

import os
import signal
import time

import pytest

from assay.sandbox.box import Pump
from assay.sandbox.domain import SandboxFault
from assay.sandbox.judging import budget
from assay.sandbox.judging.budget import INLINE_BYTES, Budget, Overrun, Unjudged

LARGE = INLINE_BYTES + 1


def test_what_is_small_is_done_here_and_what_is_large_in_a_fork() -> None:
    judging = Budget(Pump())
    assert judging.run(os.getpid, 10) == os.getpid()
    assert judging.run(os.getpid, LARGE) != os.getpid()
    assert judging.run(lambda: ("wrong", "expected 1", False), LARGE) == (
        "wrong",
        "expected 1",
        False,
    )


def test_much_that_is_small_is_not_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "INLINE_S", 1e-9)
    judging = Budget(Pump())
    assert judging.run(os.getpid, 10) == os.getpid()
    assert judging.run(os.getpid, 10) != os.getpid()


def spin() -> None:
    while True:
        pass


def hoard() -> None:
    kept = []
    while True:
        kept.append(bytearray(2**26))


@pytest.mark.parametrize("judge", [spin, hoard])
def test_an_overrun_is_told_and_nothing_large_follows_it(
    judge: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "CPU_S", 1)
    judging = Budget(Pump())
    with pytest.raises(Overrun):
        judging.run(judge, LARGE)  # type: ignore[arg-type]
    with pytest.raises(Overrun, match="earlier"):
        judging.run(os.getpid, LARGE)
    assert judging.run(os.getpid, 10) == os.getpid()


@pytest.mark.parametrize("size", [10, LARGE])
def test_a_defect_met_by_an_answer_is_no_fault(size: int) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a defect")

    with pytest.raises(Unjudged, match="could not be compared"):
        Budget(Pump()).run(broken, size)


def test_the_supervisor_goes_on_while_a_fork_judges() -> None:
    pump = Pump()
    reader, writer = os.pipe()
    seen: list[bytes] = []
    pump.watch(reader, lambda: seen.append(os.read(reader, 1)))
    os.write(writer, b"x")
    assert Budget(pump).run(lambda: time.sleep(0.3), LARGE) is None
    assert seen == [b"x"]
    os.close(reader)
    os.close(writer)


class Gone(BaseException):
    pass


def test_a_job_that_is_given_up_takes_its_fork_with_it() -> None:
    pump = Pump()
    reader, writer = os.pipe()
    report, told = os.pipe()

    def give_up() -> None:
        raise Gone

    def judge() -> None:
        os.write(told, str(os.getpid()).encode())
        os.write(writer, b"x")
        spin()

    pump.watch(reader, give_up)
    with pytest.raises(Gone):
        Budget(pump).run(judge, LARGE)
    with pytest.raises(ProcessLookupError):
        os.kill(int(os.read(report, 20)), 0)
    for descriptor in (reader, writer, report, told):
        os.close(descriptor)


def test_a_fork_that_somebody_kills_is_made_once_more_and_then_a_fault() -> None:
    with pytest.raises(SandboxFault, match="was killed"):
        Budget(Pump()).run(lambda: os.kill(os.getpid(), signal.SIGKILL), LARGE)
