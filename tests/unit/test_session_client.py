"""The promises of the clients of sessions, over a real wire to a server that runs cells."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.api.session.v1 import session_pb2
from assay.clients.core.channel import LocalTransport
from assay.clients.sessions import (
    AsyncSessionClient,
    CannotFork,
    CellEnd,
    CellResult,
    LeaseExpired,
    OutputPiece,
    Session,
    SessionBusy,
    SessionClient,
    SessionEnded,
    SessionLimits,
    SessionLost,
)
from assay.clients.sessions.convert import result_from_proto
from assay.clients.sessions.errors import error_of
from assay.clients.testing import FakeSessionServer, ScriptedTransport, SessionKnobs
from assay.kit.errors import (
    BadRequestError,
    CallError,
    ConfigError,
    DeadlineError,
    OverloadedError,
    ServerError,
    UnavailableError,
    refuse,
)
from assay.kit.reasons import Reason


@pytest.fixture(scope="module")
def client() -> Iterator[SessionClient]:
    """Of a server without faults."""
    with FakeSessionServer() as server, SessionClient(server.address) as made:
        yield made


# What a session computes.


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.integers(-9, 9)),
        st.tuples(st.just("keep"), st.just(0)),
        st.tuples(st.just("back"), st.integers(0, 5)),
        st.tuples(st.just("fork"), st.just(0)),
    ),
    max_size=12,
)


@settings(max_examples=25)
@given(steps=STEPS)
def test_a_session_a_rollback_and_a_fork_are_what_a_list_its_copy_and_its_copy_are(
    client: SessionClient, steps: list[tuple[str, int]]
) -> None:
    session = client.create()
    opened = [session]
    session.execute("x = []")
    state: list[int] = []
    points: list[tuple[Any, list[int]]] = []
    for step, number in steps:
        match step:
            case "run":
                session.execute(f"x.append({number})")
                state.append(number)
            case "keep":
                points.append((session.checkpoint(), list(state)))
            case "back" if points:
                point, state = (
                    points[number % len(points)][0],
                    list(points[number % len(points)][1]),
                )
                session.rollback(point)
            case "fork":
                [copy] = session.fork()
                session.execute("x.append('left behind')")
                session, points = copy, []
                opened.append(copy)
        assert session.execute("x").plain == state
    for one in opened:
        one.close()


@settings(max_examples=25)
@given(texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=6))
def test_the_pieces_of_a_stream_are_the_whole_and_the_result_is_the_last(
    client: SessionClient, texts: list[str]
) -> None:
    with client.create() as session:
        events = list(session.stream(f"import sys\nfor t in {texts!r}: sys.stdout.write(t)"))
    *pieces, result = events
    assert isinstance(result, CellResult)
    assert (
        b"".join(one.data for one in pieces if isinstance(one, OutputPiece)) == result.stdout.data
    )
    assert result.stdout.text == "".join(texts)


def test_the_example_of_the_package(client: SessionClient) -> None:
    with client.create() as session:
        session.execute("x = 41")
        point = session.checkpoint()
        left, right = session.fork(2)
        left.execute("x += 1")
        session.execute("x = 0")
        session.rollback(point)
        assert [one.execute("x").plain for one in (session, left, right)] == [41, 42, 41]
        assert {one.id for one in (session, left, right)} != {session.id}


def test_how_a_cell_ended_is_told_apart(client: SessionClient) -> None:
    with client.create() as session:
        ends = {
            "1": CellEnd.COMPLETED,
            "1 / 0": CellEnd.RAISED,
            "def": CellEnd.RAISED,
            "raise SystemExit(3)": CellEnd.EXITED,
            "while True: pass": CellEnd.WALL_TIME_LIMIT,
        }
        found = {code: session.execute(code, wall_s=0.3) for code in ends}
        assert {code: result.end for code, result in found.items()} == ends
        assert [result.ok for result in found.values()] == [True, False, False, False, False]
        assert found["raise SystemExit(3)"].exit_code == 3
        error = found["1 / 0"].error
        assert error is not None
        assert error.name == "ZeroDivisionError"
        assert error.traceback.startswith("Traceback")
        assert [result.number for result in found.values()] == [1, 2, 3, 4, 5]


def test_a_value_is_shown_and_plain_where_it_can_be(client: SessionClient) -> None:
    with client.create() as session:
        plain = session.execute("{'a': (1, 2.5)}")
        assert plain.plain == {"a": (1, 2.5)}
        shown = session.execute("object")
        assert shown.value is not None
        assert (shown.value.text, shown.plain) == ("<class 'object'>", None)
        nothing = session.execute("None")
        assert (nothing.value, nothing.plain) == (None, None)


# Whose doing is it?


def test_the_programs_own_end_is_no_failed_call() -> None:
    with (
        FakeSessionServer(knobs=SessionKnobs(kill=1)) as server,
        SessionClient(server.address) as client,
    ):
        session = client.create()
        point = session.checkpoint()
        result = session.execute("1")
        assert (result.end, result.signal, result.session_over) == (CellEnd.DIED, 9, True)
        with pytest.raises(SessionEnded) as caught:
            session.execute("2")
        assert caught.value.end is CellEnd.DIED
        assert not isinstance(caught.value, CallError)
        assert pickle.loads(pickle.dumps(caught.value)).end is CellEnd.DIED
        assert server.cells == ["1"]
        session.rollback(point)
        assert session.execute("3").plain == 3


def test_a_lost_session_is_a_fault_with_its_cause_then_and_later() -> None:
    with (
        FakeSessionServer(knobs=SessionKnobs(lose=1)) as server,
        SessionClient(server.address) as client,
    ):
        session = client.create()
        with pytest.raises(SessionLost) as caught:
            session.execute("1")
        assert caught.value.cause == "host-died"
        asked = len(server.metadata)
        for call in (lambda: session.execute("2"), session.checkpoint, session.renew):
            with pytest.raises(SessionLost, match=str(caught.value)):
                call()
        assert len(server.metadata) == asked
        assert server.cells == []


def test_what_stands_in_the_way_of_a_copy_has_its_names() -> None:
    with (
        FakeSessionServer(knobs=SessionKnobs(hold_up=2)) as server,
        SessionClient(server.address) as client,
    ):
        session = client.create()
        for call in (session.checkpoint, session.fork):
            with pytest.raises(CannotFork) as caught:
                call()
            assert caught.value.holds == ("2 threads", "a socket")
        session.execute("import threading; lock = threading.Lock()")
        with pytest.raises(CannotFork, match="lock"):
            session.fork()


def test_an_expired_lease_is_the_callers_doing() -> None:
    with (
        FakeSessionServer(knobs=SessionKnobs(expire=1)) as server,
        SessionClient(server.address) as client,
    ):
        session = client.create()
        for _ in range(2):
            with pytest.raises(LeaseExpired):
                session.execute("1")


def test_a_knob_that_nothing_met_fails_the_test() -> None:
    with (
        pytest.raises(AssertionError, match="cut"),
        FakeSessionServer(knobs=SessionKnobs(cut=1)),
    ):
        pass


# What is repeated, and what never is.


def test_a_cell_that_may_have_run_is_never_run_again_unasked() -> None:
    with (
        FakeSessionServer(knobs=SessionKnobs(cut=2)) as server,
        SessionClient(server.address) as client,
    ):
        session = client.create()
        session_x = "x = globals().get('x', 0) + 1"
        with pytest.raises(UnavailableError):
            session.execute(session_x)
        assert server.cells == [session_x]
        assert session.execute(session_x, retry=True).ok
        assert server.cells == [session_x] * 3
        assert session.execute("x").plain == 3


@pytest.mark.parametrize("knob", ["unavailable", "hang"])
def test_nor_one_that_was_refused_or_late_without_a_word_that_nothing_was_done(knob: str) -> None:
    with (
        FakeSessionServer(knobs=SessionKnobs(**{knob: 1})) as server,
        SessionClient(server.address, timeout_s=0.5) as client,
    ):
        session = client.create(limits=SessionLimits(cell_wall_time_s=0.3))
        with pytest.raises(DeadlineError if knob == "hang" else UnavailableError):
            session.execute("1")
        assert server.cells == []
        assert session.execute("2").plain == 2


def test_where_no_session_fits_the_client_waits_and_then_says_so() -> None:
    with (
        FakeSessionServer(knobs=SessionKnobs(full=3), capacity=2) as server,
        SessionClient(server.address) as client,
    ):
        first, _ = client.create(count=2)
        assert server.living.keys() == {first.id, _.id}
        with pytest.raises(OverloadedError) as caught:
            client.create(timeout_s=0.3)
        assert caught.value.reason == Reason.SESSIONS_FULL
        timer = threading.Timer(0.2, first.close)
        timer.start()
        with client.create() as third:
            assert third.execute("1").plain == 1
        timer.join()


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110  # the fake has no event for it
            await asyncio.sleep(0.01)


async def test_an_interrupted_cell_leaves_a_session_that_serves() -> None:
    async with (
        FakeSessionServer() as server,
        AsyncSessionClient(server.address) as client,
        await client.create() as session,
    ):
        await session.execute("x = 1")
        cell = asyncio.create_task(session.execute("x = 2\nwhile True: pass"))
        await eventually(lambda: len(server.cells) == 2)
        with pytest.raises(SessionBusy):
            await session.execute("3")
        cell.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cell
        assert (await session.execute("x")).plain == 2
        assert server.cancelled == 1


def test_leaving_a_stream_interrupts_its_cell(client: SessionClient) -> None:
    with client.create() as session:
        for event in session.stream("print('first')\nwhile True: pass"):
            assert isinstance(event, OutputPiece)
            break
        assert session.execute("1").plain == 1


# Leases, and the end.


def test_a_kept_session_outlives_its_lease_and_another_does_not() -> None:
    with FakeSessionServer(lease_s=0.8) as server:
        with SessionClient(server.address, keep_alive=True) as keeping:
            kept = keeping.create()
            with SessionClient(server.address) as other:
                dropped = other.create()
                time.sleep(1.5)
                assert kept.execute("1").plain == 1
                with pytest.raises(LeaseExpired):
                    dropped.execute("1")
        assert server.living == {}


def test_the_leases_of_many_are_renewed_in_one_call() -> None:
    with (
        FakeSessionServer(lease_s=0.9) as server,
        SessionClient(server.address, keep_alive=True) as client,
    ):
        sessions = client.create(count=8)
        before = len(server.metadata)
        time.sleep(0.7)
        # A fake notes each session of a renewal; one call for all makes one request id.
        ids = {str(sent["x-request-id"]) for sent in server.metadata[before:]}
        assert 1 <= len(ids) <= 4
        assert all(one.execute("1").ok for one in sessions)


def test_a_client_closes_what_it_made_and_nothing_else() -> None:
    with FakeSessionServer() as server:
        with SessionClient(server.address) as maker:
            mine, handed_on = maker.create(count=2)
            [copy] = mine.fork()
            handed_on.detach()
            with SessionClient(server.address) as other:
                attached = other.attach(handed_on.id, handed_on.replica)
                assert attached.limits == handed_on.limits
                assert attached.execute("1").plain == 1
            assert server.living.keys() == {mine.id, handed_on.id, copy.id}
        assert server.living.keys() == {handed_on.id}


def test_attaching_to_nothing_says_so(client: SessionClient) -> None:
    with pytest.raises(BadRequestError, match=r"no session has the id fake\.x"):
        client.attach("fake.x", "fake")


def test_a_closed_session_refuses_and_a_session_travels(client: SessionClient) -> None:
    session = client.create()
    session.execute("x = 5")
    travelled: Session = pickle.loads(pickle.dumps(session))
    assert travelled.execute("x").plain == 5
    session.close()
    session.close()
    with pytest.raises(ConfigError, match="closed"):
        session.execute("x")
    with pytest.raises(BadRequestError):
        travelled.execute("x")


# What a server should never say, and what a caller should not.


class Scripted(ScriptedTransport):
    """A service whose cells are given."""

    def __init__(self, *messages: session_pb2.ExecuteResponse) -> None:
        self._messages = messages
        self.timeouts_s: list[float] = []

    async def start(self) -> None:
        return

    async def describe_sessions(self, _request: Any, **_: Any) -> Any:
        return session_pb2.DescribeSessionsResponse(languages=["python"])

    async def create(self, _request: Any, **_: Any) -> Any:
        limits = session_pb2.SessionLimits()
        limits.cell_wall_time.seconds = 100
        return session_pb2.CreateResponse(sessions=[session_pb2.Session(id="s", limits=limits)])

    async def execute(self, _request: Any, *, timeout_s: float) -> AsyncIterator[Any]:
        self.timeouts_s.append(timeout_s)
        for message in self._messages:
            yield message

    async def close(self, *_: Any, **__: Any) -> Any:
        return session_pb2.CloseResponse()


def result(**fields: Any) -> session_pb2.ExecuteResponse:
    return session_pb2.ExecuteResponse(result=session_pb2.CellResult(**fields))


@pytest.mark.parametrize("messages", [(), (result(),), (result(end=99),)])
async def test_a_cell_without_a_result_that_makes_sense_is_a_fault(
    messages: tuple[session_pb2.ExecuteResponse, ...],
) -> None:
    async with AsyncSessionClient(transport=Scripted(*messages)) as client:
        session = await client.create()
        with pytest.raises(ServerError) as caught:
            await session.execute("1")
        assert caught.value.reason == Reason.MISSING_RESULT


async def test_the_deadline_covers_the_cells_limit() -> None:
    transport = Scripted(result(end=session_pb2.CELL_END_COMPLETED))
    async with AsyncSessionClient(transport=transport, timeout_s=5.0) as client:
        session = await client.create()
        await session.execute("1")
        await session.execute("1", wall_s=7.0, timeout_s=1.0)
    assert transport.timeouts_s == [pytest.approx(105.0, abs=1.0), pytest.approx(8.0, abs=0.5)]


def test_a_service_in_this_process_serves_both_faces() -> None:
    done = result(end=session_pb2.CELL_END_COMPLETED, number=4)
    with (
        SessionClient(transport=lambda: LocalTransport(Scripted(done))) as client,
        client.create() as session,
    ):
        assert session.execute("1").number == 4


def test_every_end_of_the_contract_has_a_word() -> None:
    ends = [number for number in session_pb2.CellEnd.values() if number]
    found = {result_from_proto(session_pb2.CellResult(end=end)).end for end in ends}
    assert found == set(CellEnd)
    for end in ends:
        name = session_pb2.CellEnd.Name(end)
        for word in (name, name.removeprefix("CELL_END_").lower().replace("_", "-")):
            ended = error_of(refuse(Reason.SESSION_ENDED, "it ended", end=word))
            assert isinstance(ended, SessionEnded)
            assert ended.end == result_from_proto(session_pb2.CellResult(end=end)).end


def test_a_value_that_makes_no_sense_is_the_programs_own_claim() -> None:
    message = session_pb2.CellResult(end=session_pb2.CELL_END_COMPLETED)
    message.plain_value.big_int_value = "x"
    assert result_from_proto(message).plain is None


@pytest.mark.parametrize(
    "call",
    [
        lambda s, c: c.create(count=0),
        lambda s, c: c.create(lease_s=0),
        lambda s, c: c.create(limits=SessionLimits(memory_bytes=-1)),
        lambda s, c: s.execute("1", wall_s=-1),
        lambda s, c: s.execute("1", timeout_s=0),
        lambda s, c: s.fork(0),
        lambda s, c: s.get_files([]),
        lambda s, c: s.get_files("path"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(
    client: SessionClient, call: Any
) -> None:
    with client.create() as session, pytest.raises(ConfigError):
        call(session, client)


@pytest.mark.parametrize("language", ["cobol"])
def test_an_unknown_language_is_the_callers_mistake(client: SessionClient, language: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        client.create(language)
    assert caught.value.reason == Reason.UNKNOWN_LANGUAGE


def test_what_a_sandbox_says_of_its_sessions(client: SessionClient) -> None:
    info = client.describe()
    assert (info.languages, info.replica, info.copies) == (("python",), "fake", True)
    assert info.default_limits.cell_wall_time_s == 10.0


def test_threads_share_a_client(client: SessionClient) -> None:
    found: dict[int, object] = {}

    def work(number: int) -> None:
        with client.create() as session:
            session.execute(f"x = {number}")
            for _ in range(5):
                session.execute("x += 10")
            found[number] = session.execute("x").plain

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: number + 50 for number in range(8)}
