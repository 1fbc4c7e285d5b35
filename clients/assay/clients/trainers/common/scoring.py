"""Scoring from a trainer's reward function, and the values that it may log."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Any

from assay.clients.trainers.common.contact import Addressee, meet, meet_awaited
from assay.clients.trainers.common.fault_ratio import settle
from assay.clients.trainers.common.faults import FaultPolicy, explanation_of, judgement_of
from assay.clients.trainers.common.settings import Settings, client_of
from assay.clients.types import Item, Result

_LEAST_S = 0.5  # left for scoring by a first contact that took all of the time


def score(settings: Settings, items: Sequence[Item], missing: str = "") -> list[Result]:
    """Scores items and waits; a single item shares a call with those of other threads.

    The settings' time-out is for all of it. `missing` is the remedy for missing references, if any.

    Raises:
        FirstContactError: There is no server that can judge them (`contact`).
        TooManyFaultsError: Too many of the latest samples are faults (`fault_ratio`).
    """
    client, whom, began_s = client_of(settings), addressee_of(settings), time.monotonic()
    meet(client, whom, items, missing)
    left_s = _left_s(settings, began_s)
    if len(items) == 1:
        results = [client.score_one(items[0], timeout_s=left_s)]
    else:
        results = client.score(items, timeout_s=left_s)
    settle(whom, settings.max_fault_ratio, results, missing)
    return results


async def score_awaited(
    settings: Settings, items: Sequence[Item], missing: str = ""
) -> list[Result]:
    """As `score`, on any event loop without a thread."""
    client, whom, began_s = client_of(settings), addressee_of(settings), time.monotonic()
    await meet_awaited(client, whom, items, missing)
    left_s = _left_s(settings, began_s)
    if len(items) == 1:
        results = [await asyncio.wrap_future(client.submit_one(items[0], timeout_s=left_s))]
    else:
        results = await asyncio.wrap_future(client.submit(items, timeout_s=left_s))
    settle(whom, settings.max_fault_ratio, results, missing)
    return results


def addressee_of(settings: Settings) -> Addressee:
    """Whom these settings ask, and for what."""
    return Addressee(settings.target, settings.verifier, settings.task)


def _left_s(settings: Settings, began_s: float) -> float:
    left_s = settings.timeout_s - (time.monotonic() - began_s)
    return max(left_s, min(_LEAST_S, settings.timeout_s))


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
