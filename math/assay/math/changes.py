"""Words right around a number that change what it says: `minus 12`, `half of 12`, `12 million`.

For answers in prose, where only a number or a formula is taken out of a sentence. A sign or a
magnitude is taken along; with any other such word (`at least 12`, `12 and a half`) what stands
there is not the number, and is no answer.

Each look is at 60 characters on one side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LOOK = 60
_GLUE = r"(?:\s|\\?\$|\*)*"
_SIGN = re.compile(
    rf"(?:(?:\A|[=:,;(]|\b(?:is|are|be|was|get|gets|equals?|to|answer|and|or|have|gives?))\s*\$?"
    rf"(?P<minus>minus)|(?<!non-)(?<!non)\b(?P<negative>negative)){_GLUE}\Z",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"\b(?:at (?:least|most)|(?:more|less|fewer|greater|larger|smaller|bigger|higher|lower|other)"
    r" than|half(?: of| as)?|(?:third|quarter|fifth|tenth|percent|none|multiple|factor|divisor"
    r"|power|square|cube|root|roots|logarithm|reciprocal|inverse|opposite|negation|factorial"
    r"|function|out|some|part|instead) of|twice|double|triple|thrice|times|plus|minus|modulo|mod"
    r"|(?:divided|multiplied|divisible) by|anything but|everything but|all but|except(?: for)?"
    r"|exceed(?:s|ing)?|below|above|neither|nor|coprime (?:to|with)|% of)"
    rf"{_GLUE}\Z",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    rf"{_GLUE}(?:(?:or|and) (?:more|less|fewer|greater|higher|lower|above|below|larger|smaller|up"
    r"|over|under)|and (?:a|one|two|three)[ -](?:half|third|quarter|fourth|fifth)s?|squared|cubed"
    r"|factorial|(?:more|less|fewer|greater) than \\?\$?[a-zA-Z]|plus|minus|mod|modulo"
    r"|(?:divided|multiplied) by|to the power|raised to|(?:%|percent) of \$?\d|times \$?\d"
    r"|out of \$?\d)(?![A-Za-z])",
    re.IGNORECASE,
)
_MAGNITUDE = re.compile(
    rf"{_GLUE}(?P<word>hundred|thousand|million|billion|trillion|dozen)s?(?![A-Za-z])"
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the words around a number make of it.

    Attributes:
        changed: they say that it is another number, several, or none.
        start: where it begins with the word for its sign, if it has one.
        negative: whether it has.
        magnitude: the word behind that multiplies it; empty without one.
    """

    changed: bool
    start: int
    negative: bool = False
    magnitude: str = ""


def around(text: str, start: int, end: int) -> Surroundings:
    """What stands around the number, or the formula with its marks, from `start` to `end`."""
    before = text[max(0, start - _LOOK) : start].rpartition("\n")[2]
    behind = text[end : end + _LOOK].partition("\n")[0]
    if _BEHIND.match(behind):
        return Surroundings(True, start)
    multiple = _MAGNITUDE.match(behind)
    magnitude = multiple["word"] if multiple else ""
    sign = _SIGN.search(before)
    if sign is not None:
        word = sign.start("minus") if sign["minus"] else sign.start("negative")
        return Surroundings(False, start - len(before) + word, True, magnitude)
    return Surroundings(_BEFORE.search(before) is not None, start, False, magnitude)
