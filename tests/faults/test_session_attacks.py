"""One session against another: a stranger, a sibling, its parent, its fork, its own checkpoint.

Data-driven over tests/abuse/programs/sessions. For each program and relation: it gains nothing, its
victim notices nothing, and whoever stands by goes on as before. A control runs the same programs
against sessions without walls (tests/sessions_naive.py), where they work.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import sessions_residue as residue
import sessions_wire as support
from abuse import canaries, sessions
from sessions_wire import Cell, Server, Session

pytestmark = [
    pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks"),
    pytest.mark.timeout(1200),  # the canaries are planted by one file at a time
]
ATTACKS = sessions.load()
WALL_S = 20.0


@dataclass(frozen=True, slots=True)
class Target:
    """A server with canaries around it, and a session that stands by."""

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


@pytest.fixture
def unwalled() -> Iterator[Server]:
    with support.naive() as server:
        yield server


class Scene:
    """An attacker and a victim in one relation."""

    def __init__(self, server: Server, relation: str) -> None:
        self.server, self.relation = server, relation
        self.token = uuid.uuid4().hex
        self.opened: list[Session] = []
        self.point = ""
        first = self._keep(server.one())
        match relation:
            case "stranger":
                self.victim, self.attacker = first, self._keep(server.one())
            case "sibling":
                self.victim, self.attacker = map(self._keep, first.fork(2))
            case "parent":
                [self.attacker] = map(self._keep, first.fork())
                self.victim = first
            case "child":
                [self.victim] = map(self._keep, first.fork())
                self.attacker = first
            case "checkpoint" | "ancestor":
                self.victim = first
                self._prepare(sockets=False)
                self.point = first.checkpoint()
                self.attacker = first
                if relation == "ancestor":
                    [self.attacker] = map(self._keep, first.fork(checkpoint=self.point))
                return
            case _:
                raise AssertionError(relation)
        self._prepare(sockets=True)

    def _keep(self, session: Session) -> Session:
        self.opened.append(session)
        return session

    def _prepare(self, *, sockets: bool) -> None:
        cell = self.victim.execute(sessions.victim(self.token, sockets=sockets))
        assert cell.stdout == "READY\n", cell.texts

    def verify(self) -> list[str]:
        """What harm was done, in the victim's words."""
        if self.relation == "ancestor":
            found = [self.victim.execute(sessions.VERIFY)]
            self.victim.rollback(self.point)
        elif self.relation == "checkpoint":
            found = []
            self.victim.rollback(self.point)
        else:
            found = []
        found.append(self.victim.execute(sessions.VERIFY))
        return [cell.texts for cell in found if cell.stdout != "INTACT\n"]

    def close(self) -> None:
        self.server.close_all(self.opened)


def assert_gained_nothing(attack: sessions.Attack, cell: Cell, token: str) -> None:
    shown = f"{attack.name}: {cell.end} {cell.texts[-3000:]}"
    for sign in ("ESCAPED", "BROKEN", canaries.VALUE, token):
        lines = [line for line in cell.texts.splitlines() if sign in line]
        assert not lines, (lines[:20], shown)
    assert cell.end in attack.ends, shown
    assert cell.end != "completed" or "TRIED" in cell.stdout, shown


@pytest.mark.parametrize("relation", sessions.RELATIONS)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_on_another_session_gains_nothing(
    target: Target, attack: sessions.Attack, relation: str
) -> None:
    if relation not in attack.relations:
        pytest.skip("not meant for it")
    scene = Scene(target.server, relation)
    try:
        cell = scene.attacker.execute(attack.cell, wall_s=WALL_S)
        assert_gained_nothing(attack, cell, scene.token if relation != "checkpoint" else "\0")
        assert scene.verify() == []
        count = target.bystander.execute("count += 1; count")
        assert count.end == "completed"
        fresh = target.server.one()
        assert fresh.value("6 * 7") == "42"
        fresh.close()
    finally:
        scene.close()
    assert target.canaries.visitors() == []
    assert residue.left_behind(target.server.pid, target.before) == []


@pytest.mark.exhaustive  # the server without walls now and then hangs under its attacks
@pytest.mark.parametrize(
    "attack",
    [a for a in ATTACKS if a.control or a.control_by_victim],
    ids=lambda attack: attack.name,
)
def test_without_walls_the_attack_works(unwalled: Server, attack: sessions.Attack) -> None:
    scene = Scene(unwalled, "sibling")
    try:
        cell = scene.attacker.execute(attack.cell, wall_s=WALL_S)
        assert "BROKEN" not in cell.texts, cell.texts
        if attack.control:
            assert f"ESCAPED {attack.control}" in cell.stdout, cell.texts
        if attack.control_by_victim:
            assert scene.verify() != []
    finally:
        scene.close()


@pytest.mark.exhaustive
def test_a_victim_that_was_left_alone_says_so(unwalled: Server) -> None:
    for relation in sessions.RELATIONS:
        scene = Scene(unwalled, relation)
        assert scene.verify() == [], relation
        scene.close()


def test_every_program_says_what_it_is() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 50
    for attack in ATTACKS:
        assert attack.about, attack.name
        assert set(attack.relations) <= set(sessions.RELATIONS), attack.name
        compile(attack.cell, attack.name, "exec")
