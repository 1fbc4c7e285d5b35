"""Things of ours break, limits are passed, callers leave: each with its own reason, and nothing
of it reaches another session.

After each fault sessions that stood by answer rightly, one of the same family and a stranger.
"""

# ruff: noqa: E501  # cells are data

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import sessions_residue as residue
import sessions_wire as support
from assay.api.session.v1 import session_pb2 as pb
from process_tree import descendants
from sessions_wire import Refused, Server

pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks")
NAME = "import ctypes; _ = ctypes.CDLL(None).prctl(15, b'{}', 0, 0, 0)"
LIMIT = 160 << 20


@dataclass(frozen=True, slots=True)
class Target:
    server: Server
    before: residue.Holdings


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with support.sandbox() as server:
        server.one().close()
        yield Target(server, residue.at_rest(server.pid))


@pytest.fixture
def server(target: Target) -> Iterator[Server]:
    target.server.opened.clear()
    yield target.server
    target.server.close_opened()
    assert residue.left_behind(target.server.pid, target.before) == []


@pytest.fixture
def own_server() -> Iterator[Server]:
    with support.sandbox() as server:
        yield server


def named(server: Server, name: str) -> list[int]:
    """Processes of the server that call themselves so, as `NAME` makes them."""
    found = []
    for pid in descendants(server.pid):
        try:
            if Path(f"/proc/{pid}/comm").read_text() == f"{name}\n":
                found.append(pid)
        except OSError:
            continue
    return found


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def eventually(condition: Callable[[], object], limit_s: float = 20.0) -> None:
    ends_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends_s, "it did not come to hold"
        time.sleep(0.02)


def reason_of(call: Callable[[], object]) -> str:
    """The reason with which a call is refused."""
    with pytest.raises(Refused) as refused:
        call()
    return refused.value.reason


def reason_comes(call: Callable[[], object], reason: str) -> None:
    """The call is refused so, at once or soon."""
    seen = []

    def refused() -> bool:
        try:
            call()
        except Refused as error:
            seen.append(error.reason)
        return reason in seen

    eventually(refused)


class Family:
    """A session with a checkpoint, a sibling and a stranger, which know a number."""

    def __init__(self, server: Server, **limits: float) -> None:
        self.first = server.one(**limits)
        self.first.execute("x = 41\n" + NAME.format("point"))
        self.point = self.first.checkpoint()
        self.first.execute(NAME.format("live"))
        [self.sibling] = self.first.fork()
        self.sibling.execute(NAME.format("sibling"))
        self.stranger = server.one()
        self.stranger.execute("x = 1")
        self.server = server

    def assert_well(self, *, sibling: bool = True) -> None:
        if sibling:
            assert self.sibling.value("x + 1") == "42"
        assert self.stranger.value("x") == "1"
        fresh = self.server.one()
        assert fresh.value("6 * 7") == "42"
        fresh.close()

    def close(self) -> None:
        self.server.close_all([self.first, self.sibling, self.stranger])


@pytest.fixture
def family(server: Server) -> Iterator[Family]:
    made = Family(server)
    yield made
    made.close()


def test_a_session_killed_from_outside_is_lost_and_its_checkpoint_serves(family: Family) -> None:
    [pid] = named(family.server, "live")
    os.kill(pid, signal.SIGKILL)
    reason_comes(lambda: family.first.execute("x"), "SESSION_LOST")
    family.assert_well()


def test_a_session_killed_in_a_cell_is_lost(family: Family) -> None:
    [pid] = named(family.server, "live")
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    assert reason_of(lambda: family.first.execute("import time; time.sleep(20)")) == "SESSION_LOST"
    family.assert_well()


def test_a_checkpoint_killed_from_outside_is_lost_and_the_session_goes_on(family: Family) -> None:

    def gone() -> bool:
        """The checkpoint, and copies that are made of it ahead of time."""
        pids = named(family.server, "point")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    eventually(gone)
    reason_comes(lambda: family.first.fork(checkpoint=family.point), "CHECKPOINT_LOST")
    reason_comes(lambda: family.first.rollback(family.point), "CHECKPOINT_LOST")
    assert family.first.value("x") == "41"
    family.assert_well()


def test_a_keeper_killed_costs_its_family(family: Family) -> None:
    [pid] = named(family.server, "live")
    os.kill(parent(pid), signal.SIGKILL)
    reason_comes(lambda: family.first.execute("x"), "SESSION_LOST")
    reason_comes(lambda: family.sibling.execute("x"), "SESSION_LOST")
    family.assert_well(sibling=False)


def test_a_zygote_killed_costs_its_sessions_and_the_next_ones_work(own_server: Server) -> None:
    made = Family(own_server)
    [pid] = named(own_server, "live")
    os.kill(parent(parent(pid)), signal.SIGKILL)
    for session in (made.first, made.sibling, made.stranger):
        reason_comes(lambda: session.execute("x"), "SESSION_LOST")  # noqa: B023  # called at once

    def works() -> bool:
        try:
            return own_server.one().value("6 * 7") == "42"
        except Refused as refused:
            refused.must_be({"WORKER_DIED", "STARTING"})
            return False

    eventually(works)


@pytest.mark.slow
def test_a_host_killed_costs_its_sessions_and_the_next_ones_work(own_server: Server) -> None:
    made = Family(own_server)
    before = descendants(residue.host(own_server.pid))
    os.kill(residue.host(own_server.pid), signal.SIGKILL)
    for session in (made.first, made.sibling, made.stranger):
        reason_comes(lambda: session.execute("x"), "SESSION_LOST")  # noqa: B023  # called at once
    eventually(lambda: not before & {p for p in before if Path(f"/proc/{p}").exists()})

    def works() -> bool:
        try:
            return own_server.one().value("6 * 7") == "42"
        except Refused as refused:
            if refused.code != "UNAVAILABLE":
                refused.must_be({"WORKER_DIED", "STARTING"})
            return False

    eventually(works)


def test_a_server_that_is_gone_leaves_nothing() -> None:
    with support.sandbox() as server:
        made = Family(server)
        below = descendants(server.pid)
        assert len(below) > 5
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(Refused) as refused:
            made.first.execute("x")
        assert refused.value.code == "UNAVAILABLE"
        eventually(lambda: not [pid for pid in below if Path(f"/proc/{pid}").exists()])


def test_the_over_spender_alone_dies_of_its_familys_memory(server: Server) -> None:
    family = Family(server, memory_bytes=LIMIT)
    # Its checkpoint holds more than the session itself.
    family.first.execute("big = bytearray(70 << 20)")
    point = family.first.checkpoint()
    family.first.execute("del big")
    cell = family.first.execute("spent = []\nwhile True: spent.append(bytearray(1 << 20))")
    assert cell.end == "memory_limit", cell.texts
    assert cell.over
    assert reason_of(lambda: family.first.execute("x")) == "SESSION_ENDED"
    assert family.sibling.value("x + 1") == "42"
    family.first.rollback(point)
    assert family.first.value("len(big) >> 20") == "70"
    family.first.rollback(family.point)
    assert family.first.value("x") == "41"
    family.assert_well()
    family.close()


def test_a_fork_that_spends_its_memory_takes_neither_parent_nor_sibling(server: Server) -> None:
    family = Family(server, memory_bytes=LIMIT)
    [fork] = family.first.fork()
    cell = fork.execute("spent = []\nwhile True: spent.append(bytearray(1 << 20))")
    assert cell.end == "memory_limit", cell.texts
    assert family.first.value("x") == "41"
    family.first.rollback(family.point)
    assert family.first.value("x") == "41"
    family.assert_well()
    fork.close()
    family.close()


def test_files_that_do_not_fit_into_memory_are_the_programs_doing(server: Server) -> None:
    family = Family(server, memory_bytes=96 << 20)
    cell = family.first.execute(
        "for n in range(60):\n    with open(f'f{n}', 'wb') as file: file.write(bytes(1 << 20))"
    )
    assert cell.end in {"completed", "memory_limit", "raised"}, cell
    for call in (family.first.checkpoint, family.first.fork, lambda: family.first.execute("x")):
        try:
            made = call()
            server.close_all(made if isinstance(made, list) else [])
        except Refused as refused:
            refused.must_be({"CANNOT_FORK", "TOO_MANY_COPIES", "SESSION_ENDED"})
    family.assert_well()
    family.close()


def test_a_full_disk_is_the_programs_to_see_and_clear(server: Server) -> None:
    family = Family(server, disk_bytes=8 << 20)
    fill = "import os\nwith open('f', 'wb') as file:\n    while True: file.write(bytes(1 << 20))"
    assert family.first.execute(fill).error[0] == "OSError"
    assert reason_of(lambda: family.first.put({"g": bytes(1 << 20)})) == "DISK_FULL"
    point = family.first.checkpoint()
    assert family.first.execute("os.unlink('f')").end == "completed"
    family.first.put({"g": bytes(1 << 20)})
    family.first.rollback(point)
    assert family.first.value("os.path.getsize('f') > 6 << 20") == "True"
    assert family.first.value("x") == "41"
    family.assert_well()
    family.close()


ENDS = {
    "exits": ("import os; os._exit(5)", "died"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "died"),
    "aborts": ("import os; os.abort()", "died"),
    "becomes another program": ("import os; os.execvp('true', ['true'])", "died"),
    "never ends": ("while True: pass", "wall_time_limit"),
    "does not heed": (
        "import signal; signal.signal(2, signal.SIG_IGN)\nwhile True: pass",
        "wall_time_limit",
    ),
    "stops itself": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "wall_time_limit"),
    "is forbidden": ("import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)", "security_violation"),
    "floods": ("while True: print('x' * 100000)", "output_limit"),
    "closes its line": (
        "import os, time; os.closerange(3, 5000); time.sleep(9)",
        "protocol_violation",
    ),
}
LATER = {
    "exits later": "import os, threading, time\nthreading.Timer(0.3, os._exit, (5,)).start()",
    "crashes later": (
        "import ctypes, threading\nthreading.Timer(0.3, ctypes.string_at, (0,)).start()"
    ),
    "is forbidden later": (
        "import ctypes, threading\n"
        "threading.Timer(0.3, lambda: ctypes.CDLL(None).ptrace(0, 0, 0, 0)).start()"
    ),
    "spends later": (
        "import threading\nheld = []\ndef more():\n    while True: held.append(bytearray(1 << 20))\n"
        "threading.Timer(0.3, more).start()"
    ),
    "is limited later": (
        "import resource, threading\ndef spin():\n    while True: pass\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nthreading.Thread(target=spin).start()"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_what_a_program_does_is_a_verdict(family: Family, name: str) -> None:
    code, end = ENDS[name]
    cell = family.first.execute(code, wall_s=4.0)
    assert cell.end == end, cell
    if cell.over:
        assert reason_of(lambda: family.first.execute("x")) == "SESSION_ENDED"
    family.first.rollback(family.point)
    assert family.first.value("x") == "41"
    family.assert_well()


@pytest.mark.parametrize("name", LATER)
def test_what_a_program_does_between_cells_is_its_own_end(server: Server, name: str) -> None:
    family = Family(server, memory_bytes=LIMIT)
    assert family.first.execute(LATER[name]).end in {"completed", "died", "memory_limit"}
    reason_comes(lambda: family.first.execute("x"), "SESSION_ENDED")
    family.first.rollback(family.point)
    assert family.first.value("x") == "41"
    family.assert_well()
    family.close()


MADE_FAULTS = {
    "kills itself": "import os\nos.kill(os.getpid(), 9)",
    "kills itself by its child": (
        "import os, time\nif os.fork() == 0:\n    os.kill(os.getppid(), 9)\n    os._exit(0)\ntime.sleep(0.5)"
    ),
    "lowers its limit": (
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass"
    ),
    "joins a group that is killed": (
        "import os, threading, time\n"
        "child = os.fork()\nif child == 0:\n    os.setpgid(0, 0)\n    time.sleep(20)\n    os._exit(0)\n"
        "time.sleep(0.1)\nover = time.monotonic() + 2\n"
        "def toggle():\n    while time.monotonic() < over:\n"
        "        for group in (child, 0):\n            try: os.setpgid(0, group)\n            except OSError: pass\n"
        "t = threading.Thread(target=toggle); t.start()\n"
        "while time.monotonic() < over:\n    try: os.kill(-child, 9)\n    except OSError: pass\nt.join()"
    ),
    "kills a thread to come": (
        "import os, threading, time\nover = time.monotonic() + 2\n"
        "def kill():\n    while time.monotonic() < over:\n"
        "        last = max(map(int, os.listdir('/proc/self/task')))\n"
        "        for pid in range(last + 1, last + 4):\n            try: os.kill(pid, 9)\n            except OSError: pass\n"
        "t = threading.Thread(target=kill); t.start()\n"
        "while time.monotonic() < over:\n    u = threading.Thread(target=int); u.start(); u.join()\nt.join()"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE_FAULTS)
def test_a_program_cannot_make_its_end_a_fault_of_ours(family: Family, name: str) -> None:
    """Else what is bad for it would be dropped instead of judged."""
    cell = family.first.execute(MADE_FAULTS[name], wall_s=6.0)
    assert cell.end != "unspecified"
    try:
        family.first.execute("x", wall_s=2.0)
    except Refused as refused:
        refused.must_be({"SESSION_ENDED"})
    family.assert_well()


def test_a_lease_that_nobody_renews_expires(server: Server) -> None:
    session = server.one(lease_s=1.0)
    for _ in range(4):
        assert session.value("1 + 1") == "2"
        time.sleep(0.4)
    time.sleep(1.5)
    assert reason_of(lambda: session.execute("1")) == "LEASE_EXPIRED"


def test_the_budget_of_a_life_ends_it(server: Server) -> None:
    session = server.one(cpu_time=1.0, cell_cpu_time=1.0)
    ends = [session.execute("import time\nt = time.process_time()\nwhile time.process_time() < t + 0.6: pass").end]  # fmt: skip
    cell = session.execute("while True: pass")
    assert (ends, cell.end, cell.over) == (["completed"], "budget_spent", True)
    assert reason_of(lambda: session.execute("1")) == "SESSION_ENDED"
    session.close()


def test_what_is_left_running_is_charged_to_the_budget(server: Server) -> None:
    """A process that outlives its cell burns the session's own time, not the machine's."""
    session = server.one(cpu_time=2.0)
    session.execute(
        "import os\nfor _ in range(2):\n    if os.fork() == 0:\n        while True: pass"
    )

    def spent() -> bool:
        try:
            cell = session.execute("1")
        except Refused as refused:
            return refused.reason == "SESSION_ENDED"
        return cell.end == "budget_spent"

    eventually(spent, 30.0)
    session.close()


def test_a_caller_that_leaves_interrupts_its_cell(server: Server) -> None:
    session = server.one()
    session.execute("x = 41")
    with pytest.raises(Refused) as refused:
        session.execute("import time; time.sleep(60)", timeout_s=0.5)
    assert refused.value.code == "DEADLINE_EXCEEDED"

    def free() -> bool:
        try:
            return session.value("x") == "41"
        except Refused as busy:
            busy.must_be({"SESSION_BUSY"})
            return False

    eventually(free)
    session.close()


def test_one_cell_at_a_time(server: Server) -> None:
    session = server.one()
    thread = threading.Thread(target=session.execute, args=("import time; time.sleep(1)",))
    thread.start()
    time.sleep(0.4)
    for call in (lambda: session.execute("1"), session.checkpoint, session.fork):
        assert reason_of(call) == "SESSION_BUSY"
    thread.join()
    assert session.value("6 * 7") == "42"
    session.close()


def test_a_machine_that_is_full_refuses_the_next() -> None:
    """... once it has waited as long as its caller does."""
    with support.sandbox("--max-sessions", "2") as server:
        sessions = server.create(2)
        with pytest.raises(Refused) as refused:
            server.call("Create", pb.CreateRequest(), 2.0)
        assert refused.value.reason in {"SESSIONS_FULL", "DEADLINE_EXCEEDED"}
        with pytest.raises(Refused) as refused:
            sessions[0].call("Fork", pb.ForkRequest(session_id=sessions[0].id), 2.0)
        assert refused.value.reason in {"SESSIONS_FULL", "DEADLINE_EXCEEDED"}
        sessions[0].close()
        assert server.one().value("1 + 1") == "2"


def test_a_frozen_host_is_no_answer_and_no_false_one(own_server: Server) -> None:
    session = own_server.one()
    session.execute("x = 41")
    pid = residue.host(own_server.pid)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Refused) as refused:
            session.execute("x", timeout_s=1.0)
        assert refused.value.code == "DEADLINE_EXCEEDED"
    finally:
        os.kill(pid, signal.SIGCONT)
    reason = ""
    for _ in range(200):
        try:
            assert session.value("x") == "41"
            break
        except Refused as busy:
            reason = busy.reason
            assert reason in {"SESSION_BUSY", "SESSION_LOST"}
            time.sleep(0.05)


@pytest.mark.slow
def test_sessions_opened_used_forked_and_killed_at_random() -> None:
    """Every answer is right or a fault; see `bench sessions-soak`, which runs longer."""
    ran = subprocess.run(
        [sys.executable, "-m", "bench", "sessions-soak", "--minutes", "0.5", "--interval-s", "30"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "untrue: 0;" in ran.stdout, ran.stdout
