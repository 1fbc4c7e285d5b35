"""Sessions of a real server over the real wire: cells, forks, faults, drain, and what is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import urllib.request
from collections.abc import AsyncIterator, Iterator

import pytest

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2
from assay.clients.execution import AsyncExecutionClient
from assay.kit.channels import open_channel
from assay.kit.durations import duration, seconds_of
from assay.kit.errors import CallError
from process_tree import children, descendants, named
from sandbox_service import launch, python, ready, running
from sessions_support import Caller, comes_true, refused
from tracing_support import Seen, collecting
from waiting_support import exists, until

SECRET = "a-word-of-the-program"
FLAGS = ("--languages", "python", "--session-spares", "1")
SPIN = "import time\nend = time.process_time() + {s}\nwhile time.process_time() < end: pass\n'done'"


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, int]]:
    """Address and process."""
    with running(*FLAGS) as (address, process):
        yield address, process.pid


@pytest.fixture
async def caller(server: tuple[str, int]) -> AsyncIterator[Caller]:
    async with calling(server[0]) as found:
        yield found


@contextlib.asynccontextmanager
async def calling(address: str) -> AsyncIterator[Caller]:
    async with open_channel(address) as channel:
        yield Caller(channel)


def hosts(pid: int) -> list[int]:
    """The hosts of sessions of a server."""
    return named(children(pid), "assay.sandbox.sessions.host")


def scraped(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        text: str = answer.read().decode()
    return text


def value(result: session_pb2.CellResult) -> bytes:
    assert result.end == session_pb2.CELL_END_COMPLETED, result
    return result.value.data["text/plain"]


async def test_state_stays_between_cells_and_a_bash_session_has_its_folder(caller: Caller) -> None:
    (one,) = await caller.open()
    await caller.run(one, "x = 41")
    assert value(await caller.run(one, "x + 1")) == b"42"
    (shell,) = await caller.open(language="bash")
    await caller.run(shell, "echo 7 > kept; cd /tmp")
    result = await caller.run(shell, "cat ~/kept 2>/dev/null || pwd")
    assert result.end == session_pb2.CELL_END_COMPLETED
    assert result.stdout.data
    await caller.close(one, shell)


async def test_forks_and_rollbacks_go_their_own_ways(caller: Caller) -> None:
    (one,) = await caller.open()
    if not (await caller.described()).copies:
        pytest.skip("copies cannot be made here")
    await caller.run(one, "x = [1]")
    made = await caller.call("Checkpoint", session_pb2.CheckpointRequest(session_id=one))
    copies = (await caller.call("Fork", session_pb2.ForkRequest(session_id=one, count=3))).sessions
    cells = [caller.run(copy.id, f"x.append({n}); x") for n, copy in enumerate(copies)]
    assert [value(cell) for cell in await asyncio.gather(*cells)] == [
        b"[1, 0]",
        b"[1, 1]",
        b"[1, 2]",
    ]
    await caller.run(one, "x.clear()")
    back = session_pb2.RollbackRequest(session_id=one, checkpoint_id=made.checkpoint_id)
    await caller.call("Rollback", back)
    assert value(await caller.run(one, "x")) == b"[1]"
    await caller.close(one)
    assert value(await caller.run(copies[1].id, "len(x)")) == b"2"  # forks live on
    await caller.close(*(copy.id for copy in copies))


async def test_files_go_in_and_come_out(caller: Caller) -> None:
    file = execution_pb2.SourceFile(path="in/data", content=b"5")
    (one,) = await caller.open(files=[file])
    await caller.run(one, "import os; os.makedirs('out'); print(int(open('in/data').read()) + 1, "
                          "file=open('out/r', 'w'))")  # fmt: skip
    asked = session_pb2.GetFilesRequest(session_id=one, paths=["out/r", "none"])
    (found,) = (await caller.call("GetFiles", asked)).files
    assert (found.path, found.content) == ("out/r", b"6\n")
    await caller.close(one)


async def test_output_comes_while_the_cell_runs(caller: Caller) -> None:
    (one,) = await caller.open()
    call = caller.begin(one, "import time\nprint('early', flush=True)\ntime.sleep(60)")
    first = await call.read()
    assert first.output.data.startswith(b"early")
    call.cancel()

    await free(caller, one)
    await caller.close(one)


async def free(caller: Caller, session_id: str) -> None:
    """Waits until a session is free, and sees that it goes on."""

    async def is_free() -> bool:
        try:
            return value(await caller.run(session_id, "'free'")) == b"'free'"
        except CallError as error:
            assert error.reason == "SESSION_BUSY"  # noqa: PT017 - any other is a failure
            return False

    await comes_true(is_free)


@pytest.mark.parametrize("language", ["python", "bash"])
async def test_a_cell_that_is_given_up_at_any_moment_ends_and_the_session_goes_on(
    caller: Caller, language: str
) -> None:
    endless = {"python": "while True: pass", "bash": "while :; do :; done"}[language]
    (one,) = await caller.open(language=language)
    for delay_ms in (0, 0, 1, 1, 2, 2, 3, 5, 8, 20):
        call = caller.begin(one, endless)
        await asyncio.sleep(delay_ms / 1000)
        call.cancel()
        if language == "python":
            await free(caller, one)
        else:
            await comes_true(lambda: echoes(caller, one))
    await caller.close(one)


async def echoes(caller: Caller, session_id: str) -> bool:
    try:
        return (await caller.run(session_id, "echo free")).stdout.data == b"free\n"
    except CallError as error:
        assert error.reason == "SESSION_BUSY"  # noqa: PT017 - any other is a failure
        return False


async def test_a_busy_machine_makes_no_honest_cell_time_out(caller: Caller) -> None:
    ids = await caller.open(24)
    used_s = 0.2
    results = await asyncio.gather(*(caller.run(one, SPIN.format(s=used_s)) for one in ids))
    assert {value(result) for result in results} == {b"'done'"}
    assert max(seconds_of(result.usage.queue_time) for result in results) > 0
    assert all(seconds_of(result.usage.cpu_time) >= used_s * 0.9 for result in results)
    await caller.close(*ids)


async def test_a_killed_host_loses_sessions_alone(server: tuple[str, int], caller: Caller) -> None:
    address, pid = server
    busy, idle = await caller.open(2)
    (host,) = hosts(pid)
    below = descendants(host)
    cell = asyncio.create_task(refused(caller.run(busy, "import time; time.sleep(60)")))
    await asyncio.sleep(0.2)
    os.kill(host, signal.SIGKILL)
    async with AsyncExecutionClient(address) as client:
        (run,) = await client.execute([python("print(6 * 7)")])
        assert run.stdout.data == b"42\n"
    error = await cell
    assert (error.reason, error.metadata["cause"]) == ("SESSION_LOST", "host-died")
    assert (await refused(caller.run(idle, "1"))).reason == "SESSION_LOST"
    (again,) = await caller.open()
    assert value(await caller.run(again, "1 + 1")) == b"2"
    await caller.close(again)
    await until(lambda: not any(exists(process) for process in below))


async def test_a_trace_shows_cells_and_copies_and_nothing_that_a_program_wrote() -> None:
    execute = "assay.api.session.v1.SessionService/Execute"
    with collecting() as (collector, environment), running(*FLAGS, **environment) as (address, _):
        async with calling(address) as caller:
            (one,) = await caller.open()
            await caller.run(one, f"{SECRET!r}; {SPIN.format(s=0.1)}")
            await caller.call("Checkpoint", session_pb2.CheckpointRequest(session_id=one))

        def spans(name: str) -> list[Seen]:
            return [span for span in collector.spans if span.name == name]

        await until(lambda: spans(execute) and spans("item checkpoint"))
        (rpc,), (cell,) = spans(execute), spans("item python")
        assert cell.parent == rpc.id
        assert cell.facts["assay.end"] == "completed"
        assert cell.facts["assay.runs.cpu_s"] > 0.08
        parts = {span.name for span in collector.spans if span.parent == cell.id}
        assert parts == {"queue", "execution"}
        sent = "".join(str(span.proto) for span in collector.spans)
        assert SECRET not in sent
        assert one not in sent


async def test_without_sessions_programs_are_served() -> None:
    with running(*FLAGS, "--no-sessions") as (address, process):
        assert not hosts(process.pid)
        async with calling(address) as caller:
            error = await refused(caller.open())
            assert error.reason == "NO_SESSIONS"
            assert "--no-sessions" in str(error)
        async with AsyncExecutionClient(address) as client:
            (run,) = await client.execute([python("print(1)")])
            assert run.stdout.data == b"1\n"


@pytest.mark.slow
async def test_sessions_have_their_time_at_the_end_and_the_log_says_what_became_of_them() -> None:
    flags = ("--session-drain-s", "60", "--drain-s", "1", "--log-json", "--log-level", "INFO")
    process = launch(*FLAGS, *flags)
    try:
        async with calling(ready(process)) as caller:
            used, left = await caller.open(2)
            process.send_signal(signal.SIGTERM)
            renew = session_pb2.RenewRequest(session_ids=[used])

            async def drains() -> bool:
                answer = await caller.call("Renew", renew)
                return bool(answer.sessions[0].HasField("ends_in"))

            await comes_true(drains)
            assert value(await caller.run(used, "1 + 1")) == b"2"
            assert (await refused(caller.open())).reason == "DRAINING"
            await caller.close(used)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)  # the second ends the wait
        _, errors = await asyncio.to_thread(process.communicate, timeout=60.0)
    finally:
        process.kill()
    entries = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    ended = {entry["end"]: entry for entry in entries if entry["message"] == "a session ended"}
    assert set(ended) == {"closed", "drained"}
    assert ended["closed"]["cells"] == 1
    assert all(used not in line and left not in line for line in errors.splitlines())


async def test_nothing_outlives_a_killed_server() -> None:
    with running(*FLAGS) as (address, process):
        async with calling(address) as caller:
            (one,) = await caller.open()
            call = caller.begin(one, "import time; time.sleep(600)")
            await asyncio.sleep(0.3)
            below = descendants(process.pid)
            assert len(hosts(process.pid)) == 1
            process.kill()
            await until(lambda: not any(exists(pid) for pid in below))
            call.cancel()


async def test_a_server_that_was_started_anew_says_that_its_sessions_are_lost() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ids = []
    for _ in range(2):
        with running(*FLAGS, "--port", port) as (address, _process):
            async with calling(address) as caller:
                for one in ids:
                    error = await refused(caller.run(one, "1"))
                    assert (error.reason, error.metadata["cause"]) == (
                        "SESSION_LOST",
                        "server-restarted",
                    )
                ids += await caller.open()
                assert (await caller.described()).replica.endswith(f":{port}")


async def test_the_budget_of_a_life_and_the_lease_come_from_the_flags() -> None:
    flags = ("--session-cpu-s", "3", "--session-lease-s", "0.5", "--max-sessions", "2")
    process = launch(*FLAGS, "--metrics-port", "0", *flags, "--log-level", "ERROR")
    try:
        address = ready(process)
        assert process.stdout is not None
        metrics = process.stdout.readline().split()[-1]
        async with calling(address) as caller:
            described = await caller.described()
            assert (described.capacity, described.default_limits.cpu_time.seconds) == (2, 3)
            spender, idle = await caller.open(2)
            ends = [await caller.run(spender, SPIN.format(s=1.2)) for _ in range(3)]
            assert ends[-1].end == session_pb2.CELL_END_BUDGET_SPENT, ends
            assert ends[-1].session_over
            assert (await refused(caller.run(idle, "1"))).reason == "LEASE_EXPIRED"
            (long,) = await caller.open(lease=duration(60))
            assert value(await caller.run(long, "1")) == b"1"
        shown = await asyncio.to_thread(scraped, metrics)
        assert "assay_sandbox_session_places 2.0" in shown
        assert 'sessions_opened_total{how="created",language="python"} 3.0' in shown
        assert 'cells_total{end="budget-spent",language="python"} 1.0' in shown
    finally:
        process.kill()
        process.communicate()
