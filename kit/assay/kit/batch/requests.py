"""When a request as a whole is refused, and when to answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from assay.kit import limits
from assay.kit.errors import refuse
from assay.kit.reasons import Reason

_MIN_MARGIN_S = 0.05
_MAX_MARGIN_S = 0.5


class Identified(Protocol):
    """A message with an id."""

    @property
    def id(self) -> str:
        """Chosen by the caller."""
        ...


def check_chunk(
    messages: Sequence[Identified], seen: set[str], max_items: int, *, noun: str = "item"
) -> None:
    """Checks whether a request as a whole is acceptable.

    `seen` has the ids that came before in the same stream; those of these items are added.

    Raises:
        CallError: EMPTY_BATCH, BATCH_TOO_LARGE, MISSING_ITEM_ID or DUPLICATE_ITEM_ID.
    """
    if not messages:
        raise refuse(Reason.EMPTY_BATCH, f"the request holds no {noun}s")
    if len(messages) > max_items:
        raise refuse(
            Reason.BATCH_TOO_LARGE,
            f"the request holds {len(messages)} {noun}s, the limit is {max_items}",
            max_items=str(max_items),
        )
    for index, message in enumerate(messages):
        name = message.id
        if not name or len(name.encode()) > limits.MAX_ITEM_ID_BYTES:
            what = "has no id" if not name else "has an id that is too long"
            raise refuse(
                Reason.MISSING_ITEM_ID,
                f"{noun} {index} {what}; an id has 1 to {limits.MAX_ITEM_ID_BYTES} bytes",
            )
        if name in seen:
            raise refuse(Reason.DUPLICATE_ITEM_ID, f"two {noun}s have the id {name!r}")
        seen.add(name)


def answer_by_s(arrived_s: float, timeout_s: float) -> float:
    """When to answer, by the monotonic clock, for the answer to arrive in time."""
    margin_s = min(timeout_s / 2, _MAX_MARGIN_S, max(_MIN_MARGIN_S, timeout_s / 20))
    return arrived_s + max(0.0, timeout_s - margin_s)
