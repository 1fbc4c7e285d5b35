"""Rollouts and steps made of a few words, for tests of what a run records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.clients import Fault, Judgement, Result
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.rollouts.types import Rollout
from rollouts_collecting_support import Serves


def problem(n: int = 0) -> Problem:
    return Problem(f"train-{n}", f"{n}+1=", (("user", f"{n}+1="),), str(n + 1))


def good(reward: float = 1.0, verdict: str = "correct", **more: Any) -> Result:
    return Result("1", Judgement(reward=reward, verdict=verdict, **more))


def bad(reason: str = "WORKER_DIED") -> Result:
    return Result("1", Fault(reason, "it died"))


def rollout(
    result: Result, *, text: str = "4", tokens: int = 4, draw: int = 0, index: int = 0,
    truncated: bool = False,
) -> Rollout:  # fmt: skip
    request = Request(Draw(draw, problem(draw), (5, 6)), index)
    ids = tuple(range(tokens))
    response = Response(ids, text, tuple(-0.5 for _ in ids), truncated)
    return Rollout(request, response, result, policy_step=0)


class Scripted(Serves):
    """A generator that answers by a rule, and remembers what it was asked for."""

    def __init__(self, text_of: Callable[[Request], str], *, backwards: bool = False) -> None:
        self.calls: list[list[Request]] = []
        self._text_of = text_of
        self._backwards = backwards

    def generate(
        self, requests: Sequence[Request], on_finished: Callable[[int, Response], None]
    ) -> list[Response]:
        self.calls.append(list(requests))
        responses = [
            Response((1, 2), self._text_of(request), None, truncated=False) for request in requests
        ]
        order = range(len(requests))
        for place in reversed(order) if self._backwards else order:
            on_finished(place, responses[place])
        return responses


class ExactRound:
    """Judges in this process: correct where the text is the reference, a fault where it is "!"."""

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self._results: list[Result] = []

    def submit(self, request: Request, response: Response) -> None:
        self.seen.append(request)
        right = response.text == request.draw.problem.reference
        self._results.append(
            bad()
            if response.text == "!"
            else good(float(right), "correct" if right else "incorrect",
                      extracted_answer=response.text)
        )  # fmt: skip

    def results(self) -> list[Result]:
        return self._results
