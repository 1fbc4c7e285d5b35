"""The sandbox as a process, over the wire: the contract, the command line, its end."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest
from google.rpc import status_pb2

from assay.api.execution.v1 import execution_pb2, execution_pb2_grpc
from assay.clients.execution import (
    AssertTest,
    AsyncExecutionClient,
    CallTest,
    Execution,
    ExecutionClient,
    ExecutionJob,
    Fault,
    Program,
    SourceFile,
    StdioTest,
    TestJob,
    TestReport,
    TestSuite,
)
from assay.kit.errors import BadRequestError, error_info
from assay.kit.health import Health, check
from assay.kit.limits import channel_options
from sandbox_service import ANY_FLOOR, launch, python, ready, running

SUM = "def add(a, b):\n    return a + b\n"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running("--slots", "2", "--languages", "python,c") as (address, _):
        yield address


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[ExecutionClient]:
    with ExecutionClient(address) as client:
        yield client


def run_one(client: ExecutionClient, job: ExecutionJob) -> Execution:
    [outcome] = client.execute([job])
    assert isinstance(outcome, Execution), outcome
    return outcome


def test_it_says_what_it_runs_and_how(client: ExecutionClient) -> None:
    info = client.list_languages()
    assert [language.name for language in info.languages] == ["c", "python"]
    found = info.find("python")
    assert found is not None
    assert found.test_kinds == ("stdio", "call", "assertions")
    assert found.toolchain_version.startswith("Python 3")
    assert None not in (found.default_limits.wall_time_s, found.default_limits.max_output_bytes)
    assert info.max_limits.wall_time_s == 300.0
    assert "seccomp" in info.isolation_layers
    assert info.version


def test_the_readme_calls_it(
    address: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (repository / "sandbox" / "README.md").read_text()
    code = text.partition("```python\n")[2].partition("```")[0]
    assert "127.0.0.1:50052" in code
    exec(code.replace("127.0.0.1:50052", address), {})
    assert capsys.readouterr().out == "42 True\n"


def test_programs_end_in_their_own_ways_and_in_order(client: ExecutionClient) -> None:
    jobs = [
        python("import sys; print(sys.stdin.read()[::-1]); sys.exit(3)", stdin=b"abc"),
        python("import os; os.kill(os.getpid(), 9)"),
        python("while True: pass", wall_time_s=0.5),
        python("while True: pass", cpu_time_s=0.3),
        python("x = bytearray(1 << 30)", memory_bytes=64 * 2**20),
        python("while True: print('x' * 1000)", max_output_bytes=10**6),
    ]
    outcomes = client.execute(jobs)
    assert all(isinstance(outcome, Execution) for outcome in outcomes), outcomes
    runs = [outcome for outcome in outcomes if isinstance(outcome, Execution)]
    assert (runs[0].end, runs[0].exit_code, runs[0].stdout.data) == ("exited", 3, b"cba\n")
    assert (runs[1].end, runs[1].signal) == ("signalled", 9)
    assert runs[2].end == "wall-time-limit"
    assert runs[3].end == "cpu-time-limit"
    assert runs[4].end in ("memory-limit", "exited")  # MemoryError where it is refused in time
    assert not runs[4].ok
    assert runs[5].end == "output-limit"
    for run in runs:
        assert run.isolation_level
        assert run.wall_time_s > 0
        assert run.peak_memory_bytes > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_do_to_a_program_what_they_do_anywhere(
    client: ExecutionClient, number: signal.Signals
) -> None:
    source = f"import os, signal\nprint(signal.getsignal({number}))\nos.kill(os.getpid(), {number})"
    run = run_one(client, python(source))
    if number is signal.SIGINT:  # Python's own handler raises KeyboardInterrupt
        assert b"KeyboardInterrupt" in run.stderr.data or run.signal == number
    else:
        assert (run.end, run.signal) == ("signalled", number), run


def test_programs_of_a_service_under_nohup_end_at_a_hangup() -> None:
    source = f"import os\nos.kill(os.getpid(), {signal.SIGHUP})"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        started = running("--slots", "1", "--languages", "python")
        with started as (address, _), ExecutionClient(address) as client:
            run = run_one(client, python(source))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (run.end, run.signal) == ("signalled", signal.SIGHUP), run


def test_output_is_binary_capped_and_counted(client: ExecutionClient) -> None:
    source = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 8192)"
    run = run_one(client, python(source, output_bytes=1000))
    assert run.ok
    assert run.stdout.data == (bytes(range(256)) * 8192)[:1000]
    assert run.stdout.truncated
    assert run.stdout.total_bytes == 2 * 2**20


def test_files_arguments_and_environment(client: ExecutionClient) -> None:
    program = Program(
        "python",
        files=[
            SourceFile("pkg/main.py", b"import sys, os, data\n"
                       b"open('out.bin', 'wb').write(bytes([0, 255]))\n"
                       b"print(sys.argv[1:], os.environ['WHO'], data.X)"),
            SourceFile("pkg/data.py", b"X = 7"),
        ],
        entry_path="pkg/main.py",
        arguments=["a", "b c"],
        environment={"WHO": "me"},
    )  # fmt: skip
    run = run_one(client, ExecutionJob(program, fetch_paths=["out.bin", "absent"]))
    assert run.stdout.text == "['a', 'b c'] me 7\n", run.stderr.text
    assert run.files == (SourceFile("out.bin", b"\0\xff"),)


def test_nothing_of_the_services_environment_is_seen(address: str) -> None:
    source = "import os; print(sorted(os.environ))"
    with ExecutionClient(address) as client:
        names = run_one(client, python(source)).stdout.text
    assert "PYTHONPATH" not in names
    assert "VIRTUAL_ENV" not in names
    assert "ASSAY" not in names


def test_a_program_that_does_not_compile_says_so(client: ExecutionClient) -> None:
    broken = Program("c", "int main( { return 0; }")
    run = run_one(client, ExecutionJob(broken))
    assert run.end == "compile-error"
    assert b"error" in run.compile_output.data
    suite = TestSuite([StdioTest(b"", b"")])
    [report] = client.run_tests([TestJob(broken, suite)])
    assert isinstance(report, TestReport)
    assert report.compile_failed
    assert [outcome.verdict for outcome in report.outcomes] == ["not-run"]
    assert b"error" in report.compile_output.data


def test_every_kind_of_test_is_judged(client: ExecutionClient) -> None:
    suite = TestSuite(
        [
            CallTest("add", (1, 2), 3, name="right"),
            CallTest("add", ([1], ["x"]), [1, "x"]),
            CallTest("add", (1, 2), 4, name="wrong"),
            AssertTest("assert add(2, 2) == 4"),
            AssertTest("def check(candidate):\n    assert candidate(1, 1) == 3", entry_point="add"),
            StdioTest(b"", b""),
        ]
    )
    [report] = client.run_tests([TestJob(Program("python", SUM), suite)])
    assert isinstance(report, TestReport), report
    assert [outcome.verdict for outcome in report.outcomes] == [
        "passed", "passed", "wrong-answer", "passed", "wrong-answer", "passed"
    ]  # fmt: skip
    assert [outcome.name for outcome in report.outcomes][:3] == ["right", "2", "wrong"]
    assert report.passed_count == 4
    assert report.first_failure is not None
    assert report.first_failure.name == "wrong"
    assert report.outcomes[0].execution is not None
    assert report.outcomes[0].execution.isolation_level


def test_tests_after_the_first_failure_are_not_run_where_asked(client: ExecutionClient) -> None:
    tests = [CallTest("add", (1, n), 3) for n in (2, 5, 2)]
    suite = TestSuite(tests, stop_at_first_failure=True)
    [report] = client.run_tests([TestJob(Program("python", SUM), suite)])
    assert isinstance(report, TestReport)
    assert [o.verdict for o in report.outcomes] == ["passed", "wrong-answer", "not-run"]


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (ExecutionJob(Program("cobol", "x")), "UNKNOWN_LANGUAGE"),
        (ExecutionJob(Program("rust", "x")), "UNKNOWN_LANGUAGE"),
        (python("pass", wall_time_s=1e6), "INVALID_LIMIT"),
        (ExecutionJob(Program("python", entry_path="none.py")), "INVALID_PROGRAM"),
        (ExecutionJob(Program("python", "x", [SourceFile("../x", b"")])), "INVALID_PROGRAM"),
        (ExecutionJob(Program("python", "x"), fetch_paths=["/etc/passwd"]), "INVALID_PROGRAM"),
        (ExecutionJob(Program("python", "x" * (33 * 2**20))), "ITEM_TOO_LARGE"),
        (ExecutionJob(Program("python", "\ud800")), "UNSUPPORTED_INPUT"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_job_that_cannot_be_run_is_its_own_fault_only(
    client: ExecutionClient, job: ExecutionJob, reason: str
) -> None:
    first, fault, last = client.execute([python("print(1)"), job, python("print(2)")])
    assert isinstance(fault, Fault)
    assert fault.reason == reason
    assert fault.message
    assert isinstance(first, Execution)
    assert isinstance(last, Execution)
    assert (first.stdout.data, last.stdout.data) == (b"1\n", b"2\n")


def test_a_suite_that_cannot_be_run_is_a_fault(client: ExecutionClient) -> None:
    jobs = [
        TestJob(Program("python", SUM), TestSuite([])),
        TestJob(Program("c", "int main(){}"), TestSuite([CallTest("f", (), 1)])),
        TestJob(Program("python", SUM), TestSuite([CallTest("f", (object(),), 1)])),
    ]
    faults = client.run_tests(jobs)
    assert [getattr(fault, "reason", fault) for fault in faults] == [
        "INVALID_TEST", "INVALID_TEST", "UNSUPPORTED_INPUT"
    ]  # fmt: skip


def test_ids_that_clash_are_the_callers_error(client: ExecutionClient) -> None:
    with pytest.raises(BadRequestError, match="jobs have the id"):
        client.execute([python("pass", "a"), python("pass", "a")])


@pytest.mark.parametrize(
    ("jobs", "reason"),
    [
        ([], "EMPTY_BATCH"),
        ([execution_pb2.ExecutionJob()], "MISSING_ITEM_ID"),
        ([execution_pb2.ExecutionJob(id="x" * 257)], "MISSING_ITEM_ID"),
        ([execution_pb2.ExecutionJob(id="a")] * 2, "DUPLICATE_ITEM_ID"),
        ([execution_pb2.ExecutionJob(id=str(i)) for i in range(1025)], "BATCH_TOO_LARGE"),
    ],
    ids=["empty", "no-id", "long-id", "twice", "many"],
)
async def test_a_malformed_call_is_refused_as_a_whole(
    address: str, jobs: list[execution_pb2.ExecutionJob], reason: str
) -> None:
    async with grpc.aio.insecure_channel(address, options=channel_options()) as channel:
        stub = execution_pb2_grpc.ExecutionServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Execute(execution_pb2.ExecuteRequest(jobs=jobs), timeout=10)
    pairs = dict(caught.value.trailing_metadata() or ())
    status = status_pb2.Status.FromString(pairs["grpc-status-details-bin"])
    assert error_info(status).reason == reason


async def test_a_stream_answers_every_job_once(address: str) -> None:
    async def jobs() -> AsyncIterator[TestJob]:
        for number in range(40):
            expected = number + 1 if number % 4 else -1
            suite = TestSuite([CallTest("add", (number, 1), expected)])
            yield TestJob(Program("python", SUM), suite, id=f"job-{number}")
            if number == 20:
                await asyncio.sleep(0.1)
        yield TestJob(Program("cobol", ""), TestSuite([StdioTest(b"", b"")]), id="none")

    async with AsyncExecutionClient(address) as client:
        outcomes = [entry async for entry in client.stream_tests(jobs())]
    by_id = dict(outcomes)
    assert len(by_id) == len(outcomes) == 41
    for number in range(40):
        report = by_id[f"job-{number}"]
        assert isinstance(report, TestReport), report
        assert report.all_passed is bool(number % 4)
    none = by_id["none"]
    assert isinstance(none, Fault)
    assert none.reason == "UNKNOWN_LANGUAGE"


async def test_a_thousand_programs_give_a_thousand_answers(address: str) -> None:
    jobs = [python(f"print({number} ** 2)") for number in range(1000)]
    async with AsyncExecutionClient(address, timeout_s=100.0) as client:
        outcomes = await client.execute(jobs)
    wrong = [
        (number, outcome)
        for number, outcome in enumerate(outcomes)
        if not isinstance(outcome, Execution) or outcome.stdout.data != b"%d\n" % number**2
    ]
    assert wrong == []


async def test_results_that_fill_a_message_are_faults_that_say_what_to_do(address: str) -> None:
    loud = "import sys; sys.stdout.write('x' * (8 << 20))"
    jobs = [python(loud, output_bytes=8 * 2**20) for _ in range(10)]
    async with AsyncExecutionClient(address) as client:
        outcomes = await client.execute(jobs)
    kept = [outcome for outcome in outcomes if isinstance(outcome, Execution)]
    faults = [outcome for outcome in outcomes if isinstance(outcome, Fault)]
    assert len(kept) == 7
    assert {len(run.stdout.data) for run in kept} == {8 * 2**20}
    assert {fault.reason for fault in faults} == {"MESSAGE_TOO_LARGE"}


async def test_health_is_told_per_service(address: str) -> None:
    assert await check(address) is Health.SERVING
    name = "assay.api.execution.v1.ExecutionService"
    assert await check(address, name) is Health.SERVING


def test_limits_of_time_do_not_begin_in_the_queue(client: ExecutionClient) -> None:
    slow = [python("import time; time.sleep(0.4)", wall_time_s=2.0) for _ in range(16)]
    outcomes = client.execute(slow)
    assert [getattr(outcome, "end", outcome) for outcome in outcomes] == ["exited"] * 16
    waited = [outcome.queue_s for outcome in outcomes if isinstance(outcome, Execution)]
    assert max(waited) > 2.0  # longer than their own limit


def test_a_call_that_is_out_of_time_returns_what_is_done(client: ExecutionClient) -> None:
    jobs = [python("print(1)"), python("import time; time.sleep(60)", wall_time_s=100.0)]
    done, late = client.execute(jobs, timeout_s=3.0)
    assert isinstance(done, Execution)
    assert isinstance(late, Fault)
    assert late.reason == "DEADLINE_EXCEEDED"


def test_a_small_queue_refuses_what_it_cannot_hold() -> None:
    flags = ("--slots", "1", "--languages", "python", "--queue-items", "4")
    with running(*flags) as (address, _), ExecutionClient(address, timeout_s=30.0) as client:
        assert client.list_languages().max_items == 4
        outcomes = client.execute([python(f"print({n})") for n in range(40)])
    assert [getattr(o, "stdout", o) and o.ok for o in outcomes if isinstance(o, Execution)] == [
        True
    ] * 40  # retried as RetryInfo says


@pytest.mark.slow
def test_the_port_file_is_there_while_it_serves(tmp_path: Path) -> None:
    file = tmp_path / "port"
    with launch("--languages", "python", "--port-file", str(file)) as process:
        try:
            address = ready(process)
            assert address.endswith(f":{file.read_text().strip()}")
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.communicate()
    assert not file.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--slots", "-1"), "--slots must be 0 or more"),
        (("--languages", "klingon"), "klingon"),
        (("--max-wall-s", "0"), "--max-wall-s must be above 0"),
        (("--queue-mb", "1"), "--queue-mb must be 64 or more"),
        (("--cache-dir", "/proc/none"), "--cache-dir /proc/none cannot be written"),
        (("--token-file", "/nowhere"), "cannot be read"),
    ],
)
def test_a_setting_that_cannot_work_is_one_line(flags: tuple[str, ...], text: str) -> None:
    command = [sys.executable, "-m", "assay.sandbox", "--port", "0", *ANY_FLOOR, *flags]
    command += [] if "--languages" in flags else ["--languages", "python"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    last = done.stderr.strip().rpartition("\n")[2]
    assert last.startswith("assay sandbox: ")
    assert text in last


def test_a_port_in_use_is_said_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "assay.sandbox", "--port", port, *ANY_FLOOR]
        command += ["--languages", "python"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert f"port {port} on 127.0.0.1 is in use" in done.stderr


def test_a_token_is_asked_for() -> None:
    with running("--languages", "python", ASSAY_SANDBOX_TOKEN="secret") as (address, _):
        with ExecutionClient(address, timeout_s=10.0) as stranger:
            [fault] = stranger.execute([python("print(1)")])
        with ExecutionClient(address, token="secret") as friend:
            [run] = friend.execute(
                [python("import os; print(os.environ.get('ASSAY_SANDBOX_TOKEN'))")]
            )
    assert isinstance(fault, Fault)
    assert fault.reason == "UNAUTHENTICATED"
    assert isinstance(run, Execution)
    assert run.stdout.data == b"None\n"


def test_the_operators_limits_hold_and_cap_the_defaults() -> None:
    with (
        running("--languages", "python", "--max-wall-s", "2", "--max-memory-mb", "100") as (
            address,
            _,
        ),
        ExecutionClient(address) as client,
    ):
        found = client.list_languages().find("python")
        [fault] = client.execute([python("pass", wall_time_s=3.0)])
        [run] = client.execute([ExecutionJob(Program("python", "import time; time.sleep(9)"))])
    assert found is not None
    assert found.default_limits.wall_time_s == 2.0
    assert found.default_limits.memory_bytes == 100 * 2**20
    assert isinstance(fault, Fault)
    assert fault.reason == "INVALID_LIMIT"
    assert isinstance(run, Execution)
    assert run.end == "wall-time-limit"
