"""The sandbox under load and with its own parts dying, over the wire: no false verdict, no lost
answer, nothing left.

What must hold: a right program passes, whatever the load; a run that we lost is a fault or is
done again, never a verdict; what is cancelled is dead; what does not fit is refused and told when
to come back; no state of one run reaches another.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import pytest
from bench.sandbox_census import at_rest, settle, tree

from assay.api.execution.v1 import execution_pb2, execution_pb2_grpc
from assay.clients import EmbeddedServices
from assay.clients.execution import (
    AsyncExecutionClient,
    CallTest,
    Execution,
    ExecutionJob,
    Fault,
    Limits,
    Program,
    StdioTest,
    TestJob,
    TestReport,
    TestSuite,
)
from assay.kit.errors import error_info, reason_of, retry_after_s
from assay.kit.limits import channel_options
from process_tree import named
from waiting_support import until

SUM = "a, b = map(int, input().split())\nprint(a + b)\n"
SLEEPS = "import time\ntime.sleep(60)\n"


@contextlib.asynccontextmanager
async def serving(
    *arguments: str, slots: int = 2
) -> AsyncIterator[tuple[AsyncExecutionClient, EmbeddedServices]]:
    """A service of its own, of Python only, and a client."""
    given = ("--slots", str(slots), "--languages", "python", "--log-level", "ERROR", *arguments)
    services = EmbeddedServices(("sandbox",), arguments={"sandbox": given})
    await asyncio.to_thread(services.start)
    try:
        target = services.address_of("sandbox")
        async with AsyncExecutionClient(target, timeout_s=110.0) as client:
            yield client, services
    finally:
        await asyncio.to_thread(services.stop)


def sum_of(number: int) -> TestJob:
    """A right program with an input of its own, so that a mixed-up answer would show."""
    tests = (StdioTest(f"{number} 1\n".encode(), f"{number + 1}\n".encode()),)
    return TestJob(Program("python", SUM), TestSuite(tests), id=f"sum-{number}")


def supervisors(services: EmbeddedServices) -> list[int]:
    return named(tree(services.pid("sandbox")), "assay.sandbox.supervisor")


def zygotes(services: EmbeddedServices) -> list[int]:
    """The processes right beneath the supervisors: the spare children hang from these."""
    above = set(supervisors(services))
    return [pid for pid in tree(services.pid("sandbox")) if _parent(pid) in above]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def programs(services: EmbeddedServices) -> list[int]:
    """The children of the zygotes: programs, and those that wait to become one."""
    above = set(zygotes(services))
    return [pid for pid in tree(services.pid("sandbox")) if _parent(pid) in above]


async def running(services: EmbeddedServices, at_least: int) -> None:
    """Waits until programs sleep in the sandbox: the third generation beneath the supervisors."""
    await until(lambda: _asleep(services) >= at_least)


def _asleep(services: EmbeddedServices) -> int:
    count = 0
    for pid in tree(services.pid("sandbox")):
        with contextlib.suppress(OSError):
            wait = Path(f"/proc/{pid}/wchan").read_text()
            count += "nanosleep" in wait
    return count


@pytest.mark.slow
async def test_two_thousand_at_once_pass_two_thousand_times() -> None:
    async with serving() as (client, services):
        jobs = [sum_of(number) for number in range(2000)]
        calls = [client.run_tests([job]) for job in jobs[:1000]]
        calls += [client.run_tests(jobs[at : at + 50]) for at in range(1000, 2000, 50)]
        results = [result for batch in await asyncio.gather(*calls) for result in batch]
        assert len(results) == 2000
        assert all(isinstance(result, TestReport) and result.all_passed for result in results), (
            Counter(_word(result) for result in results)
        )
        assert services.dead() == {}


def _word(result: TestReport | Fault) -> str:
    if isinstance(result, Fault):
        return result.reason
    failure = result.first_failure
    return failure.verdict if failure else "passed"


@pytest.mark.slow
async def test_a_mixed_load_mixes_no_answers_up() -> None:
    wrong = Program("python", "print(0)")
    crash = Program("python", "raise SystemExit(3)")
    async with serving() as (client, _):
        jobs = []
        for number in range(1, 121):
            right = sum_of(number)
            jobs.append(right)
            if number % 3 == 0:
                jobs.append(TestJob(wrong, right.suite, id=f"wrong-{number}"))
            if number % 5 == 0:
                jobs.append(TestJob(crash, right.suite, id=f"crash-{number}"))
        chunks = [jobs[at : at + 7] for at in range(0, len(jobs), 7)]
        batches = await asyncio.gather(*(client.run_tests(chunk) for chunk in chunks))
        expected = {"sum": "passed", "wrong": "wrong-answer", "crash": "runtime-error"}
        for job, result in zip(jobs, (r for batch in batches for r in batch), strict=True):
            assert _word(result) == expected[job.id.partition("-")[0]], (job.id, result)


@pytest.mark.slow
@pytest.mark.parametrize("victims", [supervisors, zygotes])
async def test_a_part_killed_in_mid_run_makes_no_verdict(
    victims: Callable[[EmbeddedServices], list[int]],
) -> None:
    async with serving() as (client, services):
        await client.run_tests([sum_of(number) for number in range(4)])
        tests = (StdioTest(b"", b"never\n"),)
        suite = TestSuite(tests, Limits(wall_time_s=100.0))
        jobs = [TestJob(Program("python", SLEEPS), suite, id=f"s{i}") for i in range(2)]
        jobs += [sum_of(number) for number in range(40)]
        call = asyncio.create_task(client.run_tests(jobs))
        await running(services, 2)
        for pid in victims(services):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # Both sleepers were lost; should one be run again, it is lost again.
        while not call.done():
            await asyncio.wait([call], timeout=1.0)
            for pid in victims(services) if _asleep(services) and not call.done() else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        results = await call
        for lost in results[:2]:
            assert isinstance(lost, Fault), lost
            assert lost.reason == "WORKER_DIED"
        for result in results[2:]:
            assert isinstance(result, Fault) or result.all_passed, result
        again = await client.run_tests([sum_of(number) for number in range(20)])
        assert Counter(map(_word, again)) == {"passed": 20}


@pytest.mark.slow
async def test_parts_killed_at_random_make_no_wrong_verdict() -> None:
    async with serving() as (client, services):
        jobs = [sum_of(number) for number in range(600)]
        call = asyncio.create_task(client.run_tests(jobs))
        for turn in range(8):
            await asyncio.sleep(0.15)
            for pid in (supervisors if turn % 2 else zygotes)(services)[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        words = Counter(map(_word, await call))
        assert set(words) <= {"passed", "WORKER_DIED"}, words
        assert words["passed"] > words["WORKER_DIED"], words
        after = await client.run_tests([sum_of(number) for number in range(20)])
        assert Counter(map(_word, after)) == {"passed": 20}


@pytest.mark.slow
async def test_programs_killed_from_outside_are_judged_all_the_same() -> None:
    """By the host, say, when it runs out of memory: the candidates' own processes, at random."""
    slow = f"import time\ntime.sleep(0.03)\n{SUM}"
    function = "import time\ndef inc(n):\n    time.sleep(0.03)\n    return n + 1\n"
    called = TestSuite(tuple(CallTest("inc", (n,), n + 1) for n in range(3)))
    async with serving() as (client, services):
        jobs = [TestJob(Program("python", slow), sum_of(n).suite) for n in range(200)]
        jobs += [TestJob(Program("python", function), called) for _ in range(60)]
        plain = [ExecutionJob(Program("python", slow), stdin=b"2 3\n") for _ in range(40)]
        executed = asyncio.create_task(client.execute(plain))
        call = asyncio.create_task(client.run_tests(jobs))
        killed = 0
        while not call.done():
            await asyncio.sleep(0.25)
            for pid in programs(services)[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        words = Counter(map(_word, await call))
        assert killed > 10, killed
        assert set(words) <= {"passed", "WORKER_DIED"}, words
        assert words["passed"] > 250, words
        for result in await executed:
            text = result.reason if isinstance(result, Fault) else result.stdout.text
            assert text in {"5\n", "WORKER_DIED"}, result


@pytest.mark.slow
async def test_of_a_killed_service_the_next_one_leaves_nothing() -> None:
    """Everything of it is killed at once, in the middle of its runs."""
    async with serving() as (client, services):
        await client.run_tests([sum_of(number) for number in range(4)])
        tests = TestSuite((StdioTest(b"", b"never\n"),), Limits(wall_time_s=100.0))
        jobs = [TestJob(Program("python", SLEEPS), tests) for _ in range(2)]
        call = asyncio.create_task(client.run_tests(jobs))
        await running(services, 2)
        dead = tree(services.pid("sandbox"))
        for pid in dead:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await call
    async with serving() as (client, _):
        assert Counter(map(_word, await client.run_tests([sum_of(1)]))) == {"passed": 1}
        assert [group for pid in dead for group in _left_by(pid)] == []


def _left_by(pid: int) -> list[Path]:
    """Control groups and folders that a supervisor made."""
    groups = Path("/sys/fs/cgroup").glob(f"**/assay-box-{pid}-*")
    return [*groups, *Path(tempfile.gettempdir()).glob(f"assay-box-{pid}-*")]


@pytest.mark.slow
async def test_an_idle_part_that_dies_costs_nothing() -> None:
    async with serving() as (client, services):
        await client.run_tests([sum_of(number) for number in range(4)])
        for pid in supervisors(services):
            os.kill(pid, signal.SIGKILL)
        results = await client.run_tests([sum_of(number) for number in range(20)])
        assert Counter(map(_word, results)) == {"passed": 20}
        for pid in zygotes(services):
            os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.3)
        words = Counter(_word(r) for r in await client.run_tests([sum_of(n) for n in range(20)]))
        assert words["passed"] == 20, words


@pytest.mark.slow
async def test_a_cancelled_call_is_dead() -> None:
    program = "import os, time\nif os.fork() == 0:\n    os.setsid()\ntime.sleep(60)\n"
    async with serving() as (client, services):
        await client.run_tests([sum_of(number) for number in range(8)])
        before = await asyncio.to_thread(at_rest, services.pid("sandbox"))
        limits = Limits(wall_time_s=100.0)
        jobs = [ExecutionJob(Program("python", program), limits=limits) for _ in range(20)]
        call = asyncio.create_task(client.execute(jobs))
        await running(services, 4)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        await until(lambda: _asleep(services) == 0)
        assert await asyncio.to_thread(settle, services.pid("sandbox"), before) == []
        results = await client.run_tests([sum_of(number) for number in range(10)])
        assert Counter(map(_word, results)) == {"passed": 10}


async def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    async with serving("--queue-items", "8", slots=1) as (client, services):
        target = services.address_of("sandbox")
        limits = Limits(wall_time_s=100.0)
        jobs = [ExecutionJob(Program("python", SLEEPS), limits=limits) for _ in range(8)]
        call = asyncio.create_task(client.execute(jobs))
        await running(services, 1)
        async with grpc.aio.insecure_channel(target, options=channel_options()) as channel:
            stub = execution_pb2_grpc.ExecutionServiceStub(channel)
            request = execution_pb2.ExecuteRequest()
            for number in range(8):
                job = request.jobs.add(id=f"{number}")
                job.program.language, job.program.source = "python", "print(1)"
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.Execute(request, timeout=20)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        status = _status(refused.value)
        assert error_info(status).reason == "QUEUE_FULL"
        assert retry_after_s(status) is not None
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        [after] = await client.run_tests([sum_of(1)])
        assert _word(after) == "passed"


def _status(error: grpc.aio.AioRpcError) -> object:
    from grpc_status import rpc_status

    return rpc_status.from_call(error)


@pytest.mark.slow
async def test_the_queue_eats_no_time_of_a_program() -> None:
    """Forty programs of 0.2 s, a limit of 2 s each, one slot: the last ones wait for long."""
    source = f"import time\ntime.sleep(0.2)\n{SUM}"
    async with serving(slots=1) as (client, _):
        suite = TestSuite((StdioTest(b"1 2\n", b"3\n"),), Limits(wall_time_s=2.0))
        jobs = [TestJob(Program("python", source), suite) for _ in range(40)]
        results = await client.run_tests(jobs)
        assert Counter(map(_word, results)) == {"passed": 40}
        assert max(r.queue_s for r in results if isinstance(r, TestReport)) > 2.0


async def test_a_deadline_is_a_fault_of_what_was_not_done() -> None:
    async with serving(slots=1) as (client, services):
        target = services.address_of("sandbox")
        async with grpc.aio.insecure_channel(target, options=channel_options()) as channel:
            stub = execution_pb2_grpc.ExecutionServiceStub(channel)
            request = execution_pb2.ExecuteRequest()
            for number, source in enumerate(("print(1)", SLEEPS, "print(2)")):
                job = request.jobs.add(id=f"{number}")
                job.program.language, job.program.source = "python", source
                job.limits.wall_time.seconds = 100
            response = await stub.Execute(request, timeout=5)
        words = [
            reason_of(r.fault) if r.HasField("fault") else r.execution.stdout.data.decode()
            for r in response.results
        ]
        assert words[0] == "1\n"
        assert words[1:] == ["DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"]
        await until(lambda: _asleep(services) == 0)
        [after] = await client.run_tests([sum_of(1)])
        assert _word(after) == "passed"


POISON = """
import builtins, json, os, random, resource, signal, sys, tempfile
builtins.print = lambda *_, **__: os.write(1, b"poisoned")
builtins.input = lambda *_: "9 9"
json.loads = sum = max = lambda *_, **__: "poisoned"
sys.modules["math"] = sys.modules["random"] = json
sys.path.insert(0, os.getcwd())
random.seed(0)
os.environ["POISON"] = "1"
os.umask(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for folder in (os.getcwd(), "/tmp", "/dev/shm", os.path.expanduser("~")):
    for name in ("usercustomize.py", "sitecustomize.py", "math.py", "solution.py", "poison"):
        try:
            with open(os.path.join(folder, name), "w") as file:
                file.write("raise SystemExit('poisoned')\\n")
        except OSError:
            pass
secret = "poisoned-" + "secret" * 1000
sys.stdout.flush()
"""
CLEAN = """
import builtins, gc, json, math, os, random, sys
assert builtins.print.__name__ == "print" and builtins.input.__name__ == "input"
assert math.__name__ == "math" and random.__name__ == "random"
assert json.loads("[1]") == [1]
assert "POISON" not in os.environ
left = [n for d in (".", "/tmp", "/dev/shm") for n in os.listdir(d) if n.endswith("poison")]
assert not left, left
sign = "poisoned-" + "secret"
assert not any(isinstance(o, dict) and any(isinstance(v, str) and v.startswith(sign + "s")
               for v in list(o.values())) for o in gc.get_objects())
mask = os.umask(0o22)
print("clean", mask != 0)
"""


@pytest.mark.slow
async def test_nothing_of_one_run_reaches_the_next() -> None:
    async with serving() as (client, _):
        for _ in range(3):
            poison = [ExecutionJob(Program("python", POISON)) for _ in range(8)]
            assert all(isinstance(r, Execution) for r in await client.execute(poison))
            clean = [ExecutionJob(Program("python", CLEAN)) for _ in range(8)]
            for result in await client.execute(clean):
                assert isinstance(result, Execution), result
                assert result.stdout.data == b"clean True\n", result


@pytest.mark.slow
async def test_the_same_program_gives_the_same_answer_but_secrets_stay_random() -> None:
    """A verdict must not hang on a seed: that of `random` and of hashes is fixed."""
    source = (
        "import random, os, uuid\n"
        "print(random.random(), hash('x'), os.urandom(8).hex(), uuid.uuid4())\n"
    )
    async with serving(slots=2) as (client, _):
        results = await client.execute([ExecutionJob(Program("python", source)) for _ in range(20)])
        texts = [r.stdout.text.split() for r in results if isinstance(r, Execution)]
        assert len(texts) == 20
        assert [len(set(column)) for column in zip(*texts, strict=True)] == [1, 1, 20, 20]


LISTENER = """
import os, socket, time
for name in ("\\0assay-meeting", "/tmp/assay-meeting", "/dev/shm/assay-meeting"):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()
listener = socket.socket()
listener.bind(("127.0.0.1", 45671))
time.sleep(2)
"""
CALLER = """
import socket, time
ends = time.monotonic() + 1.5
met = []
while time.monotonic() < ends:
    for name in ("\\0assay-meeting", "/tmp/assay-meeting", "/dev/shm/assay-meeting"):
        with socket.socket(socket.AF_UNIX) as caller:
            try:
                caller.connect(name)
                met.append(name)
            except OSError:
                pass
    time.sleep(0.02)
print("met", met)
"""


@pytest.mark.slow
async def test_two_programs_at_once_cannot_meet() -> None:
    async with serving() as (client, _):
        [listener, caller] = await client.execute(
            [ExecutionJob(Program("python", source)) for source in (LISTENER, CALLER)]
        )
        assert isinstance(listener, Execution)
        assert listener.ok, listener
        assert isinstance(caller, Execution)
        assert caller.stdout.data == b"met []\n", caller


@pytest.mark.slow
async def test_a_megabyte_in_and_out_deadlocks_nobody() -> None:
    data = b"x" * 79 + b"\n"
    big = data * (2**20 // len(data))
    unread = Program(
        "python", "import sys\nsys.stdout.write('y' * 2**20)\nsys.stderr.write('z' * 2**20)\n"
    )
    echo = Program("python", "import sys\nfor line in sys.stdin:\n    sys.stdout.write(line)\n")
    async with serving() as (client, _):
        limits = Limits(output_bytes=2**21)
        [one, two] = await client.execute(
            [ExecutionJob(program, stdin=big, limits=limits) for program in (unread, echo)]
        )
        assert isinstance(one, Execution)
        assert one.ok
        assert (one.stdout.total_bytes, one.stderr.total_bytes) == (2**20, 2**20)
        assert isinstance(two, Execution)
        assert two.stdout.data == big
        small = Limits(output_bytes=1000)
        [three] = await client.execute([ExecutionJob(echo, stdin=big, limits=small)])
        assert isinstance(three, Execution)
        assert (len(three.stdout.data), three.stdout.truncated) == (1000, True)
        assert three.stdout.total_bytes == len(big)


FLOOD = """
import fcntl, os
try:
    fcntl.fcntl(1, 1031, 1 << 20)
except OSError:
    pass
for _ in range(3):
    os.fork()
data = b"x" * (1 << 20)
while True:
    os.write(1, data)
"""


@pytest.mark.slow
async def test_a_flood_is_ended_soon_after_its_limit() -> None:
    """Eight writers on the widest pipe: whoever drains it must look up now and then."""
    limit = 8 * 2**20
    async with serving(slots=1) as (client, _):
        limits = Limits(max_output_bytes=limit)
        [flood] = await client.execute([ExecutionJob(Program("python", FLOOD), limits=limits)])
        assert isinstance(flood, Execution)
        assert flood.end == "output-limit"
        assert limit < flood.stdout.total_bytes < 2 * limit + 2**24


async def test_a_truncated_answer_never_passes() -> None:
    source = "print('a' * 5000 + 'b' * 5000)\n"
    tests = (StdioTest(b"", b"a" * 5000 + b"\n"),)
    suite = TestSuite(tests, Limits(output_bytes=5000))
    async with serving(slots=1) as (client, _):
        [result] = await client.run_tests([TestJob(Program("python", source), suite)])
        assert _word(result) != "passed"


@pytest.mark.slow
async def test_many_calls_of_one_candidate_stay_one_process() -> None:
    source = "count = 0\n\n\ndef tick(n):\n    global count\n    count += 1\n    return count\n"
    tests = tuple(CallTest("tick", (n,), n + 1) for n in range(200))
    async with serving(slots=1) as (client, _):
        [result] = await client.run_tests([TestJob(Program("python", source), TestSuite(tests))])
        assert isinstance(result, TestReport)
        assert result.all_passed, result.first_failure
