"""The window of a client: within its bounds, down when the server says so, up again, and fair."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.core.window import MOST, START, WAITING, Gate, Window

SIGNALS = st.lists(
    st.tuples(
        st.sampled_from(["answered", "refused"]),
        st.floats(0, 1),
        st.integers(0, 80),
        st.integers(0, 100),
    ),
    max_size=200,
)


def round_of(window: Window, waited: float) -> None:
    """Every call that fits leaves, and is answered."""
    numbers = [window.begin() for _ in range(window.size)]
    for number in numbers:
        window.answered(number, waited, len(numbers))


@given(SIGNALS, st.integers(1, 100))
def test_it_stays_within_its_bounds_whatever_is_said(
    signals: list[tuple[str, float, int, int]], most: int
) -> None:
    window = Window(most=most)
    begun = 0
    for kind, waited, in_flight, back in signals:
        begun = window.begin()
        number = max(1, begun - back)
        before = window.size
        if kind == "refused":
            window.refused(number)
            assert window.size <= before
        else:
            window.answered(number, waited, in_flight)
        assert 1 <= window.size <= most
    assert window.begin() == begun + 1


@given(SIGNALS, st.integers(1, 500))
def test_a_fixed_one_never_moves(signals: list[tuple[str, float, int, int]], fixed: int) -> None:
    window = Window(fixed)
    for kind, waited, in_flight, _ in signals:
        number = window.begin()
        window.refused(number) if kind == "refused" else window.answered(number, waited, in_flight)
        assert window.size == fixed


@given(st.integers(0, 60))
def test_a_refusal_halves_it_once_a_round(rounds: int) -> None:
    window = Window()
    for _ in range(rounds):
        round_of(window, 0.0)
    before = window.size
    numbers = [window.begin() for _ in range(before)]
    for number in numbers:
        window.refused(number)
    assert window.size == max(1, before // 2)
    window.refused(window.begin())
    assert window.size == max(1, before // 4)


@given(st.floats(0, 1), st.integers(1, 30))
def test_it_shrinks_where_too_much_waits_and_grows_where_little_does(
    waited: float, rounds: int
) -> None:
    window = Window()
    for _ in range(rounds):
        before = window.size
        waiting = before * waited
        round_of(window, waited)
        if waiting >= WAITING:
            assert window.size <= before
        elif 2 * before * waited < WAITING:
            assert window.size >= before


def test_it_recovers() -> None:
    window = Window()
    for _ in range(10):
        window.refused(window.begin())
    assert window.size == 1
    sizes = []
    for _ in range(2 * MOST):
        round_of(window, 0.0)
        sizes.append(window.size)
    assert sizes == sorted(sizes)
    assert sizes[-1] == MOST
    assert sizes[5] < 10, "after a refusal by one a round, not by one a call"


def test_until_something_waits_it_doubles_every_round() -> None:
    window = Window()
    for expected in (2 * START, 4 * START, MOST, MOST):
        round_of(window, 0.0)
        assert window.size == expected


def test_a_window_that_is_not_used_does_not_grow() -> None:
    window = Window()
    for _ in range(100):
        window.answered(window.begin(), 0.0, 1)
    assert window.size == START


class _Server:
    """A server in model time: so many workers, all calls of all clients by turns, no clock.

    In a round each client has `size` calls there. The share of its time that a call waits is what
    it is beyond what the workers do at once; more than `room` calls are refused, by lot.
    """

    def __init__(self, workers: int, room: int, seed: int) -> None:
        self.workers, self.room = workers, room
        self._lots = random.Random(seed)

    def serve(self, windows: list[Window]) -> list[int]:
        calls = [(w, w.begin()) for w in windows for _ in range(w.size)]
        self._lots.shuffle(calls)
        taken, refused = calls[: self.room], calls[self.room :]
        waited = max(0.0, 1 - self.workers / len(taken))
        served = dict.fromkeys(map(id, windows), 0)
        for window, number in taken:
            served[id(window)] += 1
            window.answered(number, waited, window.size)
        for window, number in refused:
            window.refused(number)
        return [served[id(window)] for window in windows]


@given(st.integers(2, 12), st.integers(1, 40), st.integers(0, 10**6), st.data())
def test_clients_that_began_unequally_come_to_equal_shares(
    clients: int, workers: int, seed: int, data: st.DataObject
) -> None:
    windows = [Window() for _ in range(clients)]
    for window in windows:
        for _ in range(data.draw(st.integers(0, 5))):
            round_of(window, 0.0)
    server = _Server(workers, room=max(clients * 8, workers * 2), seed=seed)
    for _ in range(150):
        server.serve(windows)
    total = [0] * clients
    for _ in range(100):
        for place, count in enumerate(server.serve(windows)):
            total[place] += count
    assert min(total) * 2 >= max(total)
    assert sum(total) >= 0.9 * 100 * min(workers, clients * MOST)


async def _race(gate: Gate, calls: int, answer: Callable[[int], None]) -> list[int]:
    order: list[int] = []

    async def call(number: int, place: int) -> None:
        async with gate.pass_through(place):
            assert gate.in_flight <= max(gate.window.size, START)
            order.append(number)
            await asyncio.sleep(0)
            answer(number)

    await asyncio.gather(*(call(number, gate.place()) for number in range(calls)))
    return order


async def test_the_gate_lets_calls_through_in_their_order() -> None:
    gate = Gate(Window(3))
    assert await _race(gate, 50, lambda _: None) == list(range(50))
    assert gate.in_flight == 0


async def test_a_call_that_is_tried_again_is_not_passed_by_newer_ones() -> None:
    gate = Gate(Window(1))
    old = gate.place()
    order = []

    async def call(name: str, place: int) -> None:
        async with gate.pass_through(place):
            order.append(name)
            await asyncio.sleep(0)

    async with gate.pass_through(gate.place()):
        newer = [asyncio.create_task(call(f"new {n}", gate.place())) for n in range(5)]
        await asyncio.sleep(0)
        again = asyncio.create_task(call("old", old))
        await asyncio.sleep(0)
    await asyncio.gather(again, *newer)
    assert order[0] == "old"


@pytest.mark.parametrize("late", [False, True])
async def test_who_gives_up_in_the_line_takes_no_room(late: bool) -> None:
    gate = Gate(Window(1))

    async def call() -> None:
        async with gate.pass_through(gate.place()):
            await asyncio.sleep(0)

    async with gate.pass_through(gate.place()):
        waiting = [asyncio.create_task(call()) for _ in range(3)]
        await asyncio.sleep(0)
        if not late:
            waiting[0].cancel()
    if late:
        waiting[0].cancel()  # it was admitted, and has not run yet
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert [isinstance(end, asyncio.CancelledError) for end in done] == [True, False, False]
    assert gate.in_flight == 0
