"""Has tickets settled: here, by workers, by other services, and composites by their parts.

The order of a request: `judge_here` first, then `launch`, then `judge_elsewhere`. Only `launch` may
refuse, and what it refuses was not launched.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from assay.reward_server import border
from assay.reward_server.desk import Desk
from assay.reward_server.domain import (
    CompositeVerifier,
    Item,
    Outcome,
    RemoteVerifier,
    Stages,
)
from assay.reward_server.tickets import LATE, Ticket
from assay.reward_server.workers.queue import QueueFull
from assay.rpc import tracing
from assay.rpc.queue import Lane

_SLICE_S = 0.02


class Proves(Protocol):
    """Tests verifiers before their first use."""

    async def prove_first(self, tickets: Sequence[Ticket], deadline_s: float) -> None:
        """Tests those that are lazy and not tested yet; settles the tickets of one that fails."""


async def judge_here(desk: Desk, tickets: Sequence[Ticket], deadline_s: float) -> None:
    """Judges what this process can, and lets other calls have their turn in between."""
    slice_ends_s = time.monotonic() + _SLICE_S
    for ticket in tickets:
        if desk.judge_here(ticket) and (now_s := time.monotonic()) > slice_ends_s:
            await asyncio.sleep(0)
            if now_s > deadline_s:
                return
            slice_ends_s = now_s + _SLICE_S


async def launch_when_it_fits(
    desk: Desk, tickets: Sequence[Ticket], lane: object, deadline_s: float
) -> None:
    """Launches as soon as the queue has room; not at all when the deadline comes first."""
    while True:
        try:
            desk.launch(tickets, lane)
        except QueueFull:
            remaining_s = deadline_s - time.monotonic()
            try:
                async with asyncio.timeout(max(0.0, remaining_s)):
                    await desk.wait_for_room(tickets)
            except TimeoutError:
                return
        else:
            return


async def judge_elsewhere(
    desk: Desk, prover: Proves, tickets: Sequence[Ticket], deadline_s: float
) -> None:
    """Waits for workers, other services and composites, until all is settled or the deadline."""
    waiting = [ticket for ticket in tickets if ticket.outcome is None]
    if waiting:
        await asyncio.gather(
            judge_composites(desk, prover, waiting, deadline_s),
            judge_remote(waiting, deadline_s),
            wait_for_flights(waiting, deadline_s),
        )


async def judge_remote(tickets: Sequence[Ticket], deadline_s: float) -> None:
    """Has other services judge the items of remote verifiers, each service all of its items.

    Args:
        tickets: any; those that are settled, or of other verifiers, stay as they are.
        deadline_s: when to answer, by the monotonic clock.
    """
    waiting: dict[str, list[tuple[Ticket, Item]]] = {}
    verifiers: dict[str, RemoteVerifier] = {}
    for ticket in tickets:
        verifier, item = ticket.verifier, ticket.item
        if ticket.outcome is None and item is not None and isinstance(verifier, RemoteVerifier):
            verifiers[verifier.spec.name] = verifier
            waiting.setdefault(verifier.spec.name, []).append((ticket, item))

    async def ask(verifier: RemoteVerifier, pairs: list[tuple[Ticket, Item]]) -> None:
        began_s = time.monotonic()
        items = [item for _, item in pairs]
        with tracing.span(f"ask {verifier.spec.name}", {"assay.items": len(items)}):
            answers = await border.judge_all(verifier, items, max(0.001, deadline_s - began_s))
        for (ticket, _), answer in zip(pairs, answers, strict=True):
            if ticket.outcome is None:
                ticket.settle(
                    answer.outcome,
                    started_s=began_s + answer.queue_s,
                    execution_s=answer.execution_s,
                )

    await asyncio.gather(*(ask(verifiers[name], pairs) for name, pairs in waiting.items()))


async def wait_for_flights(tickets: Sequence[Ticket], deadline_s: float) -> None:
    """Waits until every flight is done or the deadline comes; settles those that are done."""
    waiting = {ticket.flight.done for ticket in tickets if ticket.flight is not None}
    if waiting:
        await asyncio.wait(waiting, timeout=max(0.0, deadline_s - time.monotonic()))
    for ticket in tickets:
        if ticket.flight is not None and ticket.flight.done.done():
            ticket.land()


@dataclass(slots=True)
class _Run:
    """A composite at work on one item.

    Attributes:
        ticket: the item's.
        verifier: the profile or other composite.
        steps: yields the tasks of one stage, is sent their outcomes, returns the outcome.
        parts: the tickets of the stage that is under way.
        started_s: when the first part began to be judged.
        execution_s: what its parts have taken so far.
    """

    ticket: Ticket
    verifier: CompositeVerifier
    steps: Stages
    parts: list[Ticket] = field(default_factory=list)
    started_s: float | None = None
    execution_s: float = 0.0

    def advance(self, desk: Desk, outcomes: tuple[Outcome, ...] | None) -> bool:
        """Goes on to the next stage; False when there is none, and the ticket is settled."""
        stage, outcome = border.step(self.verifier.spec, self.steps, outcomes)
        if stage is None:
            self.ticket.settle(
                outcome or LATE, started_s=self.started_s, execution_s=self.execution_s
            )
            return False
        timeout_s = self.ticket.timeout_s
        self.parts = [desk.issue_for(task.verifier, task.item, timeout_s) for task in stage]
        return True

    def collect(self) -> tuple[Outcome, ...]:
        """The outcomes of the stage; one that is not there is late."""
        for part in self.parts:
            if part.started_s and (self.started_s is None or part.started_s < self.started_s):
                self.started_s = part.started_s
            self.execution_s += part.execution_s
        if tracing.on():
            self.ticket.parts = [*self.ticket.parts, *self.parts]
        return tuple(part.outcome or LATE for part in self.parts)


async def judge_composites(
    desk: Desk, prover: Proves, tickets: Sequence[Ticket], deadline_s: float
) -> None:
    """Judges the items of composites, stage by stage, the parts of all items of a stage together.

    Args:
        desk: issues the tickets of the parts.
        prover: tests the verifiers that are asked for first here.
        tickets: any; those that are settled, or of other verifiers, stay as they are.
        deadline_s: when to answer, by the monotonic clock.
    """
    lane = Lane()
    runs: list[_Run] = []
    for ticket in tickets:
        verifier, item = ticket.verifier, ticket.item
        if ticket.outcome is None and isinstance(verifier, CompositeVerifier) and item is not None:
            runs.append(_Run(ticket, verifier, verifier.run(item)))
    runs = [run for run in runs if run.advance(desk, None)]
    while runs:
        parts = [part for run in runs for part in run.parts]
        try:
            await prover.prove_first(parts, deadline_s)
            await judge_here(desk, parts, deadline_s)
            await launch_when_it_fits(desk, parts, lane, deadline_s)
            await judge_elsewhere(desk, prover, parts, deadline_s)
        finally:
            for part in parts:
                desk.close(part)
        runs = [run for run in runs if run.advance(desk, run.collect())]
