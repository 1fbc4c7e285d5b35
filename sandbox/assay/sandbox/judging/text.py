"""Values in a few characters, for explanations. The cost is bounded, however large the value."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

SHOWN: Final = 80
LINE: Final = 400


def brief(value: object, limit: int = SHOWN) -> str:
    """A plain value as Python writes it, cut to about `limit` characters, in one line."""
    written = "".join(_pieces(value, limit))
    return written if len(written) <= limit else written[: limit - 3] + "..."


def brief_bytes(value: bytes, limit: int = SHOWN) -> str:
    """Bytes of output as quoted text, cut to about `limit` characters, in one line."""
    return brief(value[: 4 * limit + 4].decode("utf-8", "replace"), limit)


def one_line(text: str) -> str:
    """A text in one line of at most 400 characters, all of them printable."""
    cut = " ".join(text[: 4 * LINE].split())
    shown = "".join(letter if letter.isprintable() else "?" for letter in cut)
    return shown if len(shown) <= LINE else shown[: LINE - 3] + "..."


def _pieces(value: object, room: int) -> list[str]:
    """The text in pieces; stops soon after `room` characters."""
    if isinstance(value, (str, bytes)):
        return [ascii(value[: room + 4]) if _hidden(value) else repr(value[: room + 4])]
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return [f"<whole number of {value.bit_length()} bits>"]
    if isinstance(value, dict) and value:
        return _listed("{", list(value.items())[: room + 1], "}", room, mapping=True)
    if isinstance(value, (list, tuple, set, frozenset)):
        return _collection(value, room)
    if isinstance(value, (deque, range, Fraction)):
        return [type(value).__name__, *_collection(_parts(value, room), room)]
    return [repr(value)[: room + 4]]


def _parts(value: deque[object] | range | Fraction, room: int) -> list[object] | tuple[object, ...]:
    if isinstance(value, deque):
        return [*itertools.islice(value, room + 1)]
    if isinstance(value, range):
        return (value.start, value.stop, value.step)
    return (value.numerator, value.denominator)


def _collection(
    value: list[object] | tuple[object, ...] | set[object] | frozenset[object], room: int
) -> list[str]:
    if isinstance(value, list):
        opening, closing = "[", "]"
    elif isinstance(value, tuple):
        opening, closing = "(", ",)" if len(value) == 1 else ")"
    elif not value:
        return [f"{type(value).__name__}()"]
    else:
        opening, closing = ("{", "}") if isinstance(value, set) else ("frozenset({", "})")
    first = [item for item, _ in zip(value, range(room + 1), strict=False)]
    return _listed(opening, first, closing, room)


def _listed(
    opening: str, items: Sequence[object], closing: str, room: int, *, mapping: bool = False
) -> list[str]:
    pieces = [opening]
    left = room - 1
    for index, item in enumerate(items):
        if left <= 0:
            return pieces
        if index:
            pieces.append(", ")
        if mapping and isinstance(item, tuple):
            inner = [*_pieces(item[0], left), ": ", *_pieces(item[1], left)]
        else:
            inner = _pieces(item, left)
        pieces += inner
        left -= sum(map(len, inner)) + 2
    return [*pieces, closing]


def _hidden(value: str | bytes) -> bool:
    return isinstance(value, str) and not value.isprintable()
