r"""`grade` under attack: answers that never end, workers that hang and die, forks and threads.

The processes are real, and so is what is done to them. That a call comes back at all is held by the
tests' own time-out.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from assay.math import AskFailedError, Fault, Judgement, Policy, grade, grade_batch, prepare
from assay.math.pool import POOL
from faults.test_math_hostile import ANSWERS, PAYLOADS, RESPONSES

SUM, CLOSED = r"\boxed{\sum_{k=1}^{n} k^3}", r"\frac{n^2(n+1)^2}{4}"  # for the symbolic tier
# sympy works on it for seconds and then gives up; nothing about it is large.
ENDLESS = r"\boxed{\int_{-\infty}^{\infty}e^{-x^2}\,dx}"
LONG_S = 60.0


@pytest.fixture(autouse=True)
def fresh_pool() -> Iterator[None]:
    POOL.close()
    yield
    POOL.close()


def worker_pids() -> list[int]:
    """Processes of the pool's workers that live."""
    return [worker._process.pid for worker in POOL._all if worker.alive]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def gone(pid: int) -> bool:
    """Waits until a process has ended."""
    for _ in range(600):
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False


def right(timeout_s: float = LONG_S) -> bool:
    said = grade(SUM, CLOSED, timeout_s=timeout_s)
    assert isinstance(said, Judgement), said
    return said.correct and said.tier == "symbolic"


# --- The bound ------------------------------------------------------------------------------------


def test_what_sympy_never_ends_is_a_fault_and_the_next_answer_is_judged() -> None:
    prepare()
    (first,) = worker_pids()
    said = grade(ENDLESS, r"\sqrt{\pi}", timeout_s=0.3)
    assert said == Fault(
        "ITEM_TIMEOUT", "the symbolic tier did not finish before the time was over"
    )
    assert gone(first)
    assert right()


def test_a_worker_that_hangs_in_c_is_killed() -> None:
    """A stopped process answers to nothing but SIGKILL, as one that computes in C does."""
    prepare()
    (pid,) = worker_pids()
    os.kill(pid, signal.SIGSTOP)
    said = grade(SUM, CLOSED, timeout_s=0.3)
    assert isinstance(said, Fault)
    assert said.reason == "ITEM_TIMEOUT"
    assert gone(pid)
    assert right()


def test_a_worker_that_is_still_starting_is_kept() -> None:
    said = grade(SUM, CLOSED, timeout_s=0.001)
    assert said == Fault("ITEM_TIMEOUT", "the symbolic tier did not start before the time was over")
    (pid,) = worker_pids()
    assert right()
    assert worker_pids() == [pid]


def test_one_worker_serves_one_answer_after_another() -> None:
    assert right()
    pids = worker_pids()
    assert right()
    assert worker_pids() == pids
    assert len(pids) == 1


@pytest.mark.parametrize("turn", range(4))
def test_hostile_answers_have_an_outcome(turn: int) -> None:
    """All of the service's hostile answers, as answer and as reference, under a small bound."""
    prepare()
    rows = [
        row
        for answer in list(ANSWERS.values())[turn::4]
        for row in ((f"\\boxed{{{answer}}}", "40320.5"), ("\\boxed{x+4}", answer))
    ]
    rows += [(response, "40320.5") for response in list(RESPONSES.values())[turn::4]]
    said = grade_batch([a for a, _ in rows], [b for _, b in rows], timeout_s=0.5, workers=2)
    assert len(said) == len(rows)
    reasons = {one.reason for one in said if isinstance(one, Fault)}
    assert reasons <= {"ITEM_TIMEOUT", "UNUSABLE_REFERENCE"}
    assert not any(one.correct for one in said if isinstance(one, Judgement))


def test_no_answer_is_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        (f"\\boxed{{{payload}}}", reference)
        for payload in PAYLOADS.values()
        for reference in ("3\\pi", "x+1", CLOSED, f"{CLOSED} + {payload}")
    ]
    rows += [("\\boxed{\\sum_{k=1}^n k}", payload) for payload in PAYLOADS.values()]
    said = grade_batch([a for a, _ in rows], [b for _, b in rows], timeout_s=LONG_S)
    assert not any(isinstance(one, Judgement) and one.correct for one in said)
    assert list(tmp_path.iterdir()) == []


# --- Death of a worker ----------------------------------------------------------------------------


def test_a_worker_that_dies_while_idle_is_not_missed() -> None:
    assert right()
    (pid,) = worker_pids()
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    assert right()


def test_a_worker_that_dies_at_an_answer_is_a_fault_of_that_answer() -> None:
    prepare()
    (pid,) = worker_pids()
    os.kill(pid, signal.SIGSTOP)  # so that it is sure to be killed at the answer
    threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
    said = grade(SUM, CLOSED, timeout_s=LONG_S)
    assert isinstance(said, Fault)
    assert said.reason == "WORKER_DIED"
    assert right()


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    said = grade(SUM, CLOSED)
    assert isinstance(said, Fault)
    assert said.reason == "WORKER_DIED"
    assert "/nowhere/python" in said.message
    assert grade(SUM, CLOSED, slow_tier=False).reward == 0.0
    with pytest.raises(AskFailedError, match="/nowhere/python"):
        prepare()


def test_a_worker_without_sympy_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sympy.py").write_text("raise ImportError('no sympy here')")
    monkeypatch.syspath_prepend(tmp_path)
    said = grade(SUM, CLOSED, timeout_s=LONG_S)
    assert isinstance(said, Fault)
    assert said.reason == "VERIFIER_FAILED"
    assert "no sympy here" in said.message


def cpu_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def test_the_kernel_ends_a_worker_whose_caller_cannot() -> None:
    """It was asked, and nobody is there to kill it: an alarm without a handler does."""
    prepare()
    [worker] = POOL._all
    process, policy = worker._process, asdict(Policy())
    before = cpu_ticks(process.pid)
    asked = {"reference": r"\sqrt{\pi}", "answer": ENDLESS[7:-1], "policy": policy, "time_s": 0.0}
    worker._socket.sendall(json.dumps(asked).encode() + b"\n")
    while cpu_ticks(process.pid) < before + 10:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGSTOP)  # the clock of the alarm runs on
    time.sleep(1.5)
    os.kill(process.pid, signal.SIGCONT)
    assert process.wait() == -signal.SIGALRM
    assert right()


def test_a_worker_outlives_nobody() -> None:
    code = """
    import time
    from assay.math import prepare
    from assay.math.pool import POOL
    prepare()
    [worker] = POOL._all
    print(worker._process.pid, flush=True)
    time.sleep(600)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    ) as caller:
        assert caller.stdout is not None
        pid = int(caller.stdout.readline())
        assert alive(pid)
        caller.kill()
    assert gone(pid)


def test_the_memory_of_a_worker_is_limited() -> None:
    prepare()
    (pid,) = worker_pids()
    limits = Path(f"/proc/{pid}/limits").read_text()
    (space,) = [line for line in limits.splitlines() if line.startswith("Max address space")]
    assert int(space.split()[3]) <= 2 << 30


# --- Threads and forks ----------------------------------------------------------------------------


def test_threads_share_one_worker() -> None:
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda _: right(), range(24)))
    assert len(worker_pids()) == 1


def test_a_thread_that_waits_too_long_gets_a_fault() -> None:
    prepare()
    (pid,) = worker_pids()
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(grade, SUM, CLOSED, timeout_s=LONG_S)
        while POOL._idle:
            time.sleep(0.01)
        second = grade(SUM, CLOSED, timeout_s=0.1)
        os.kill(pid, signal.SIGCONT)
    assert second == Fault(
        "ITEM_TIMEOUT", "every worker of the symbolic tier was busy all the time"
    )
    assert first.result().correct


def _in_child(results: multiprocessing.SimpleQueue[object]) -> None:
    theirs = worker_pids()
    results.put((theirs, right(), worker_pids()))


def test_a_forked_child_has_a_worker_of_its_own() -> None:
    assert right()
    (pid,) = worker_pids()
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    children = [context.Process(target=_in_child, args=(results,)) for _ in range(2)]
    for child in children:
        child.start()
    said = [results.get() for _ in children]
    for child in children:
        child.join()
        assert child.exitcode == 0
    for before, judged, own in said:
        assert before == []
        assert judged
        assert own != [pid]
    assert worker_pids() == [pid]
    assert right()
    assert worker_pids() == [pid]


def test_a_fork_while_another_thread_asks() -> None:
    """The child inherits a lock that is held, and a worker that is busy: neither is used."""
    prepare()
    (pid,) = worker_pids()
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(grade, SUM, CLOSED, timeout_s=LONG_S)
        while POOL._idle:
            time.sleep(0.01)
        context = multiprocessing.get_context("fork")
        results = context.SimpleQueue()
        child = context.Process(target=_in_child, args=(results,))
        child.start()
        assert results.get()[1]
        child.join()
        os.kill(pid, signal.SIGCONT)
        assert isinstance(waiting.result(), Judgement)


def test_a_spawned_process_and_a_daemon_may_grade() -> None:
    """Daemons of multiprocessing may have no children of its kind; a worker is none."""
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply(grade, (SUM, CLOSED), {"timeout_s": LONG_S}).correct


def test_keys_of_the_terminal_do_not_reach_a_worker() -> None:
    prepare()
    (pid,) = worker_pids()
    assert os.getsid(pid) == pid
