"""Items on their way out, results on their way in, and which belongs to which. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from assay.api.reward.v1 import reward_pb2
from assay.clients.convert import item_to_proto, make_fault, result_from_proto
from assay.clients.types import Fault, Item, Result
from assay.rpc.errors import refuse
from assay.rpc.limits import MAX_ITEM_ID_BYTES
from assay.rpc.reasons import Reason


def name_items(items: Sequence[Item]) -> list[str]:
    """The id of each item: its own, or its position for one that has none.

    Raises:
        TypeError: One is no `Item`.
        BadRequestError: Two items share an id, or an id is longer than 256 bytes.
    """
    given: Sequence[object] = items  # whatever its annotation promises
    for position, item in enumerate(given):
        if not isinstance(item, Item):
            kind = type(item).__name__
            raise TypeError(f"items[{position}] is a {kind}; pass Item(response, reference, ...)")
    ids = [item.id or str(position) for position, item in enumerate(items)]
    for item_id, count in Counter(ids).items():
        if count > 1:
            raise refuse(
                Reason.DUPLICATE_ITEM_ID,
                f"{count} items have the id {item_id!r}; make ids unique, or leave them empty",
            )
        check_id(item_id)
    return ids


def check_id(item_id: str) -> None:
    """Raises BadRequestError for an id that is longer than 256 bytes."""
    if len(item_id.encode(errors="surrogatepass")) > MAX_ITEM_ID_BYTES:
        raise refuse(
            Reason.MISSING_ITEM_ID,
            f"the id {item_id[:40]!r}... is longer than {MAX_ITEM_ID_BYTES} bytes; shorten it",
        )


def encode(item: Item, item_id: str) -> reward_pb2.Item | Fault:
    """The item's message, or the fault of an item that no message can hold."""
    try:
        return item_to_proto(item, item_id)
    except ValueError as error:
        text = " ".join(str(error).split())[:200]
        return make_fault(Reason.UNSUPPORTED_INPUT, f"the item cannot be sent: {text}")


def match_results(
    items: Sequence[reward_pb2.Item], results: Iterable[reward_pb2.Result]
) -> list[Result]:
    """The result of each item, by id: unknown results are passed over, absent ones are faults.

    Args:
        items: what was sent, ids unique.
        results: what came back, in any order.
    """
    by_id: dict[str, reward_pb2.Result] = {}
    contradicted: set[str] = set()
    for result in results:
        if by_id.setdefault(result.id, result) != result:
            contradicted.add(result.id)
    matched = []
    for item in items:
        answer = by_id.get(item.id)
        if answer is None:
            fault = make_fault(Reason.MISSING_RESULT, "the server answered without this item")
            matched.append(Result(item.id, fault))
        elif item.id in contradicted:
            fault = make_fault(Reason.INTERNAL, "the server answered this item twice, differently")
            matched.append(Result(item.id, fault))
        else:
            matched.append(result_from_proto(answer, item.id))
    return matched
