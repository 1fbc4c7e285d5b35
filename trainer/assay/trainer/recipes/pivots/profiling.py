"""Profiles turns: samples of the policy at each, judged against the recorded calls.

PivotRL (arXiv 2603.21383): a turn is a pivot where the rewards of the policy's samples differ and
their mean is below tau: elsewhere a group's advantages are 0, or there is little to learn.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from assay.clients import Result
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Generator, Request, Response
from assay.trainer.recipes.pivots.trajectories import RecordedTurn
from assay.trainer.rollouts.types import ScoringRound

VERIFIER = "tool-call"


@dataclass(frozen=True, slots=True)
class TurnProfile:
    """What the policy does at one turn.

    Attributes:
        rewards: of its judged samples.
        faults: samples without a judgement.
        own: the reward of the recorded turn itself; None for a fault.
    """

    turn: RecordedTurn
    rewards: tuple[float, ...]
    faults: int
    own: float | None

    @property
    def mean(self) -> float | None:
        """Of the rewards; None without one."""
        return statistics.fmean(self.rewards) if self.rewards else None

    @property
    def variance(self) -> float | None:
        """Of the rewards, divided by their number; None without one."""
        return statistics.pvariance(self.rewards) if self.rewards else None

    def is_pivot(self, tau: float) -> bool:
        """Whether the policy's samples differ there, their mean is below tau.

        Never where the verifier does not take the recorded turn itself for right.
        """
        if len(self.rewards) < 2 or self.own is None or self.own < 1:
            return False
        return statistics.pvariance(self.rewards) > 0 and statistics.fmean(self.rewards) < tau

    def row(self, tau: float) -> dict[str, Any]:
        """A row to train on: prompt, reference, and the profile."""
        turn = self.turn
        return {
            "id": f"{turn.trajectory}/{turn.turn}",
            "prompt": [{"role": role, "content": text} for role, text in turn.messages],
            "reference": reference_of(turn),
            "verifier": VERIFIER,
            "pivot": self.is_pivot(tau),
            "profile": {
                "samples": len(self.rewards) + self.faults,
                "faults": self.faults,
                "rewards": list(self.rewards),
                "mean": self.mean,
                "variance": self.variance,
                "recorded": self.own,
            },
        }


def reference_of(turn: RecordedTurn) -> str:
    """The recorded calls as the verifier's reference, in JSON."""
    tools = {"tools": list(turn.tools)} if turn.tools else {}
    return json.dumps({"calls": list(turn.calls), **tools})


def profiles(
    turns: Iterable[RecordedTurn],
    generator: Generator,
    open_round: Callable[[], ScoringRound],
    encode: Callable[[Problem], Sequence[int]],
    *,
    samples: int,
    at_once: int,
    first: int = 0,
) -> Iterator[TurnProfile]:
    """Each turn's profile, in order.

    Args:
        turns: to profile.
        generator: of the policy.
        open_round: opens a round of judging by `VERIFIER`.
        encode: a problem's tokens.
        samples: of each turn, at least 2.
        at_once: turns whose samples are drawn together.
        first: number of the first turn, which with the run's seed fixes the samples.

    Raises:
        OutageError: the reward services were away for too long.
    """
    rest = enumerate(turns, start=first)
    while chunk := list(islice(rest, at_once)):
        requests: list[Request] = []
        for number, turn in chunk:
            problem = Problem(
                id=f"turn-{number}",
                question=turn.messages[-1][1] if turn.messages else "",
                messages=turn.messages,
                reference=reference_of(turn),
            )
            draw = Draw(number, problem, tuple(encode(problem)))
            requests += [Request(draw, index) for index in range(samples)]
        results = _judged(requests, [turn for _, turn in chunk], samples, generator, open_round)
        for place, (_, turn) in enumerate(chunk):
            mine = results[place * (samples + 1) : (place + 1) * (samples + 1)]
            rewards = tuple(one.reward for one in mine[:samples] if one.reward is not None)
            yield TurnProfile(turn, rewards, samples - len(rewards), mine[samples].reward)


def _judged(
    requests: Sequence[Request],
    turns: Sequence[RecordedTurn],
    samples: int,
    generator: Generator,
    open_round: Callable[[], ScoringRound],
) -> list[Result]:
    """The samples' results, behind each turn's that of the recorded text."""
    scoring = open_round()
    placed: list[int] = []

    def heard(place: int, response: Response) -> None:
        placed.append(place + place // samples)
        scoring.submit(requests[place], response)

    generator.generate(requests, heard)
    for number, turn in enumerate(turns):
        placed.append(number * (samples + 1) + samples)
        recorded = Response((0,), turn.text, None, truncated=False)
        scoring.submit(requests[number * samples], recorded)
    by_place = dict(zip(placed, scoring.results(), strict=True))
    return [by_place[place] for place in range(len(placed))]
