"""The items of a call as its trace shows them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from assay.reward_server.domain import Fault
from assay.reward_server.tickets import Ticket
from assay.rpc import tracing
from assay.rpc.metrics import UNKNOWN
from assay.rpc.trails import Fact, Stretch, item_stretch


def note(tickets: Iterable[Ticket]) -> None:
    """Tells the trace of the call in progress, if it is in one, of items that have an outcome."""
    trail = tracing.trail()
    if trail is None:
        return
    for ticket in tickets:
        if ticket.outcome is not None:
            trail.add(
                ticket.arrived_s,
                ticket.started_s,
                ticket.execution_s,
                fault=isinstance(ticket.outcome, Fault),
                describe=partial(_stretch, ticket),
            )


def _stretch(ticket: Ticket, number: int) -> Stretch:
    verifier = ticket.verifier.spec.name if ticket.verifier else UNKNOWN
    facts: dict[str, Fact] = {"assay.item": number, "assay.verifier": verifier}
    if ticket.verifier is not None:
        facts["assay.isolation"] = ticket.verifier.spec.isolation
    item, outcome = ticket.item, ticket.outcome
    if item is not None and item.response_token_count is not None:
        facts["assay.response.tokens"] = item.response_token_count
    reason = ""
    if isinstance(outcome, Fault):
        reason = outcome.reason
        facts["assay.fault"] = reason
    elif outcome is not None:
        facts["assay.verdict"] = outcome.verdict
        facts["assay.from_cache"] = ticket.from_cache
        facts["assay.suspicions"] = len(outcome.suspicions)
    ends_s = [part.started_s + part.execution_s for part in ticket.parts]
    return item_stretch(
        verifier,
        ticket.arrived_s,
        ticket.started_s,
        max(ends_s) - ticket.started_s if ends_s else ticket.execution_s,
        facts,
        reason=reason,
        parts=tuple(_stretch(part, place) for place, part in enumerate(ticket.parts)),
    )
