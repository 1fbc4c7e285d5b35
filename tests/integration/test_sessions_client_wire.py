"""The clients of sessions and `assay session`, against a real sandbox."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay.clients.sessions import (
    AsyncSessionClient,
    CannotFork,
    CellEnd,
    CellResult,
    OutputPiece,
    SessionClient,
    SessionEnded,
    SessionLimits,
    SessionLost,
)
from assay.kit.errors import BadRequestError, OverloadedError
from sandbox_service import running

FLAGS = ("--slots", "1", "--languages", "python", "--max-sessions", "12")
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(*FLAGS) as (address, _):
        yield address


@pytest.fixture
def client(address: str) -> Iterator[SessionClient]:
    with SessionClient(address) as made:
        yield made
        assert made.describe().copies, "no copies here, so nothing was shown"


def test_the_example_of_the_package(client: SessionClient) -> None:
    with client.create() as session:
        session.execute("x = 41")
        point = session.checkpoint()
        left, right = session.fork(2)
        left.execute("x += 1")
        session.execute("x = 0")
        session.rollback(point)
        assert [one.execute("x").plain for one in (session, left, right)] == [41, 42, 41]
        assert client.describe().open >= 3


def test_a_result_says_what_a_cell_did(client: SessionClient) -> None:
    with client.create() as session:
        done = session.execute("import sys\nprint('out')\nprint('err', file=sys.stderr)\n(1, 'x')")
        assert (done.stdout.text, done.stderr.text, done.plain) == ("out\n", "err\n", (1, "x"))
        assert done.ok
        assert done.usage.memory_bytes > 0
        raised = session.execute("1 / 0")
        assert raised.end is CellEnd.RAISED
        assert raised.error is not None
        assert raised.error.name == "ZeroDivisionError"
        assert "1 / 0" in raised.error.traceback
        slow = session.execute("while True: pass", wall_s=0.5)
        assert slow.end is CellEnd.WALL_TIME_LIMIT
        assert session.execute("7").plain == 7


def test_output_comes_while_the_cell_runs(client: SessionClient) -> None:
    with client.create() as session:
        code = "import time\nprint('first', flush=True)\ntime.sleep(0.5)\nprint('second')"
        began = time.monotonic()
        times = []
        events = []
        for event in session.stream(code):
            times.append(time.monotonic() - began)
            events.append(event)
        assert isinstance(events[-1], CellResult)
        pieces = [one for one in events if isinstance(one, OutputPiece)]
        assert b"".join(one.data for one in pieces) == events[-1].stdout.data == b"first\nsecond\n"
        assert times[-1] - times[0] > 0.25


def test_the_programs_end_is_its_own_and_a_rollback_undoes_it(client: SessionClient) -> None:
    with client.create() as session:
        session.execute("x = 5\nwith open('kept', 'w') as f: f.write('5')")
        point = session.checkpoint()
        over = session.execute("import os\nos.abort()")
        assert (over.end, over.signal, over.session_over) == (CellEnd.DIED, signal.SIGABRT, True)
        with pytest.raises(SessionEnded) as caught:
            session.execute("x")
        assert caught.value.end is CellEnd.DIED
        session.rollback(point)
        assert session.execute("x, open('kept').read()").plain == (5, "5")


def test_what_no_copy_can_hold_is_named(client: SessionClient) -> None:
    with client.create() as session:
        session.execute(
            "import threading\nstop = threading.Event()\n"
            "threading.Thread(target=stop.wait, daemon=True).start()"
        )
        with pytest.raises(CannotFork) as caught:
            session.checkpoint()
        assert any("thread" in one for one in caught.value.holds)
        session.execute("stop.set()\nimport time\ntime.sleep(0.2)")
        session.checkpoint().drop()


def test_files_go_in_and_come_out(client: SessionClient, tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "a.bin").write_bytes(bytes(range(256)))
    with client.create(files={"given.txt": "given"}) as session:
        session.put_folder(source)
        session.execute("with open('made', 'w') as f: f.write(open('given.txt').read() + '!')")
        assert {one.path for one in session.list_files()} >= {"deep/a.bin", "given.txt", "made"}
        assert session.get_files(["made", "no"]) == {"made": b"given!"}
        session.get_folder(tmp_path / "out")
    assert (tmp_path / "out" / "deep" / "a.bin").read_bytes() == bytes(range(256))


def test_bash_keeps_its_variables_and_its_folder(client: SessionClient) -> None:
    with client.create("bash") as session:
        session.execute("mkdir sub; cd sub; x=7")
        done = session.execute("echo $x $(basename $PWD); false")
        assert (done.stdout.text, done.exit_code, done.ok) == ("7 sub\n", 1, False)


async def test_cancelling_interrupts_the_cell_and_the_session_goes_on(address: str) -> None:
    async with (
        AsyncSessionClient(address) as client,
        await client.create() as session,
    ):
        started = asyncio.Event()
        cell = asyncio.create_task(
            session.execute(
                "x = 1\nprint('on', flush=True)\nwhile True: pass", on_event=lambda _: started.set()
            )
        )
        async with asyncio.timeout(PATIENCE_S):
            await started.wait()
        cell.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cell
        assert (await session.execute("x")).plain == 1


async def test_many_at_once_keep_apart(address: str) -> None:
    async with AsyncSessionClient(address) as client:
        sessions = await client.create(count=8)
        for step in range(5):
            await asyncio.gather(
                *(one.execute(f"x = {step} * 100 + {n}") for n, one in enumerate(sessions))
            )
        found = await asyncio.gather(*(one.execute("x") for one in sessions))
        assert [one.plain for one in found] == [400 + n for n in range(8)]


def test_a_full_sandbox_says_when_to_come_back(address: str) -> None:
    with SessionClient(address) as client:
        client.create(count=12)
        with pytest.raises(OverloadedError) as caught:
            client.create(timeout_s=1.0)
        assert caught.value.reason in {"SESSIONS_FULL", "DEADLINE_EXCEEDED"}


def test_a_session_is_attached_to_from_elsewhere(client: SessionClient, address: str) -> None:
    session = client.create(limits=SessionLimits(cell_wall_time_s=3.0))
    session.execute("x = 1")
    with SessionClient(address) as other:
        attached = other.attach(session.id, session.replica)
        assert attached.limits.cell_wall_time_s == 3.0
        assert attached.execute("x").plain == 1
        with pytest.raises(BadRequestError):
            other.attach(session.id[:-1] + "?", session.replica)
    assert session.execute("x").plain == 1


def test_a_forked_child_goes_on_with_its_parents_session(client: SessionClient) -> None:
    session = client.create()
    session.execute("x = 1")
    child = os.fork()
    if child == 0:
        fine = session.execute("x += 1\nx").plain == 2
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert session.execute("x").plain == 2


def test_a_server_that_ends_loses_its_sessions_and_says_so() -> None:
    with running(*FLAGS) as (address, process):
        client = SessionClient(address, timeout_s=5.0)
        session = client.create()
        session.execute("x = 1")
        process.send_signal(signal.SIGKILL)
        process.wait()
        for _ in range(2):
            with pytest.raises(SessionLost) as caught:
                session.execute("x")
            assert caught.value.cause == "replica-gone"
        client.close()


def test_two_replicas_share_the_sessions_and_keep_their_own() -> None:
    with (
        running(*FLAGS, "--replica-name", "a") as (first, process),
        running(*FLAGS, "--replica-name", "b") as (second, _),
        SessionClient(f"{first},{second}", timeout_s=5.0) as client,
    ):
        sessions = [client.create() for _ in range(4)]
        assert sorted(one.replica for one in sessions) == ["a", "a", "b", "b"]
        # One that is full is passed by, though a call would wait there for half a minute.
        with SessionClient(first) as only:
            rest = only.create(count=10)
            began = time.monotonic()
            passed = [client.create() for _ in range(3)]
            assert {one.replica for one in passed} == {"b"}
            assert time.monotonic() - began < 15
            for one in (*passed, *rest):
                one.close()
        for number, session in enumerate(sessions):
            session.execute(f"x = {number}")
        process.send_signal(signal.SIGKILL)
        process.wait()
        for number, session in enumerate(sessions):
            if session.replica == "a":
                with pytest.raises(SessionLost):
                    session.execute("x")
            else:
                assert session.execute("x").plain == number
        assert client.create().replica == "b"


RUN = (
    "import sys; from assay.cli.commands.session import session as s; "
    "sys.exit(s.main(sys.argv[1:], standalone_mode=False))"
)
AT_A_TERMINAL = (
    "import fcntl, signal, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    # what runs the tests in the background may ignore it
    f"signal.signal(signal.SIGINT, signal.default_int_handler); {RUN}"
)


@pytest.mark.parametrize(
    ("script", "code", "out"),
    [
        ("print(1)", 0, "1\n"),
        ("x = 1\n:checkpoint\nx = 2\n:rollback\nx", 0, "1\n"),
        ("1 / 0\n# %%\nprint('never')", 1, ""),
        ("import os; os._exit(3)", 3, ""),
    ],
)
def test_a_piped_script_is_a_session(address: str, script: str, code: int, out: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, "--target", address],
        input=script, capture_output=True, text=True, check=False,
        timeout=90,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, out), done.stderr


class Prompt:
    """A terminal with `assay session` in it."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def until(self, text: bytes) -> bytes:
        seen = b""
        deadline = time.monotonic() + PATIENCE_S
        while text not in seen and time.monotonic() < deadline:
            if select.select([self._terminal], [], [], 0.1)[0]:
                seen += os.read(self._terminal, 4096)
        assert text in seen, seen
        return seen

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())


@contextmanager
def prompt(address: str, home: Path) -> Iterator[Prompt]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", AT_A_TERMINAL, "--target", address],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, "XDG_STATE_HOME": str(home), "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Prompt(ours)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_who_is_interrupted_holds_no_lock_of_grpc(
    client: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A KeyboardInterrupt within one left it locked, and every later call waited for ever."""
    of_an_ended_call = {"__del__", "code", "details", "trailing_metadata"}
    enter, taken = threading.Condition.__enter__, set()

    def noted(condition: threading.Condition) -> bool:
        if threading.get_ident() == threading.main_thread().ident:
            code = sys._getframe(1).f_code
            if code.co_filename.endswith("grpc/_channel.py"):
                taken.add(code.co_name)
        return enter(condition)

    monkeypatch.setattr(threading.Condition, "__enter__", noted)
    with client.create() as session:
        assert session.execute("print(1)\n6 * 7").plain == 42
        stream = session.stream("print(1, flush=True)\nimport time; time.sleep(600)")
        next(stream)
        stream.close()
        session.checkpoint()
        assert session.execute("1").plain == 1
    assert taken <= of_an_ended_call


def test_a_prompt_streams_interrupts_and_remembers(address: str, tmp_path: Path) -> None:
    with prompt(address, tmp_path) as typed:
        typed.until(b">>> ")
        typed.type("x = 1\n")
        assert b"CPU" in typed.until(b">>> ")
        typed.type("for n in range(2):\n")
        typed.until(b"... ")
        typed.type("    print('n', n)\n\n")
        assert b"n 0\r\nn 1" in typed.until(b">>> ")
        typed.type("print('sleeping', flush=True); import time; time.sleep(600)\n")
        typed.until(b"sleeping\r\n")
        typed.type("\x03")
        assert b"interrupted" in typed.until(b">>> ")
        typed.type("x + 41\n")
        assert b"42" in typed.until(b">>> ")
        typed.type(":fork\n")
        typed.until(b"fork-1 >>> ")
        typed.type("\x04")
    history = (tmp_path / "assay" / "session_history").read_text()
    assert "x + 41" in history
