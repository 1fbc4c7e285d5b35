"""Writes results into an answer: each has an id, timings, and one outcome.

An answer fits into one message. Results that do not fit lose first what is for people only, then
become faults; none is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from assay.kit import limits
from assay.kit.batch.items import PendingItem
from assay.kit.durations import fill_duration
from assay.kit.errors import make_status
from assay.kit.faults import ItemFault
from assay.kit.reasons import Reason

# What the results of one answer may hold in all: below the greatest message, less its framing.
ANSWER_BYTES = limits.MAX_MESSAGE_BYTES - 2**20


class Room:
    """What the outcomes of one answer may still hold."""

    def __init__(self, room_bytes: int = ANSWER_BYTES) -> None:
        self._left_bytes = room_bytes

    def take(self, size_bytes: int) -> bool:
        """Takes so many bytes; takes nothing and returns False if there are fewer."""
        if size_bytes > self._left_bytes:
            return False
        self._left_bytes -= size_bytes
        return True


def fill_fault(result: Any, fault: ItemFault) -> None:
    """Writes why there is no judgement."""
    result.fault.CopyFrom(make_status(fault.reason, fault.message, metadata=fault.metadata))


def fill_result(result: Any, item: PendingItem, fill: Callable[[Any, Any], None]) -> None:
    """Writes the result of a settled item into an empty one; `fill` writes its judgement."""
    result.id = item.item_id
    timings = result.timings
    fill_duration(timings.queue, item.queue_s)
    fill_duration(timings.execution, item.execution_s)
    if isinstance(item.outcome, ItemFault):
        fill_fault(result, item.outcome)
    else:
        fill(result, item)


def fit_results(
    pairs: Iterable[tuple[PendingItem, Any]],
    shorten: Callable[[Any], None],
    no_room: str,
    room_bytes: int = ANSWER_BYTES,
) -> None:
    """Shortens results that do not fit into `room_bytes`, or makes faults of them, in order."""
    room = Room(room_bytes)
    for item, result in pairs:
        if room.take(result.ByteSize()):
            continue
        shorten(result)
        if not room.take(result.ByteSize()):
            item.outcome = ItemFault(Reason.MESSAGE_TOO_LARGE, no_room)
            fill_fault(result, item.outcome)
            room.take(result.ByteSize())
