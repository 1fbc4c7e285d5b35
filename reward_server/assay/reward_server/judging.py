"""Settles items that no worker judges: by other services, and composites by their parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from assay.kit import tracing
from assay.kit.batch.dispatcher import Dispatcher
from assay.kit.queue import Lane
from assay.reward_server import border
from assay.reward_server.domain import (
    CompositeVerifier,
    Fault,
    Outcome,
    RemoteVerifier,
    Stages,
    VerifierItem,
)
from assay.reward_server.pending import PendingScore

MakePart = Callable[[str, VerifierItem, float], PendingScore]
"""Makes an item of a composite's part: for a verifier, with a time-out in seconds."""


class Proves(Protocol):
    """Tests verifiers before their first use."""

    async def prove_first(self, items: Sequence[PendingScore], deadline_s: float) -> None:
        """Tests the lazy ones that are not tested yet; settles the items of one that fails."""


async def judge_remote(items: Sequence[PendingScore], deadline_s: float) -> None:
    """Has each other service judge all items of its verifiers.

    Args:
        items: any; those that are settled, or of other verifiers, stay as they are.
        deadline_s: when to answer, by the monotonic clock.
    """
    waiting: dict[str, list[tuple[PendingScore, VerifierItem]]] = {}
    verifiers: dict[str, RemoteVerifier] = {}
    for pending in items:
        served, item = pending.served, pending.item
        if pending.outcome is not None or item is None or served is None:
            continue
        if isinstance(served.verifier, RemoteVerifier):
            verifiers[served.spec.name] = served.verifier
            waiting.setdefault(served.spec.name, []).append((pending, item))

    async def ask(verifier: RemoteVerifier, pairs: list[tuple[PendingScore, VerifierItem]]) -> None:
        began_s = time.monotonic()
        items = [item for _, item in pairs]
        with tracing.span(f"ask {verifier.spec.name}", {"assay.items": len(items)}):
            answers = await border.judge_all(verifier, items, max(0.001, deadline_s - began_s))
        for (pending, _), answer in zip(pairs, answers, strict=True):
            if pending.outcome is None:
                pending.settle(
                    answer.outcome,
                    started_s=began_s + answer.queue_s,
                    execution_s=answer.execution_s,
                )

    await asyncio.gather(*(ask(verifiers[name], pairs) for name, pairs in waiting.items()))


@dataclass(slots=True)
class _Run:
    """A composite at work on one item.

    Attributes:
        pending: the item.
        verifier: the profile or other composite.
        steps: yields the subtasks of one stage, is sent their outcomes, returns the outcome.
        parts: those of the current stage.
        started_s: when the first part began to be judged.
        execution_s: what its parts have taken so far.
    """

    pending: PendingScore
    verifier: CompositeVerifier
    steps: Stages
    parts: list[PendingScore] = field(default_factory=list)
    started_s: float | None = None
    execution_s: float = 0.0

    def advance(
        self, make_part: MakePart, late: Fault, outcomes: tuple[Outcome, ...] | None
    ) -> bool:
        """Goes on to the next stage; False when there is none, and the item is settled."""
        stage, outcome = border.step(self.verifier.spec, self.steps, outcomes)
        if stage is None:
            self.pending.settle(
                outcome or late, started_s=self.started_s, execution_s=self.execution_s
            )
            return False
        timeout_s = self.pending.timeout_s
        self.parts = [make_part(task.verifier, task.item, timeout_s) for task in stage]
        if self.pending.origin == "canary":
            for part in self.parts:
                part.origin = "canary"
        return True

    def collect(self, late: Fault) -> tuple[Outcome, ...]:
        """The outcomes of the stage; a missing one is late."""
        for part in self.parts:
            began_s = part.started_s
            if began_s is not None and (self.started_s is None or began_s < self.started_s):
                self.started_s = began_s
            self.execution_s += part.execution_s
        if tracing.on() or self.pending.origin == "canary":
            self.pending.parts = [*self.pending.parts, *self.parts]
        return tuple(part.outcome or late for part in self.parts)


async def judge_composites(
    make_part: MakePart,
    dispatcher: Dispatcher[PendingScore],
    items: Sequence[PendingScore],
    deadline_s: float,
) -> None:
    """Judges the items of composites stage by stage, the parts of all items of a stage together.

    Args:
        make_part: makes the parts.
        dispatcher: runs them.
        items: any; those that are settled, or of other verifiers, stay as they are.
        deadline_s: when to answer, by the monotonic clock.
    """
    lane, late = Lane(), dispatcher.late
    runs: list[_Run] = []
    for pending in items:
        served, item = pending.served, pending.item
        if pending.outcome is not None or item is None or served is None:
            continue
        if isinstance(served.verifier, CompositeVerifier):
            runs.append(_Run(pending, served.verifier, served.verifier.run(item)))
    runs = [run for run in runs if run.advance(make_part, late, None)]
    while runs:
        parts = [part for run in runs for part in run.parts]
        await dispatcher.settle(parts, lane, deadline_s)
        runs = [run for run in runs if run.advance(make_part, late, run.collect(late))]
