"""What holds of any session, whatever its cells: against a model in pure Python.

What a session computes depends on its own cells alone: on no neighbour, on no copy of it, and on
nothing that was rolled back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sessions_wire as support
from sessions_model import DIGEST, PRELUDE, Model, Seen, cells
from sessions_wire import Server, Session

pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks")
FEW = settings(max_examples=25, suppress_health_check=list(HealthCheck))
SOME = settings(max_examples=50, suppress_health_check=list(HealthCheck))
POINTS, COPIES = 3, 3  # checkpoints and sessions of a family, at most
few_cells = st.lists(cells, min_size=1, max_size=6)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with support.serving() as running:
        yield running


def opened(server: Server) -> Session:
    session = server.one()
    assert session.execute(PRELUDE).end == "completed"
    return session


def run(session: Session, texts: list[str]) -> list[Seen]:
    return [session.execute(text).seen for text in texts]


class Pair:
    """A real session and its model, with the checkpoints of both."""

    def __init__(self, session: Session, model: Model) -> None:
        self.session, self.model = session, model
        self.points: list[tuple[str, Model]] = []

    def execute(self, text: str) -> None:
        cell = self.session.execute(text)
        assert cell.seen == self.model.execute(text), text
        assert not cell.over

    def agree(self) -> None:
        assert self.session.value(DIGEST) == self.model.copy().execute(DIGEST)[2]


steps = st.one_of(
    st.tuples(st.just("cell"), st.integers(0, 9), cells),
    st.tuples(st.just("cell"), st.integers(0, 9), cells),
    st.tuples(st.just("cell"), st.integers(0, 9), cells),
    st.tuples(st.just("checkpoint"), st.integers(0, 9)),
    st.tuples(st.just("rollback"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("drop"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("fork"), st.integers(0, 9)),
    st.tuples(st.just("fork-of-checkpoint"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("close"), st.integers(0, 9)),
)


def take(step: tuple[object, ...], pairs: list[Pair]) -> None:
    """One step of a history, on both sides."""
    kind, which, *rest = step
    assert isinstance(which, int)
    pair = pairs[which % len(pairs)]
    match kind:
        case "cell":
            pair.execute(str(rest[0]))
        case "checkpoint" if len(pair.points) < POINTS:
            pair.points.append((pair.session.checkpoint(), pair.model.copy()))
        case "rollback" if pair.points:
            point, model = pair.points[int(str(rest[0])) % len(pair.points)]
            pair.session.rollback(point)
            pair.model = model.copy()
        case "drop" if pair.points:
            point, _ = pair.points.pop(int(str(rest[0])) % len(pair.points))
            pair.session.drop(point)
        case "fork" if len(pairs) < COPIES:
            [made] = pair.session.fork()
            pairs.append(Pair(made, pair.model.copy()))
        case "fork-of-checkpoint" if pair.points and len(pairs) < COPIES:
            point, model = pair.points[int(str(rest[0])) % len(pair.points)]
            [made] = pair.session.fork(checkpoint=point)
            pairs.append(Pair(made, model.copy()))
        case "close" if len(pairs) > 1:
            pairs.remove(pair)
            pair.session.close()


@SOME
@given(st.lists(steps, max_size=16))
def test_any_history_is_as_the_model_says(server: Server, history: list[tuple[object, ...]]) -> None:
    pairs = [Pair(opened(server), Model())]
    try:
        for step in history:
            take(step, pairs)
        for pair in pairs:
            pair.agree()
    finally:
        server.close_all([pair.session for pair in pairs])


@FEW
@given(st.lists(few_cells, min_size=2, max_size=4))
def test_a_session_does_not_depend_on_its_neighbours(server: Server, texts: list[list[str]]) -> None:
    """All run at once, strangers and siblings."""
    first = opened(server)
    sessions = [first, *first.fork(len(texts) - 1)]
    strangers = [opened(server) for _ in texts]
    try:
        with ThreadPoolExecutor(2 * len(texts)) as pool:
            found = list(pool.map(run, [*sessions, *strangers], [*texts, *texts]))
        for own, text in zip(found, [*texts, *texts], strict=True):
            model = Model()
            assert own == [model.execute(one) for one in text]
    finally:
        server.close_all([*sessions, *strangers])


@FEW
@given(few_cells, few_cells, few_cells)
def test_rollback_and_the_same_cells_give_the_same(
    server: Server, before: list[str], lost: list[str], after: list[str]
) -> None:
    session = opened(server)
    try:
        run(session, before)
        point = session.checkpoint()
        first = [*run(session, after), session.value(DIGEST)]
        for _ in range(2):
            session.rollback(point)
            run(session, lost)
            session.rollback(point)
            assert [*run(session, after), session.value(DIGEST)] == first
    finally:
        session.close()


@FEW
@given(few_cells, few_cells)
def test_a_fork_equals_a_copy(server: Server, before: list[str], after: list[str]) -> None:
    """Parent, fork and fork of a checkpoint go on alike, and as a session that was never forked."""
    session = opened(server)
    run(session, before)
    point = session.checkpoint()
    family = [session, *session.fork(2), *session.fork(1, checkpoint=point)]
    alone = opened(server)
    run(alone, before)
    try:
        wanted = [*run(alone, after), alone.value(DIGEST)]
        for one in family:
            assert [*run(one, after), one.value(DIGEST)] == wanted
    finally:
        server.close_all([*family, alone])


@FEW
@given(few_cells, few_cells, few_cells)
def test_what_a_fork_does_is_seen_by_nobody_else(
    server: Server, before: list[str], here: list[str], there: list[str]
) -> None:
    session = opened(server)
    run(session, before)
    point = session.checkpoint()
    left, right = session.fork(2)
    try:
        parent, sibling = session.value(DIGEST), right.value(DIGEST)
        assert parent == sibling
        run(left, there)
        assert (session.value(DIGEST), right.value(DIGEST)) == (parent, parent)
        mine = left.value(DIGEST)
        run(session, here)
        assert (left.value(DIGEST), right.value(DIGEST)) == (mine, parent)
        session.rollback(point)
        assert session.value(DIGEST) == parent
        assert left.value(DIGEST) == mine
    finally:
        server.close_all([session, left, right])


@FEW
@given(few_cells)
def test_the_numbers_of_cells_go_back_too(server: Server, texts: list[str]) -> None:
    session = opened(server)
    try:
        point = session.checkpoint()
        for _ in range(2):
            numbers = [session.execute(text).raw.number for text in texts]
            assert numbers == list(range(2, 2 + len(texts)))
            session.rollback(point)
    finally:
        session.close()


@pytest.mark.skipif(support.NAIVE, reason="there each has another folder")
def test_sessions_begin_alike(server: Server) -> None:
    ask = "import random, os; (random.random(), os.getcwd(), os.listdir(), sorted(os.environ))"
    sessions = server.create(3)
    try:
        assert len({session.value(ask) for session in sessions}) == 1
    finally:
        server.close_all(sessions)


def test_reseeded_copies_differ_and_do_so_alike_each_time(server: Server) -> None:
    ask = "import random; random.random()"
    session = opened(server)
    try:
        point = session.checkpoint()
        rounds = [session.fork(4, checkpoint=point, reseed=True) for _ in range(2)]
        found = [[one.value(ask) for one in copies] for copies in rounds]
        server.close_all([one for copies in rounds for one in copies])
        assert len(set(found[0])) == 4
        if not support.NAIVE:
            assert found[0] == found[1]
        assert session.value(ask) not in found[0]
    finally:
        session.close()
