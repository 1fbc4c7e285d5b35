"""Programs that know how a copy is made, and do not keep to it.

Each of tests/abuse/programs/handshakes is a cell that changes, in its own process, what it does
when its keeper asks it for a copy; then it is asked. `# copies:` says what may come of it: `made`,
or `refused` with a reason of the caller's or the program's. Never is it a fault of ours, nor does
anything of it reach a sibling, a stranger, or what the host holds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import sessions_residue as residue
import sessions_wire as support
from sessions_wire import Refused, Server, Session

pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks")
REASONS = {"CANNOT_FORK", "SESSION_ENDED", "CHECKPOINT_LOST"}
MOST_S = 25.0  # for a keeper that waits in vain


@dataclass(frozen=True, slots=True)
class Program:
    """A program and what its header says."""

    name: str
    body: str
    may: frozenset[str]
    slow: bool


def load() -> list[Program]:
    programs = []
    for path in sorted(support.HANDSHAKES.glob("[a-z]*.py")):
        facts = dict(
            line[2:].split(": ", 1)
            for line in path.read_text().splitlines()
            if line.startswith("# ") and ": " in line
        )
        may = frozenset(facts["copies"].split())
        programs.append(Program(path.stem, path.read_text(), may, "slow" in facts))
    return programs


PROGRAMS = load()


@dataclass(frozen=True, slots=True)
class Target:
    server: Server
    before: residue.Holdings


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with support.sandbox() as server:
        server.one().close()
        yield Target(server, residue.at_rest(server.pid))


def ask_for_copies(session: Session) -> list[str]:
    """What comes of a checkpoint and a fork: "made", or the reason."""
    found = []
    for copy in (session.checkpoint, session.fork):
        began_s = time.monotonic()
        try:
            made = copy()
            found.append("made")
            if isinstance(made, list):
                for one in made:
                    assert "ESCAPED" not in one.execute("1").texts
                    one.close()
            else:
                rolled(session, made)
        except Refused as refused:
            refused.must_be(REASONS)
            found.append("refused")
        assert time.monotonic() - began_s < MOST_S
    return found


def rolled(session: Session, point: str) -> None:
    """A checkpoint of such a program may be lost, and the program's own doing."""
    try:
        session.rollback(point)
        session.execute("1", wall_s=2)
    except Refused as refused:
        refused.must_be(REASONS)


@pytest.mark.parametrize(
    "program",
    [pytest.param(p, id=p.name, marks=[pytest.mark.slow] if p.slow else []) for p in PROGRAMS],
)
def test_who_breaks_the_rules_of_copying_harms_nobody(target: Target, program: Program) -> None:
    server = target.server
    first = server.one()
    first.execute("state = 41")
    [sibling] = first.fork()
    stranger = server.one()
    opened = [first, sibling, stranger]
    try:
        changed = first.execute(support.PRELUDE + program.body)
        assert changed.end == "completed", changed.texts
        came = ask_for_copies(first)
        assert set(came) <= program.may, came
        for _ in range(2):
            try:
                cell = first.execute("40 + 2", wall_s=2)
                assert "ESCAPED" not in cell.texts
                assert cell.end != "completed" or cell.value == "42", cell
            except Refused as refused:
                refused.must_be({"SESSION_ENDED"})
        assert sibling.value("state + 1") == "42"
        [grown] = sibling.fork()
        opened.append(grown)
        point = sibling.checkpoint()
        sibling.execute("state = 0")
        sibling.rollback(point)
        assert (sibling.value("state"), grown.value("state")) == ("41", "41")
        assert stranger.value("6 * 7") == "42"
    finally:
        server.close_all(opened)
    assert residue.left_behind(server.pid, target.before) == []


def test_every_program_says_what_may_come_of_it() -> None:
    assert len(PROGRAMS) >= 40
    for program in PROGRAMS:
        assert program.may <= {"made", "refused"}, program.name
        compile(support.PRELUDE + program.body, program.name, "exec")
