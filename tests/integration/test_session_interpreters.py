"""Cells that mean to break their interpreter, within the walls of real sessions."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator

import pytest

import sessions_wire as support
from session_cells_tables import HOSTILE, NASTY
from sessions_wire import Cell, Refused, Server, Session, pb

pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with support.serving() as server:
        yield server


@pytest.mark.parametrize("name", HOSTILE)
def test_no_python_cell_breaks_its_session(server: Server, name: str) -> None:
    session = server.one()
    session.execute("kept = 41")
    assert session.execute(HOSTILE[name]).end in {"completed", "raised", "exited"}
    session.execute("pass")
    assert session.execute("7 * 6").value == "42"
    if name != "no globals":
        assert session.execute("kept + 1").value == "42"
    session.close()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_no_shell_cell_breaks_its_session(server: Server) -> None:
    wrong = []
    for code, status, out in NASTY:
        session = server.one(language="bash")
        session.execute("kept=41; f() { echo $((kept + 1)); }")
        ran = session.execute(code)
        ends_well = ran.end == "completed" and status in {None, ran.raw.exit_code}
        if not ends_well or out not in {None, ran.raw.stdout.data}:
            wrong.append((code, ran))
        if session.execute("set +u; f").stdout != "42\n":
            wrong.append((code, "then"))
        session.close()
    assert wrong == []


def test_a_shell_is_copied_as_text(server: Server) -> None:
    session = server.one(language="bash", files={"sub/a": b""})
    session.execute("x=5; cd sub; f() { echo $x in ${PWD##*/}; }; alias q='echo quick'")
    point = session.checkpoint()
    session.execute("x=6; cd ..")
    left, right = session.fork(2)
    left.execute("x=7")
    session.rollback(point)
    said = [one.execute("q; f").stdout for one in (session, left, right)]
    assert said == ["quick\n5 in sub\n", "quick\n7 in box\n", "quick\n6 in box\n"]
    session.execute("sleep 100 &")
    with pytest.raises(Refused, match="a background job"):
        session.checkpoint()


@pytest.mark.parametrize(
    ("language", "wait", "after"),
    [("python", "import time; time.sleep(99)", "x"), ("python", "while True: pass", "x"),
     ("python", "await __import__('asyncio').sleep(99)", "x"), ("bash", "sleep 99", "echo $x"),
     ("bash", "while :; do :; done", "echo $x")],
)  # fmt: skip
def test_time_ends_a_cell_and_leaves_the_session(
    server: Server, language: str, wait: str, after: str
) -> None:
    session = server.one(language=language)
    session.execute("x=1")
    ran = session.execute(wait, wall_s=0.5)
    assert (ran.end, ran.over) == ("wall_time_limit", False)
    ran = session.execute(after)
    assert (ran.value or ran.stdout).strip() == "1"


def test_time_ends_a_cell_that_shows_without_end(server: Server) -> None:
    """No half of a message is left on the way, wherever the interrupt comes."""
    session = server.one()
    session.execute("x = 'x' * 150_000")
    for number in range(8):
        ran = session.execute("for _ in range(50): display(x)\nwhile True: pass", wall_s=0.05)
        assert (ran.end, ran.over) == ("wall_time_limit", False), number
    assert session.execute("len(x)").value == "150000"


@pytest.mark.parametrize("text", ["str(list(range(3000)))", "'[{,' * 5000", "'\\ud800,' * 2000"])
def test_an_error_says_what_it_likes(server: Server, text: str) -> None:
    session = server.one()
    ran = session.execute(f"text = {text}; raise ValueError(text)")
    assert (ran.end, ran.over, ran.error[0]) == ("raised", False, "ValueError")
    assert len(ran.error[1]) > 4000
    assert session.execute("6 * 7").value == "42"


@pytest.mark.parametrize("language", ["python", "bash"])
def test_a_call_that_is_cancelled_at_once_leaves_the_session(server: Server, language: str) -> None:
    """Also where the interrupt comes before the cell."""
    session = server.one(language=language)
    code = {"python": "while True: pass", "bash": "sleep 99"}[language]
    session.execute("x=1")
    for number in range(12):
        request = pb.ExecuteRequest(session_id=session.id, code=code)
        call = server.stub.Execute(request, 30, metadata=(("assay-replica", session.raw.replica),))
        time.sleep(number * 0.0002)
        call.cancel()
        assert _when_free(session, "x=2").end == "completed"


def _when_free(session: Session, code: str) -> Cell:
    for _ in range(1_000):
        try:
            return session.execute(code)
        except Refused as refused:
            if refused.reason != "SESSION_BUSY":
                raise
            time.sleep(0.01)
    raise AssertionError("it stays busy")


def test_what_threads_write_as_the_cell_ends_is_in_both_or_neither(server: Server) -> None:
    """`execute` compares the pieces with the result."""
    session = server.one()
    session.execute(
        "import threading\nstop = threading.Event()\n"
        "def f():\n    while not stop.is_set(): print('x' * 99, flush=True); stop.wait(0.0001)\n"
        "for _ in range(4): threading.Thread(target=f).start()"
    )
    for number in range(150):
        assert session.execute(f"{number}").value == str(number)
    session.execute("stop.set()")


def test_a_large_value_and_display_travel(server: Server) -> None:
    session = server.one()
    ran = session.execute(
        "class A:\n    def _repr_html_(self): return 'x' * 1_000_000\ndisplay(A()); A()"
    )
    assert ran.end == "completed"
    assert len(ran.raw.value.data["text/html"]) == 1_000_000
