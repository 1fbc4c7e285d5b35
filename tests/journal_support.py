"""Settled items, and journals filled with them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from assay.reward_server.domain import (
    Candidate,
    Component,
    Fault,
    Judgement,
    Message,
    Outcome,
    ParameterValue,
    Span,
    VerifierItem,
)
from assay.reward_server.journal.store import MIN_LIMIT_BYTES
from assay.reward_server.journal.writer import Journal, JournalState
from assay.reward_server.pending import PendingScore, Served
from assay.reward_server.registry import load_registry

REGISTRY = load_registry(profiles=())


def judgement(reward: float = 1.0, verdict: str = "correct", **more: object) -> Judgement:
    return Judgement(reward, verdict, (Component("match", reward),), **more)  # type: ignore[arg-type]


def settled(
    item_id: str,
    outcome: Outcome | None = None,
    *,
    verifier: str = "exact",
    response: str = "42",
    prompt: str = "What is 6 * 7?",
    reference: str = "42",
    labels: dict[str, str] | None = None,
    parameters: dict[str, ParameterValue] | None = None,
) -> PendingScore:
    found = REGISTRY.get(verifier)
    item = VerifierItem(
        Candidate(response),
        references=(reference,),
        prompt=(Message("user", prompt),),
        parameters={} if found is None else found.spec.complete(parameters or {}),
    )
    made = PendingScore(item_id, time.monotonic(), item=item)
    made.served = None if found is None else Served.of(found)
    made.size_bytes = len(response)
    made.labels = labels or {}
    made.settle(judgement() if outcome is None else outcome)
    return made


SPANNED = judgement(
    0.5,
    "partial",
    extracted_answer="42",
    explanation="half of it",
    spans=(Span(0, 2, 1.0, "step"), Span(2, 5, 0.0, "step")),
    suspicions=("several-boxed-answers",),
)
LATE = Fault("ITEM_TIMEOUT", "it took too long")


async def filled(
    path: Path, offers: Sequence[Sequence[PendingScore]], **bounds: int
) -> JournalState:
    """A journal that was offered items, and was closed."""
    journal = Journal(path, MIN_LIMIT_BYTES, **bounds)
    await journal.start()
    for items in offers:
        journal.offer(items)
    await journal.close()
    return journal.state()
