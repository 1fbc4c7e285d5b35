"""Roman numerals: their values, and what is close to one. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cache

from assay.audit.answers.shapes import Miss

_HERE = "component"
_ROMAN = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
    (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip


def _to_roman(value: int) -> str:
    text = ""
    for worth, sign in _ROMAN:
        count, value = divmod(value, worth)
        text += sign * count
    return text


@cache
def _numerals_of(signs: str) -> tuple[str, ...]:
    """All numerals of the same letters: each as often as here, or as often as may be."""
    every = map(_to_roman, range(1, 4000))
    return tuple(one for one in every if signs in ("".join(sorted(one)), "".join(sorted(set(one)))))


def roman(text: str) -> frozenset[Hashable]:
    """The value of a numeral as it is written; nothing of what is none."""
    known, left, value = text.strip().upper(), text.strip().upper(), 0
    for worth, sign in _ROMAN:
        while left.startswith(sign):
            left, value = left[len(sign) :], value + worth
    return frozenset((value,)) if 0 < value < 4000 and _to_roman(value) == known else frozenset()


def near_numerals(text: str, _: str) -> Iterator[Miss]:
    """Other numerals: close ones, and those of the same letters."""
    (value,) = roman(text)
    assert isinstance(value, int)  # noqa: S101 - a numeral's reading
    known = _to_roman(value)
    close = {
        "the same letters in another order": _numerals_of("".join(sorted(known))),
        "the same letters, others more often": _numerals_of("".join(sorted(set(known)))),
    }
    for by in (1, -1, 10, -10):
        if 0 < value + by < 4000:
            yield _HERE, _to_roman(value + by), f"{abs(by)} {'more' if by > 0 else 'less'}"
    for note, fit in close.items():
        for one in [one for one in fit if one != known][:2]:
            yield _HERE, one, note
    for place in (0, len(text) - 1):
        yield _HERE, text[:place] + text[place + 1 :], "a letter is left out"
