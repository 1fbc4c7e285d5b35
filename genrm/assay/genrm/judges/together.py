"""Several judges at work as one, so that their requests reach the engine at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from assay.genrm.domain import Asked, Reply, Run
from assay.kit.faults import Unjudgeable

R = TypeVar("R")


def together(runs: Sequence[Run[R]]) -> Run[tuple[R, ...]]:
    """Runs side by side, each round of requests yielded as one; returns what each returned.

    Raises:
        Unjudgeable: of the first that raised; the others are closed.
    """
    results: dict[int, R] = {}
    waiting: dict[int, tuple[Asked, ...]] = {}
    try:
        for index, run in enumerate(runs):
            _step(index, run, None, waiting, results)
        while waiting:
            asked = waiting
            answers = yield tuple(request for requests in asked.values() for request in requests)
            waiting, start = {}, 0
            for index, requests in asked.items():
                end = start + len(requests)
                _step(index, runs[index], answers[start:end], waiting, results)
                start = end
    finally:
        for run in runs:
            run.close()
    return tuple(results[index] for index in range(len(runs)))


def caught(run: Run[R]) -> Run[R | Unjudgeable]:
    """The run; where it judges nothing, it returns why."""
    try:
        return (yield from run)
    except Unjudgeable as trouble:
        return trouble


def _step(
    index: int,
    run: Run[R],
    answers: tuple[Reply, ...] | None,
    waiting: dict[int, tuple[Asked, ...]],
    results: dict[int, R],
) -> None:
    try:
        waiting[index] = next(run) if answers is None else run.send(answers)
    except StopIteration as end:
        results[index] = end.value
