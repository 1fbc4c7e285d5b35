"""The hostile programs of both suites, as cells: in a session, in a fork of it, after a checkpoint.

Data-driven over tests/abuse/manifest.json and, where it is present, ../shared/abuse/manifest.json.
Each runs in the live session after a checkpoint and in a fork at once. Then the session is rolled
back, and must be as it was. Who stands by goes on counting, a later session works, no canary is
touched, and nothing stays.
"""

# ruff: noqa: E501  # cells are data

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

import sessions_residue as residue
import sessions_wire as support
from abuse import canaries, corpus
from sessions_wire import Cell, Refused, Server, Session

pytestmark = [
    pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks"),
    pytest.mark.timeout(1200),  # the canaries are planted by one file at a time
]
PROGRAMS = [*corpus.load(corpus.OURS), *corpus.load(corpus.SHARED)]
COMMANDS = {"c": "gcc -O1 -o m main.c -lm -lpthread 2>&1 && ./m", "bash": "bash main.sh"}
LIMITS = {"memory_bytes": 256 << 20, "disk_bytes": 32 << 20, "cell_wall_time": 10}
STDIN = """
import os, sys
with open("stdin.txt", "wb") as file: file.write({stdin!r})
_stdin = os.open("stdin.txt", os.O_RDONLY)
os.dup2(_stdin, 0)
os.close(_stdin)
sys.stdin = open(0, closefd=False)
"""
BY_DESIGN = {
    "setgid 1000": "the group of every branch, while the user differs",
    "setegid 1000": "the same",
    "CapPrm 0x200080": "what a copy needs, of its family's own users; each use is asked for",
    "inherited fd 1000 0o140000": "its line to the host",
    "inherited fd 1001 0o140000": "its line to its keeper",
}
"""What the programs take for a gain, as no run of a single program has it."""
STATE = "state = {'x': [1, 2]}\nimport random\nrandom.seed(5)\nopen('kept', 'w').write('kept')"
DIGEST = """
import gc, os, random, signal, sys, threading
print(state, sorted(n for n in globals() if not n.startswith("_")), os.getcwd(), sorted(os.listdir()),
      open("kept").read(), hash(random.getstate()[1]), sys.path, sys.getrecursionlimit(),
      threading.active_count(), gc.isenabled(), len(os.listdir("/proc/self/fd")), sorted(os.environ.items()),
      os.listdir("/tmp"), os.listdir("/dev/shm"), [str(signal.getsignal(n)) for n in (2, 10, 15, 17)],
      len(open("/proc/self/mountinfo").readlines()), sys.stdin.fileno(), print.__module__, len(dir(__builtins__)))
"""


@dataclass(frozen=True, slots=True)
class Target:
    server: Server
    canaries: canaries.Canaries
    bystander: Session
    before: residue.Holdings


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with canaries.planted() as planted, support.sandbox() as server:
        bystander = server.one()
        assert bystander.execute("count = 0").end == "completed"
        server.one().close()
        yield Target(server, planted, bystander, residue.at_rest(server.pid))


def cell_of(hostile: corpus.Hostile) -> str:
    """The program as text of a cell, or a cell that runs it."""
    if hostile.language == "python":
        text = hostile.content.decode("utf-8", "surrogateescape")
        try:
            text.encode()
        except UnicodeEncodeError:
            return f"exec(compile({hostile.content!r}, 'main.py', 'exec'))"
        call = f"\n{hostile.entry}(2, 3)\n" if hostile.entry else ""
        return text + call if "__future__" not in text else f"exec({text!r}){call}"
    return (
        "import subprocess\n"
        f"ran = subprocess.run({COMMANDS[hostile.language]!r}, shell=True, stdin=open('stdin.txt'))\n"
        "print('status', ran.returncode)"
    )


def attack(session: Session, hostile: corpus.Hostile) -> Cell | None:
    """What came of it; None where its relative, which does the same, used up their memory."""
    try:
        return _attack(session, hostile)
    except Refused as refused:
        refused.must_be({"SESSION_LOST"})
        if "relatives" not in refused.metadata["cause"]:
            raise
        return None


def _attack(session: Session, hostile: corpus.Hostile) -> Cell:
    prepared = session.execute(STDIN.format(stdin=hostile.stdin))
    assert prepared.end == "completed", prepared.texts
    if hostile.language != "python":
        session.put({f"main{hostile.path.suffix}": hostile.content})
    cell = session.execute(cell_of(hostile), wall_s=min(hostile.wall_limit_s, 6.0))
    try:
        session.execute("1 + 1", wall_s=1)
    except Refused as refused:
        refused.must_be({"SESSION_ENDED"})
    return cell


def escapes(hostile: corpus.Hostile, cell: Cell) -> list[str]:
    """Lines that show that an attack worked; a traceback may quote the program."""
    own = {line.strip() for line in hostile.content.decode("utf-8", "replace").splitlines()}
    signs = (*hostile.forbid_output, canaries.VALUE)
    return [
        line[:200]
        for line in cell.texts.splitlines()
        if line.strip() not in own
        and any(sign in line for sign in signs)
        and not line.strip().endswith(tuple(BY_DESIGN))
    ]


RUN = [p for p in PROGRAMS if p.language == "python" or p.language in COMMANDS]


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(item, id=item.name, marks=[pytest.mark.slow] if item.slow else [])
        for item in RUN
    ],
)
def test_a_hostile_program_gains_nothing_in_a_session(
    target: Target, hostile: corpus.Hostile
) -> None:
    if hostile.language == "c" and shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    server = target.server
    session = server.one(**LIMITS)
    opened = [session]
    try:
        assert session.execute(STATE).end == "completed"
        before = session.execute(DIGEST)
        assert before.end == "completed", before.texts
        point = session.checkpoint()
        [fork] = session.fork()
        opened.append(fork)
        with ThreadPoolExecutor(2) as pool:
            cells = list(pool.map(attack, (session, fork), (hostile, hostile)))
        ran = [cell for cell in cells if cell is not None]
        assert ran
        for cell in ran:
            assert escapes(hostile, cell) == []
            assert cell.end != "unspecified"
        session.rollback(point)
        assert session.execute(DIGEST).stdout == before.stdout
        count = target.bystander.execute("count += 1; count")
        assert count.end == "completed", count.texts
        later = server.one()
        opened.append(later)
        assert later.value("sum(range(9))") == "36"
    finally:
        server.close_all(opened)
    assert target.canaries.visitors() == []
    assert residue.left_behind(server.pid, target.before) == []


def test_the_bystander_has_counted_every_program(target: Target) -> None:
    """It was there all the time, one process with one state."""
    count = int(target.bystander.value("count"))
    assert target.bystander.value("count + 1") == str(count + 1)


def test_a_text_that_shows_an_escape_would_be_seen(target: Target) -> None:
    hostile = next(item for item in RUN if item.forbid_output)
    session = target.server.one()
    cell = session.execute(f"print({hostile.forbid_output[0]!r}, 'it worked')")
    session.close()
    assert escapes(hostile, cell)
