"""What the inputs of a golden row stand for in a run: judged responses, and the batch of a step.

A batch is what `pad` makes of responses, with the row's own numbers, float64, in place of what
models and judges would have given.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch

from assay.clients import Judgement, Result, Span
from assay.clients.judging.verdicts import Verdict
from assay.trainer.core.batch import Batch, Scored, pad
from assay.trainer.core.hooks import Hooks, hooks_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.dense.method import with_spans
from assay.trainer.methods.dense.settings import DenseConfig
from assay.trainer.methods.turns.settings import TurnsConfig
from assay.trainer.rollouts.types import Collected, PolicyTurn, Rollout, Unfinished
from assay.trainer.settings.config import Config, MethodSettings
from assay.trainer.settings.sections import RolloutConfig
from tokenizers_support import characters

Vector = Sequence[float]
Matrix = Sequence[Vector]
REQUEST = Request(Draw(0, Problem("train-0", "", (), ""), (1,)), 0)
DIALOGUES = TurnsConfig(mode="verify")


def hooks(group_size: int = 2, **tables: Any) -> tuple[Hooks, ...]:
    """What a run calls whose methods have these tables."""
    rollout = RolloutConfig(group_size=group_size)
    return hooks_of(Config(method=MethodSettings(**tables), rollout=rollout))


def tensor(values: Any) -> torch.Tensor:
    """float64, of any depth; None is a fault."""
    if isinstance(values, list | tuple):
        return torch.stack([tensor(value) for value in values]) if values else torch.zeros(0)
    return torch.tensor(float("nan") if values is None else values, dtype=torch.float64)


def row(values: Vector) -> torch.Tensor:
    """A batch of one row."""
    return tensor(values).unsqueeze(0)


def judged(correct: bool, *spans: Span) -> Result:
    """1 or 0, with rewards of spans."""
    verdict = "correct" if correct else "incorrect"
    return Result("", Judgement(float(correct), verdict, spans=spans))


def response(
    ids: Sequence[int],
    result: Result | None = None,
    *,
    text: str = "",
    turns: Sequence[PolicyTurn] = (),
) -> Rollout:
    """A response that was judged, as wrong where nothing else is said."""
    answer = Response(tuple(ids), text, None, truncated=False)
    return Rollout(REQUEST, answer, result or judged(False), 0, tuple(turns))


def plain_rows(count: int, length: int) -> list[Scored]:
    """Judged responses, all of them `length` tokens long, whose reward is 0."""
    return [Scored(response((0,) * length), 0.0)] * count


def unfinished_row(length: int) -> Scored:
    """A response that goes on in the next step."""
    begun = Response((0,) * length, "", None, truncated=False, finished=False)
    return Scored(Unfinished(REQUEST, begun, 0), None)


def one_step(correct: bool, reward: float) -> Scored:
    """A response of one judged step."""
    return Scored(response((0,), judged(correct, Span(0, 0, reward, "step"))), float(correct))


def with_judged_spans(
    length: int, ends: Sequence[int], rewards: Vector, dense: DenseConfig, *, correct: bool
) -> Scored:
    """A response of one token a character, whose spans end behind so many characters."""
    text = "a" * length
    starts = (0, *ends[:-1])
    spans = [
        Span(start, end, reward, "step")
        for start, end, reward in zip(starts, ends, rewards, strict=True)
    ]
    result = judged(correct, *spans)
    rollout = response(characters()(text)["input_ids"], result, text=text)
    return with_spans(Scored(rollout, float(correct)), characters(), dense)


def dialogue(mask: Vector) -> Scored:
    """A response whose runs of the policy's tokens are attempt, verification, attempt, ..."""
    turns: list[PolicyTurn] = []
    place = 0
    for own, tokens in groupby(mask):
        start, place = place, place + len(list(tokens))
        if own:
            turns.append(turn(len(turns), start, place))
    rollout = response((0,) * len(mask), turns=turns)
    [turns_on] = hooks(turns=DIALOGUES)
    [[scored]] = turns_on.scored([[Scored(rollout, 0.0)]])
    return scored


def turn(
    number: int, start: int, end: int, *, correct: bool = False, verdict: Verdict = "wrong"
) -> PolicyTurn:
    """One of a dialogue, from 0: an even one is an attempt, an odd one a verification."""
    if number % 2:
        return PolicyTurn(start, end, "", truncated=False, verdict=verdict)
    return PolicyTurn(start, end, "", truncated=False, result=judged(correct))


def batch_of(rows: Sequence[Scored], on: Sequence[Hooks] = (), **columns: torch.Tensor) -> Batch:
    """The rows as a step has them, in float64, with columns in place of their own.

    `on` are the hooks of the methods that mark it.
    """
    padded = pad(rows, pad_id=0, policy_step=0, device=torch.device("cpu"))
    for hook in on:
        padded = hook.mark(padded, rows, Collected([], []))
    wide = {
        name: column.double() if column.is_floating_point() else column
        for name, column in padded.items()
    }
    return {**wide, **columns}
