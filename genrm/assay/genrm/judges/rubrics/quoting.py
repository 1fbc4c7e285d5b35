"""Looks for what a judge quoted in the response. Pure.

A quotation counts where the response holds it, letter by letter but for case, spaces and the shape
of quotation marks, and not in the middle of a word. Parts around "..." follow one another.
"""

from __future__ import annotations

import re

_MARKS = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2026": "…"})
_GAP = re.compile(r"\s*(?:\.\.\.+|\u2026|\[\.\.\.\]|\[\u2026\])\s*")
_NONE = re.compile(r"\W*(?:none|nothing|no quot(?:e|ation)|n/?a)\W*", re.IGNORECASE)
_WORD = re.compile(r"\w")


def read_quotation(text: str) -> str | None:
    """What a judge quoted, of what it wrote behind an opening mark; None where it says none.

    It ends at the closing mark that ends its line, or with the text.
    """
    line = text.translate(_MARKS).strip().split("\n", 1)[0].strip()
    quoted = line.removeprefix('"').rstrip(".").removesuffix('"').strip()
    return None if not _WORD.search(quoted) or _NONE.fullmatch(quoted) else quoted


def find_quotation(response: str, quoted: str) -> tuple[int, int] | None:
    """The code points `start <= i < end` of the response that are the quotation; None for none."""
    plain, places = _plain(response)
    start, at = None, 0
    for part in filter(None, _GAP.split(quoted.translate(_MARKS))):
        words = re.escape(_plain(part)[0].strip(' .,;:"'))
        found = re.compile(rf"(?<!\w){words}(?!\w)").search(plain, at) if words else None
        if found is None:
            return None
        start, at = found.start() if start is None else start, found.end()
    return None if start is None else (places[start], places[at - 1] + 1)


def _plain(text: str) -> tuple[str, list[int]]:
    """The text in one case, with single spaces, and each character's place in it."""
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text.translate(_MARKS)):
        one = " " if letter.isspace() else letter.casefold()
        if one == " " and letters and letters[-1] == " ":
            continue
        letters.extend(one)
        places.extend([place] * len(one))
    return "".join(letters), places
