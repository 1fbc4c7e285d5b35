"""The items of a call as its trace shows them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from assay.genrm.domain import Fault
from assay.genrm.metrics import KINDS
from assay.genrm.tickets import Ticket
from assay.rpc import tracing
from assay.rpc.metrics import OTHER, UNKNOWN
from assay.rpc.trails import Fact, Stretch, item_stretch


def note(tickets: Iterable[Ticket]) -> None:
    """Tells the trace of the call in progress, if it is in one, of settled items."""
    trail = tracing.trail()
    if trail is None:
        return
    for ticket in tickets:
        trail.add(
            ticket.arrived_s,
            _began_s(ticket),
            ticket.execution_s,
            fault=isinstance(ticket.outcome, Fault),
            describe=partial(_stretch, ticket),
        )


def _stretch(ticket: Ticket, number: int) -> Stretch:
    model = ticket.plan.model.name if ticket.plan and ticket.plan.model else UNKNOWN
    facts: dict[str, Fact] = {"assay.item": number, "assay.model": model}
    reason = ""
    if isinstance(ticket.outcome, Fault):
        facts["assay.fault"] = reason = str(ticket.outcome.reason)
    else:
        facts["assay.kind"] = KINDS.get(type(ticket.outcome), OTHER)
    return item_stretch(
        model,
        ticket.arrived_s,
        _began_s(ticket),
        ticket.execution_s,
        facts,
        reason=reason,
        parts=tuple(ticket.asked or ()),
    )


def _began_s(ticket: Ticket) -> float:
    return ticket.arrived_s if ticket.started_s is None else ticket.started_s
