"""From items to results: each item gets a ticket, each ticket becomes exactly one result.

A ticket is settled at once (a bad item, a cached judgement), by a verifier in the server's own
process, by a flight in the worker pool, by another service, or by the parts of a composite. Here
are the tickets and what makes a request acceptable; `desk` issues them, `judging` has them settled.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from assay.api.reward.v1 import reward_pb2
from assay.reward_server import convert
from assay.reward_server.domain import Fault, Item, Judgement, Outcome, Verifier
from assay.reward_server.flights import Flight

LATE = Fault("DEADLINE_EXCEEDED", "the call's deadline came before the item was judged")


@dataclass(eq=False, slots=True)
class Ticket:
    """One item on its way to its result.

    Attributes:
        item_id: the caller's id.
        arrived_s: when the request arrived, by the monotonic clock.
        verifier: the verifier, once known.
        item: the item, once it is known to be sound.
        timeout_s: limit of its execution.
        size_bytes: what it takes in memory, roughly.
        key: what equal items share; None where nothing may be shared, or nobody asked yet.
        flight: the execution that it waits for; None when there is none (any more).
        shared: the flight was launched for another item.
        outcome: set once, when the item is settled.
        started_s: when execution began, by the monotonic clock.
        execution_s: how long it took.
        from_cache: the judgement was computed for another item.
        refused: the item as it came, where it was not sound; for the journal.
        parts: those of a composite that were judged, where there is a trace to show them.
    """

    item_id: str
    arrived_s: float
    verifier: Verifier | None = None
    item: Item | None = None
    timeout_s: float = 0.0
    size_bytes: int = 0
    key: bytes | None = None
    flight: Flight | None = None
    shared: bool = False
    outcome: Outcome | None = None
    started_s: float = 0.0
    execution_s: float = 0.0
    from_cache: bool = False
    refused: reward_pb2.Item | None = None
    parts: Sequence[Ticket] = ()

    def settle(
        self,
        outcome: Outcome,
        *,
        started_s: float | None = None,
        execution_s: float = 0.0,
        from_cache: bool = False,
    ) -> None:
        """Sets the outcome.

        Args:
            outcome: judgement or fault.
            started_s: when execution began; now, if it never did.
            execution_s: how long it took.
            from_cache: the judgement was computed for another item.
        """
        self.started_s = time.monotonic() if started_s is None else started_s
        self.outcome = outcome
        self.execution_s = execution_s
        self.from_cache = from_cache

    def land(self) -> None:
        """Settles the ticket with what its flight, which is done, has brought."""
        if self.flight is None:
            return
        done = self.flight.done.result()
        self.flight = None
        if self.shared and isinstance(done.outcome, Judgement):
            self.settle(done.outcome, from_cache=True)
        else:
            self.settle(done.outcome, started_s=done.started_s, execution_s=done.execution_s)


def add_results(
    results: RepeatedCompositeFieldContainer[reward_pb2.Result], tickets: Sequence[Ticket]
) -> None:
    """Writes the results of settled tickets, in order.

    Args:
        results: where a response keeps its results.
        tickets: any; those that are not settled are left out.
    """
    for ticket in tickets:
        if ticket.outcome is None:
            continue
        convert.fill_result(
            results.add(),
            ticket.item_id,
            ticket.outcome,
            ticket.verifier.spec if ticket.verifier else None,
            queue_s=ticket.started_s - ticket.arrived_s,
            execution_s=ticket.execution_s,
            from_cache=ticket.from_cache,
        )
