"""Things of ours break, and callers leave: a fault is not a verdict, and nothing stays."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.metrics_support import scrape, total

from assay.clients import ClientConfig
from assay.clients.execution import (
    AsyncExecutionClient,
    CallTest,
    Execution,
    ExecutionJob,
    ExecutionResult,
    Fault,
    Program,
    TestJob,
    TestReport,
    TestSuite,
)
from process_tree import descendants
from sandbox_service import python, running, supervisors
from waiting_support import until

FLAGS = ("--languages", "python")
SLEEP = "import time; time.sleep(60)"


async def works(client: AsyncExecutionClient) -> None:
    """The service answers rightly, now."""
    [outcome] = await client.execute([python("print(6 * 7)")])
    assert isinstance(outcome, Execution), outcome
    assert outcome.stdout.data == b"42\n"


def sleeper() -> ExecutionJob:
    return python("import time; time.sleep(60)", wall_time_s=99.0)


def gone(pids: set[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def reasons(outcomes: list[ExecutionResult]) -> set[str]:
    return {outcome.reason if isinstance(outcome, Fault) else outcome.end for outcome in outcomes}


async def test_a_supervisor_killed_in_mid_run_costs_that_run_only() -> None:
    with running("--slots", "1", "--metrics-port", "0", *FLAGS) as (address, process):
        assert process.stdout is not None
        metrics = process.stdout.readline().split()[-1]
        async with AsyncExecutionClient(address) as client:
            [supervisor] = supervisors(process.pid)
            before = descendants(supervisor)
            calls = asyncio.gather(
                client.execute([python(SLEEP, wall_time_s=100.0)]),
                client.execute([python(f"print({n})") for n in range(20)]),
            )
            await asyncio.sleep(0.5)
            os.kill(supervisor, signal.SIGKILL)
            [[killed], others] = await calls
            assert isinstance(killed, Fault)
            assert killed.reason == "WORKER_DIED"
            assert [getattr(o, "stdout", None) and o.stdout.data for o in others] == [  # type: ignore[union-attr]
                b"%d\n" % n for n in range(20)
            ]
            await works(client)
            await until(lambda: gone(before))
            assert supervisors(process.pid) != [supervisor]
        families = scrape(metrics)
        assert total(families, "assay_sandbox_worker_restarts_total") == 1
        died = {"language": "python", "reason": "WORKER_DIED"}
        assert total(families, "assay_sandbox_faults_total", **died) == 1


async def test_supervisors_that_die_again_and_again_never_make_a_verdict() -> None:
    with running("--slots", "2", *FLAGS) as (address, process):
        async with AsyncExecutionClient(address, timeout_s=60.0) as client:
            suite = TestSuite([CallTest("f", (n,), n * n) for n in range(3)])
            program = Program("python", "def f(x):\n    return x * x\n")
            jobs = [TestJob(program, suite) for _ in range(401)]
            call = asyncio.ensure_future(client.run_tests(jobs))
            for _ in range(4):
                await asyncio.sleep(0.15)
                for supervisor in supervisors(process.pid)[:1]:
                    os.kill(supervisor, signal.SIGKILL)
            results = await call  # none is lost
            await works(client)
    reports = [result for result in results if isinstance(result, TestReport)]
    faults = [result for result in results if isinstance(result, Fault)]
    assert len(reports) + len(faults) == 401
    assert all(report.all_passed for report in reports)
    assert {fault.reason for fault in faults} <= {"WORKER_DIED"}
    assert len(faults) <= 8


async def test_every_child_of_a_supervisor_may_die_without_a_verdict() -> None:
    with running("--slots", "1", *FLAGS) as (address, process):
        async with AsyncExecutionClient(address) as client:
            [supervisor] = supervisors(process.pid)
            call = asyncio.ensure_future(client.execute([python(SLEEP, wall_time_s=100.0)]))
            while not call.done():  # again, where the program had not begun
                await asyncio.sleep(0.5)
                for child in descendants(supervisor):
                    with contextlib.suppress(ProcessLookupError):  # it ended with its parent
                        os.kill(child, signal.SIGKILL)
            [outcome] = await call
            assert isinstance(outcome, Fault), outcome
            assert outcome.reason == "WORKER_DIED"
            await works(client)


async def test_a_caller_who_leaves_takes_the_program_along() -> None:
    with running("--slots", "1", *FLAGS) as (address, process):
        async with AsyncExecutionClient(address) as client:
            await works(client)
            [supervisor] = supervisors(process.pid)
            before = descendants(supervisor)
            forks = "import os, time\nos.fork()\nos.fork()\ntime.sleep(60)"
            call = asyncio.ensure_future(client.execute([python(forks, wall_time_s=100.0)]))
            await until(lambda: len(descendants(supervisor) - before) >= 3)
            made = descendants(supervisor) - before
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await works(client)  # takes what was made in advance for the next run
            await until(lambda: gone(made))
            await works(client)
            assert supervisors(process.pid) == [supervisor]


async def test_a_deadline_kills_what_runs_and_drops_what_waits() -> None:
    with running("--slots", "1", *FLAGS) as (address, _):
        async with AsyncExecutionClient(address) as client:
            jobs = [python(SLEEP, wall_time_s=100.0) for _ in range(10)]
            outcomes = await client.execute(jobs, timeout_s=1.0)
            assert reasons(outcomes) == {"DEADLINE_EXCEEDED"}
            began_s = time.monotonic()
            await works(client)
            assert time.monotonic() - began_s < 30  # not behind any of the ten


async def test_a_job_behind_a_slow_one_goes_to_the_slot_that_is_idle() -> None:
    with running("--slots", "2", *FLAGS) as (address, _):
        async with AsyncExecutionClient(address) as client:
            slow = asyncio.ensure_future(client.execute([python(SLEEP, wall_time_s=100.0)]))
            await asyncio.sleep(0.3)
            quick = await client.execute([python("print(1)") for _ in range(20)], timeout_s=20.0)
            assert reasons(quick) == {"exited"}
            slow.cancel()
            await asyncio.gather(slow, return_exceptions=True)


async def test_a_short_call_is_not_behind_a_long_one() -> None:
    with running("--slots", "1", *FLAGS) as (address, _):
        async with AsyncExecutionClient(address, timeout_s=100.0) as client:
            jobs = [python("import time; time.sleep(0.1)") for _ in range(100)]
            long = asyncio.ensure_future(client.execute(jobs))
            await asyncio.sleep(0.3)
            await client.execute([python("print(1)") for _ in range(3)])
            assert not long.done()
            outcomes = await long
            assert reasons(outcomes) == {"exited"}


async def test_a_full_queue_refuses_with_the_time_to_wait() -> None:
    flags = ("--slots", "1", "--queue-items", "8", *FLAGS)
    # A client of its own accord would not have so much in flight.
    with running(*flags) as (address, _):
        config = ClientConfig(max_concurrent_calls=8)
        async with AsyncExecutionClient(address, config=config) as client:
            # One runs, one is handed ahead, eight wait.
            held = [
                asyncio.ensure_future(client.execute([sleeper() for _ in range(count)]))
                for count in (1, 1, 1, 7)
            ]
            await asyncio.sleep(3.0)  # one that comes before them would take the place of seven
            outcomes = await client.execute([python("print(1)")], timeout_s=1.0)
            assert reasons(outcomes) == {"QUEUE_FULL"}
            for call in held:
                call.cancel()
            await asyncio.gather(*held, return_exceptions=True)
            await works(client)


async def test_a_supervisor_that_hangs_is_killed_when_its_caller_is_gone() -> None:
    with running("--slots", "1", *FLAGS) as (address, process):
        async with AsyncExecutionClient(address, timeout_s=60.0) as client:
            [supervisor] = supervisors(process.pid)
            call = asyncio.ensure_future(client.execute([python(SLEEP, wall_time_s=99.0)]))
            await asyncio.sleep(0.3)
            os.kill(supervisor, signal.SIGSTOP)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await works(client)
            assert supervisors(process.pid) != [supervisor]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_nothing_outlives_the_server(how: signal.Signals) -> None:
    with running("--slots", "2", "--drain-s", "0", *FLAGS) as (address, process):
        async with AsyncExecutionClient(address, timeout_s=20.0) as client:
            call = asyncio.ensure_future(client.execute([python(SLEEP, wall_time_s=99.0)] * 1))
            await asyncio.sleep(0.5)
            everything = descendants(process.pid)
            assert len(everything) > 4
            process.send_signal(how)
            await asyncio.to_thread(process.wait, 30)
            await until(lambda: gone(everything))
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)


async def test_a_stream_that_its_caller_leaves_leaves_nothing() -> None:
    async def jobs() -> AsyncIterator[TestJob]:
        for number in range(50):
            program = Program("python", "def f():\n    import time; time.sleep(60)\n")
            yield TestJob(program, TestSuite([CallTest("f", (), 1)]), id=str(number))

    with running("--slots", "1", *FLAGS) as (address, _):
        async with AsyncExecutionClient(address) as client:
            stream = client.stream_tests(jobs(), timeout_s=60.0)
            reading = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.5)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await stream.aclose()  # type: ignore[attr-defined]  # an async generator
            await works(client)


async def test_an_unreachable_sandbox_is_a_fault_that_says_what_to_start() -> None:
    async with AsyncExecutionClient("127.0.0.1:1", timeout_s=1.0) as client:
        [fault] = await client.execute([python("print(1)")])
    assert isinstance(fault, Fault)
    assert fault.reason == "UNREACHABLE"
    assert "assay serve sandbox" in fault.message
