"""A Rubric or an Environment of `verifiers` 0.1 to 0.3, hosted: its scoring, not its rollouts.

A Rubric takes 0.0 for what one of its functions raises; here that is a fault.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Unpack

from assay.environments.hosting.hosted import Hosted, HostedSample, How, hosted, name_of
from assay.kit.errors import ConfigError


def host_rubric(rubric: Any, **how: Unpack[How]) -> Hosted:
    """The reward of a rubric, its own or that of an environment.

    Of the columns `answer` (or `reference`) and `info` are what a rubric knows; the others are in
    the state's `input`.

    Args:
        rubric: `vf.Rubric`, `vf.RubricGroup`, or a `vf.Environment`, whose rubric it is.
        how: see `Hosted`.

    Raises:
        ConfigError: it is none of these, or judges a group as a whole.
    """
    own = getattr(rubric, "rubric", rubric)
    if not callable(getattr(own, "score_rollout", None)):
        raise ConfigError(f"{name_of(rubric)!r} is no Rubric and no Environment of verifiers")
    if own.has_group_rewards:
        raise ConfigError(
            f"{name_of(rubric)!r} rewards a group as a whole; here samples come one by one"
        )

    async def score(sample: HostedSample) -> Any:
        raised: list[BaseException] = []
        for one in _rubrics(own):
            one.funcs = [_watched(function, raised) for function in one.funcs]
        row = dict(sample.columns)
        answer = row.get("answer", row.get("reference", ""))
        info = row.get("info") or {}
        state = _state(sample, row, answer, info)
        await own.score_rollout(state)
        if raised:
            raise raised[0]
        return None if state.get("error") is not None else state["reward"]

    return hosted(score, name_of(rubric), f"The rubric {name_of(own)} of verifiers.", how)


def _rubrics(rubric: Any) -> list[Any]:
    """The rubrics of a group, at any depth, and the rubric itself."""
    parts = getattr(rubric, "rubrics", ())
    return [rubric, *(inner for one in parts for inner in _rubrics(one))]


def _state(sample: HostedSample, row: dict[str, Any], answer: Any, info: Any) -> Any:
    """The state of a finished rollout, as a rubric reads it."""
    from verifiers import State  # noqa: PLC0415  # the operator's file imports verifiers

    prompt, completion = list(sample.prompt), list(sample.completion)
    made = State(input={**row, "prompt": prompt, "answer": answer, "info": info, "example_id": 0})
    for key, value in {
        "prompt": prompt,
        "completion": completion,
        "answer": answer,
        "info": info,
        "task": row.get("task", "default"),
        "trajectory": [],
        "metrics": {},
        "timing": {"generation_ms": 0.0, "scoring_ms": 0.0, "total_ms": 0.0},
        "error": None,
        "is_completed": True,
    }.items():
        made[key] = value
    return made


def _watched(function: Callable[..., Any], raised: list[BaseException]) -> Callable[..., Any]:
    """The function, which keeps what it raises: a rubric makes 0.0 of it."""

    @functools.wraps(function)
    async def watched(*given: Any, **named: Any) -> Any:
        try:
            found = function(*given, **named)
            return await found if inspect.isawaitable(found) else found
        except Exception as error:
            raised.append(error)
            raise

    return watched
