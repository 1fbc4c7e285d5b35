"""A policy, judges and processes that are none.

What a draw is answered, and how that is judged, is a function of its number and the sample's.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from assay.clients import Component, Fault, Judgement, Result, Span
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Follow, Id
from assay.trainer.engines.types import Request, Response
from assay.trainer.methods.dynamic_sampling.settings import DynamicSamplingConfig
from assay.trainer.rollouts.collector import Collector
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.types import (
    Collected,
    Group,
    Known,
    OneRank,
    Remote,
    Rollout,
    Rows,
)
from assay.trainer.settings.sections import RolloutConfig

T = TypeVar("T")
Outcome = str
"""A verdict, "fault", or "outage" for one that was held in vain."""


def problems(count: int) -> list[Problem]:
    return [
        Problem(f"train-{n}", f"what is {n}?", (("user", f"what is {n}?"),), str(n))
        for n in range(count)
    ]


def encode(problem: Problem) -> list[int]:
    return list(problem.question.encode())


def stream(count: int = 50, *, seed: int = 0, **settings: Any) -> PromptStream:
    return PromptStream(problems(count), encode, seed=seed, **settings)


def bernoulli(
    pass_rate: float, *, fault_rate: float = 0.0, seed: int = 0
) -> Callable[[int, int], Outcome]:
    """Outcome of (draw, sample): each on its own, whoever asks and whenever."""

    def outcome(draw: int, index: int) -> Outcome:
        chance = random.Random(f"{seed}-{draw}-{index}")
        if chance.random() < fault_rate:
            return "fault"
        return "correct" if chance.random() < pass_rate else "incorrect"

    return outcome


def by_group(kinds: Sequence[Sequence[Outcome]]) -> Callable[[int, int], Outcome]:
    """Outcomes listed draw by draw, from the start again after the last."""
    return lambda draw, index: kinds[draw % len(kinds)][index]


def response(request: Request) -> Response:
    number, index = request.draw.number, request.index
    length = random.Random(f"length-{number}-{index}").randrange(1, 6)
    return Response(
        tuple(range(length)),
        f"{number}/{index}",
        tuple(-0.1 * n for n in range(length)),
        length == 5,
    )


class Serves:
    """What follows from its answers is asked when all are there."""

    def serve(
        self, first: Iterable[tuple[Id, Request]], follow: Follow, arrivals: Any = None
    ) -> None:
        asked = list(first)
        while asked:
            ids, requests = zip(*asked, strict=True)
            following: list[tuple[Id, Request]] = []

            def on_finished(
                place: int, answer: Response, ids: Any = ids, told: Any = following
            ) -> None:
                told += follow(ids[place], answer)

            self.generate(requests, on_finished)  # type: ignore[attr-defined]
            asked = following


@dataclass
class FakeGenerator(Serves):
    """Answers at once, and reports the shortest responses first."""

    calls: list[list[tuple[int, int]]] = field(default_factory=list)

    def generate(
        self, requests: Sequence[Request], on_finished: Callable[[int, Response], None]
    ) -> list[Response]:
        assert requests
        self.calls.append([(request.draw.number, request.index) for request in requests])
        responses = [response(request) for request in requests]
        for place in sorted(range(len(requests)), key=lambda n: len(responses[n].ids)):
            on_finished(place, responses[place])
        return responses


def result(request: Request, outcome: Outcome) -> Result:
    id_ = f"{request.draw.number}/{request.index}"
    if outcome == "fault":
        return Result(id_, Fault("SANDBOX_LOST", "gone", "UNAVAILABLE", {"host": "a"}))
    if outcome == "outage":
        marked = {"outage": "over"}
        return Result(id_, Fault("UNREACHABLE", "gone for too long", "UNAVAILABLE", marked))
    reward = float(outcome == "correct")
    judgement = Judgement(
        reward, outcome, (Component("exact", reward, 1.0),), (Span(0, 1, reward, "step"),), "4",
        "because", "exact", "1", ("short",),
    )  # fmt: skip
    return Result(id_, judgement, 0.5, 0.25, True)


@dataclass
class FakeRound:
    outcome: Callable[[int, int], Outcome]
    requests: list[Request] = field(default_factory=list)

    def submit(self, request: Request, answer: Response) -> None:
        assert answer == response(request)
        self.requests.append(request)

    def results(self) -> list[Result]:
        return [result(r, self.outcome(r.draw.number, r.index)) for r in self.requests]


@dataclass(frozen=True)
class ThreadRank:
    """One of several processes that are threads; `sent` counts the bytes that leave it."""

    index: int
    count: int
    barrier: threading.Barrier
    table: dict[int, Any]
    sent: list[int] = field(default_factory=list)

    def gather(self, rows: Rows) -> Rows:
        self.sent.append((self.count - 1) * rows.nbytes)
        return np.concatenate(self._told(rows))

    def exchange(self, parcels: Sequence[bytes]) -> list[bytes]:
        self.sent.append(sum(len(one) for n, one in enumerate(parcels) if n != self.index))
        return [told[self.index] for told in self._told(list(parcels))]

    def _told(self, mine: T) -> list[T]:
        self.table[self.index] = mine
        self.barrier.wait(timeout=20)
        everyone = [self.table[rank] for rank in range(self.count)]
        self.barrier.wait(timeout=20)
        return everyone


def on_ranks(count: int, work: Callable[[ThreadRank], T]) -> list[T]:
    """What each of `count` processes returns."""
    barrier, table = threading.Barrier(count), {}
    with ThreadPoolExecutor(count) as pool:
        futures = [
            pool.submit(work, ThreadRank(index, count, barrier, table)) for index in range(count)
        ]
        return [future.result(timeout=60) for future in futures]


def one_run(together: Sequence[Collected], alone: Collected) -> None:
    """Processes come to what one alone does, and each rollout is whole in one of them only."""
    for collected in together:
        assert collected.metrics == alone.metrics
        assert len(collected.judged) == len(alone.judged)
    for n, expected in enumerate(alone.judged):
        told = [collected.judged[n] for collected in together]
        [holder] = [rank for rank, one in enumerate(told) if isinstance(one, Rollout)]
        assert repr(told[holder]) == repr(expected)  # with NaN
        for one in told[:holder] + told[holder + 1 :]:
            assert isinstance(one, Remote)
            assert one.holder == holder
            assert decided_on(one) == decided_on(expected)


def decided_on(one: Known) -> tuple[Any, ...]:
    """What every process knows of a rollout."""
    judgement, fault = one.result.judgement, one.result.fault
    return (
        one.request, one.policy_step, one.length, one.truncated,
        judgement and (judgement.reward, judgement.verdict), fault and (fault.reason, fault.code),
    )  # fmt: skip


def collector(
    outcome: Callable[[int, int], Outcome],
    *,
    prompts: int = 4,
    group_size: int = 4,
    enabled: bool = True,
    oversample: float = 1.5,
    max_rounds: int = 50,
    keep_surplus: bool = False,
    max_accuracy: float = 1.0,
    ranks: Any = None,
    **parts: Any,
) -> Collector:
    return Collector(
        parts.pop("stream", None) or stream(),
        parts.pop("generator", None) or FakeGenerator(),
        parts.pop("open_round", None) or (lambda: FakeRound(outcome)),
        config=RolloutConfig(prompts_per_step=prompts, group_size=group_size),
        dynamic=DynamicSamplingConfig(
            enabled=True,
            max_rounds=max_rounds,
            oversample=oversample,
            keep_surplus=keep_surplus,
            max_accuracy=max_accuracy,
        )
        if enabled
        else None,
        ranks=ranks or OneRank(),
        **parts,
    )


def numbers(groups: Sequence[Group]) -> list[int]:
    """The draws of the groups."""
    return [group[0].request.draw.number for group in groups]
