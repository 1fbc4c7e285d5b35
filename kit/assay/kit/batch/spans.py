"""The items of a call as its trace shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.kit.batch.items import PendingItem
from assay.kit.faults import ItemFault
from assay.kit.metrics import UNKNOWN
from assay.kit.trails import Fact, Stretch, item_stretch


@dataclass(frozen=True, slots=True)
class Details:
    """What a trace shows of an item, beside its times and its fault.

    Attributes:
        facts: never what a caller wrote.
        execution_s: from its beginning to its end, where that is not the item's own figure.
    """

    facts: Mapping[str, Fact] = field(default_factory=dict)
    parts: tuple[Stretch, ...] = ()
    execution_s: float | None = None


def stretch(item: PendingItem, number: int, by: str, who: str, details: Details) -> Stretch:
    """A settled item from its arrival to its outcome.

    Args:
        item: settled.
        number: its number in the call, from 0.
        by: the kind of judge: "verifier", "language" or "model".
        who: its name; empty for none.
        details: the rest.
    """
    facts: dict[str, Fact] = {"assay.item": number, f"assay.{by}": who or UNKNOWN, **details.facts}
    reason = str(item.outcome.reason) if isinstance(item.outcome, ItemFault) else ""
    if reason:
        facts["assay.fault"] = reason
    return item_stretch(
        who or UNKNOWN,
        item.arrived_s,
        item.arrived_s + item.queue_s,
        item.execution_s if details.execution_s is None else details.execution_s,
        facts,
        reason=reason,
        parts=details.parts,
    )
