"""Scoring from a trainer's reward function, and the values that it may log."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from assay.clients.trainers.common.faults import (
    FaultPolicy,
    explanation_of,
    judgement_of,
    tell_faults,
)
from assay.clients.trainers.common.settings import Settings, client_of
from assay.clients.types import Item, Result


def score(settings: Settings, items: Sequence[Item]) -> list[Result]:
    """Scores items and waits; a single item shares a call with those of other threads."""
    client = client_of(settings)
    results = [client.score_one(items[0])] if len(items) == 1 else client.score(items)
    tell_faults(results)
    return results


async def score_awaited(settings: Settings, items: Sequence[Item]) -> list[Result]:
    """As `score`, on any event loop without a thread."""
    client = client_of(settings)
    if len(items) == 1:
        results = [await asyncio.wrap_future(client.submit_one(items[0]))]
    else:
        results = await asyncio.wrap_future(client.submit(items))
    tell_faults(results)
    return results


def number_of(result: Result, policy: FaultPolicy) -> float:
    """The reward; NaN for a fault that a later part of the adapter takes out.

    Raises:
        FaultError: a fault, and the policy is "raise".
    """
    if policy is FaultPolicy.RAISE:
        return judgement_of(result).reward
    return math.nan if result.reward is None else result.reward


def details_of(
    result: Result, policy: FaultPolicy, components: Sequence[str] = ()
) -> dict[str, Any]:
    """The values to log beside a reward, with the same keys for every result.

    They are `score` (the reward), `verdict` and `fault` (its reason), one of them empty,
    `explanation`, and `component_NAME` for each of `components`; NaN where a judgement lacks it.

    Raises:
        FaultError: a fault, and the policy is "raise".
    """
    number = number_of(result, policy)
    judgement = result.judgement
    parts = {part.name: part.score for part in judgement.components} if judgement else {}
    return {
        "score": number,
        "verdict": judgement.verdict if judgement else "",
        "fault": result.fault.reason if result.fault else "",
        "explanation": explanation_of(result),
        **{f"component_{name}": parts.get(name, math.nan) for name in components},
    }
