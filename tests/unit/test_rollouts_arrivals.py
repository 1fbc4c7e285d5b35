"""Requests that become known in other threads: who waits, who draws on, what an error frees."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.clients import Judgement, Result
from assay.trainer.engines.engine import Sampler, StoppedError
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.rollouts.exchange import Exchange, Next, Talk
from assay.trainer.rollouts.types import Rollout, Unfinished
from rollouts_collecting_support import stream

TURNS = 3


class Relay(Talk):
    """Three turns, each of which becomes known in a thread; a sample with `quiet` has none.

    Attributes:
        late: how long the thread takes, in seconds, given draw, sample and turn.
        released: samples, in order.
    """

    def __init__(
        self,
        late: Callable[[int, int, int], float] = lambda *_place: 0.0,
        *,
        quiet: Callable[[Request], bool] = lambda _request: False,
    ) -> None:
        self.late, self._quiet = late, quiet
        self.released: list[tuple[int, int]] = []
        self.pool = ThreadPoolExecutor(8)

    def begin(self, first: Request) -> Next | Future[Next]:
        return self.pool.submit(self._next, first, 0)

    def following(self, first: Request, responses: Sequence[Response]) -> Next | Future[Next]:
        return self.pool.submit(self._next, first, len(responses))

    def _next(self, first: Request, turn: int) -> Next:
        time.sleep(self.late(first.draw.number, first.index, turn))
        if turn == TURNS or self._quiet(first):
            return None
        return replace(first, turn=turn)

    def judged(self, turn: int) -> bool:
        del turn
        return False

    def rollout(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Rollout:
        assert not results
        ids = tuple(i for one in responses for i in one.ids)
        told = Result("", Judgement(float(len(responses)), "correct"))
        return Rollout(first, Response(ids, "", None, False), told, policy_step)

    def unfinished(self, *_given: Any) -> Unfinished:
        raise AssertionError("nothing waits for a later step")

    def release(self, first: Request) -> None:
        self.released.append((first.draw.number, first.index))

    def facts(self, rollout: Rollout) -> tuple[float, ...]:
        del rollout
        return ()


class NoScoring:
    def submit(self, request: Request, response: Response) -> None:
        raise AssertionError((request, response))

    def results(self) -> list[Result]:
        return []


def script(request: Request) -> Response:
    dice = random.Random(f"{request.draw.number}-{request.index}-{request.turn}")
    length = dice.randrange(1, 6)
    ids = tuple(dice.randrange(3, 90) for _ in range(length))
    return Response(ids, "said", (-0.5,) * length, False)


def asked(draws: int = 2, samples: int = 2) -> list[Request]:
    return [Request(stream().draw(n), index) for n in range(draws) for index in range(samples)]


@pytest.fixture
def made() -> Iterator[Callable[..., tuple[Exchange, Sampler, Relay]]]:
    """An exchange, who answers it, and its talk."""
    pools: list[ThreadPoolExecutor] = []

    def make(**settings: Any) -> tuple[Exchange, Sampler, Relay]:
        relay = Relay(**settings)
        pools.append(relay.pool)
        sampler = Sampler(ScriptedEngine(script), Sampling(9))
        return Exchange(asked(), NoScoring(), relay), sampler, relay

    yield make
    for pool in pools:
        pool.shutdown()


@given(st.lists(st.floats(0, 0.003), min_size=16, max_size=16), st.sets(st.integers(0, 3)))
@settings(max_examples=15, deadline=None)
def test_when_what_follows_becomes_known_changes_nothing(
    late: list[float], quiet: set[int]
) -> None:
    told = iter(late * 4)
    relay = Relay(lambda *_place: next(told), quiet=lambda r: 2 * r.draw.number + r.index in quiet)
    with relay.pool:
        exchange = Exchange(asked(), NoScoring(), relay)
        exchange.answered_by(Sampler(ScriptedEngine(script), Sampling(9)))
        rollouts = exchange.rollouts(7)
    for place, (request, rollout) in enumerate(zip(asked(), rollouts, strict=True)):
        turns = [] if place in quiet else [script(replace(request, turn=n)) for n in range(TURNS)]
        assert rollout.response.ids == tuple(i for turn in turns for i in turn.ids)
        assert rollout.result.reward == len(turns)
    assert sorted(relay.released) == [(r.draw.number, r.index) for r in asked()]


def test_the_engine_draws_for_others_while_one_waits(made: Any) -> None:
    opened = threading.Event()

    def late(number: int, index: int, turn: int) -> float:
        if (number, index) == (0, 0) and turn == 1:
            assert opened.wait(20)
        return 0.0

    exchange, sampler, _relay = made(late=late)
    engine = sampler.engine

    def done(over: int) -> None:
        if over == 3:  # all others are whole: only then does the first go on
            opened.set()

    exchange._on_progress = done
    exchange.answered_by(sampler)
    waited = next(n for n, ids in enumerate(engine.passes) if (0, 1) in ids)
    others = {(place, turn) for place in (1, 2, 3) for turn in range(TURNS)}
    assert {id_ for ids in engine.passes[:waited] for id_ in ids} >= others


def test_a_request_joins_those_that_are_drawn(made: Any) -> None:
    """The engine leaves its draws for a request that comes, and draws both together."""
    exchange, sampler, relay = made()
    began, engine = threading.Event(), sampler.engine
    long = Response(tuple(range(3, 3000)), "long", None, False)

    def say(request: Request) -> Response:
        place = request.draw.number, request.index
        if place == (0, 0) and not request.turn:
            began.set()
            if len(engine.asked) == 1:  # lets the other threads run
                time.sleep(0.001)
            return long
        return script(request)

    relay.late = lambda number, index, _turn: 0.0 if (number, index) == (0, 0) else _after(began)
    engine._script, sampler.sampling = say, Sampling(3000)
    exchange.answered_by(sampler)
    assert any({(0, 0), (1, 0)} <= set(ids) for ids in engine.passes)


def _after(event: threading.Event) -> float:
    assert event.wait(20)
    return 0.0


def test_what_fails_in_the_other_thread_ends_serve_and_frees_all(made: Any) -> None:
    def late(number: int, index: int, turn: int) -> float:
        if (number, index, turn) == (1, 0, 2):
            raise ArithmeticError("told to")
        return 0.0

    exchange, sampler, relay = made(late=late)
    with pytest.raises(ArithmeticError, match="told to"):
        exchange.answered_by(sampler)
    assert len(relay.released) == 4
    assert not sampler.engine.busy


def test_stop_ends_the_wait_for_other_threads(made: Any) -> None:
    stopped = threading.Event()
    exchange, sampler, relay = made(late=lambda *_place: _after(stopped))
    threading.Timer(0.05, sampler.engine.stop).start()
    with pytest.raises(StoppedError):
        exchange.answered_by(sampler)
    assert len(relay.released) == 4
    stopped.set()


def test_calls_between_are_made_while_nothing_is_open(made: Any) -> None:
    """As AReaL's thread takes new weights, whether tokens are drawn or not."""
    called = threading.Event()
    exchange, sampler, _relay = made(late=lambda *_place: _after(called))
    threading.Timer(0.05, sampler.engine.between, [called.set]).start()
    exchange.answered_by(sampler)
    assert called.is_set()


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_request_may_have_a_lower_limit_of_its_own(most: int) -> None:
    engine = ScriptedEngine(lambda _request: Response((5, 6, 7, 8), "said", None, False))
    sampler = Sampler(engine, Sampling(9))
    (got,) = sampler.generate([replace(asked()[0], most=most)], lambda *_told: None)
    assert got.ids == (5, 6, 7, 8)[:most]
    assert got.finished
    assert got.truncated == (most < 4)


def test_no_turn_may_be_answered_while_its_request_is_not_known(made: Any) -> None:
    held = threading.Event()
    exchange, _sampler, _relay = made(late=lambda *_place: _after(held))
    assert exchange.first() == []
    with pytest.raises(RuntimeError, match="was not asked for"):
        exchange.follow((0, 0), script(asked()[0]))
    held.set()
