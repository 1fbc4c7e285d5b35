r"""Answers in a notation: intervals, inequalities, chemical formulas, Roman numerals, and others.

Each has a lenient reader, which gives all readings that a text may have: two texts are apart where
no reading is common. What is asked is made by changing one thing, and kept where it is apart.
A notation whose texts may be something else is read only where the prompt names it. Pure.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from assay.audit.answers.chemistry import chemical, near_chemicals, near_reactions, reaction
from assay.audit.answers.measures import MEASURES
from assay.audit.answers.numerals import near_numerals, roman
from assay.audit.answers.paths import near_patterns, place_misses, read_pattern
from assay.audit.answers.readings import NOTHING, Notation, Readings, asked
from assay.audit.answers.records import RECORD
from assay.audit.answers.regions import near_regions, region_of
from assay.audit.answers.shapes import Miss, plainest
from assay.audit.answers.terms import is_alone, is_once
from assay.audit.answers.tokens import other_text, read_text, text_misses

_HERE = "component"


def notation_of(text: str, prompt: str) -> Notation | None:
    """The notation of an answer."""
    for one in NOTATIONS if len(text) <= _MOST_CHARS else ():
        told = one.asked is None or one.asked.search(prompt) or (one.sure and one.sure.search(text))
        if told and one.read(text):
            return one
    return None


_MOST_CHARS = 120


# Assignments, and strings whose signs count

_PAIR = re.compile(r"\s*([A-Za-z_][\w ]{0,24}?)\s*(=|:(?!//))\s*([^=:,;\n]{1,40}?)\s*")
_BETWEEN = re.compile(r"\s*[,;]\s*(?:and\s+)?|\s+and\s+")


def _pairs(text: str) -> Readings:
    found = [_PAIR.fullmatch(one) for one in _BETWEEN.split(text.strip())]
    if len(found) < 2 or any(one is None for one in found):
        return NOTHING
    known = {one[1].casefold(): one[3].casefold() for one in found if one}
    return frozenset((tuple(sorted(known.items())),)) if len(known) == len(found) else NOTHING


def _near_pairs(text: str, prompt: str) -> Iterator[Miss]:
    spans = [0, *(end for one in _BETWEEN.finditer(text) for end in one.span()), len(text)]
    found = [_PAIR.fullmatch(text, a, b) for a, b in zip(spans[::2], spans[1::2], strict=True)]
    pairs = [one for one in found if one]
    for a, b in itertools.pairwise(pairs):
        if a[3] != b[3]:
            turned = text[: a.start(3)] + b[3] + text[a.end(3) : b.start(3)] + a[3]
            yield _HERE, turned + text[b.end(3) :], "two values are exchanged"
    for one in (*pairs[:1], *pairs[-1:]):
        number = re.fullmatch(r"(-?)(\d+)(.*)", one[3])
        new = f"{number[1]}{int(number[2]) + 1}{number[3]}" if number else "zinc"
        if re.fullmatch(r"true|yes", one[3], re.IGNORECASE):
            new = {"true": "false", "yes": "no"}[one[3].lower()]
        yield _HERE, text[: one.start(3)] + new + text[one.end(3) :], "a value is another"
    values = {one[3].casefold(): one[3] for one in pairs}
    for one in (*pairs[:1], *pairs[-1:]):
        for other in [each for key, each in values.items() if key != one[3].casefold()][:1]:
            new = text[: one.start(3)] + other + text[one.end(3) :]
            yield _HERE, new, "a value is that of another name"
    for value in list(values.values())[:2] if len(values) > 1 else ():
        every = text
        for one in reversed(pairs):
            every = every[: one.start(3)] + value + every[one.end(3) :]
        yield _HERE, every, "all have one value"
    yield from _pairs_more(text, prompt, pairs)
    yield "list-part", text[: spans[-3]], "its last pair is left out"
    yield "list-part", text[spans[2] :], "its first pair is left out"


def _pairs_more(text: str, prompt: str, pairs: Sequence[re.Match[str]]) -> Iterator[Miss]:
    """A name twice with two values, and a name more, where the prompt leaves no room for them."""
    mark = text[pairs[0].end() : pairs[1].start()]
    for one in (pairs[0], pairs[-1]):
        other = next((each[3] for each in pairs if each[3] != one[3]), "zinc")
        wrong = text[one.start() : one.start(3)] + other
        last = f"{text}{mark}{wrong}"
        yield "key-twice", last, "a name twice, the last time wrong"
        if is_once(prompt):
            yield "key-twice", f"{wrong}{mark}{text}", "a name twice, the first time wrong"
            yield "key-twice", f"{text}{mark}{one[0].strip()}", "a pair twice"
    if is_alone(prompt):
        first = pairs[0]
        sign = text[first.end(1) : first.start(3)]
        more = f"zinc{sign}{first[3]}"
        yield "extra-field", f"{text}{mark}{more}", "a name that was not asked for"


_STRINGS = re.compile(
    r"[A-Z]{4,}|0[xX][0-9A-Fa-f]+|0[bB][01]+|#[0-9A-Fa-f]{6}|\d{1,6}(?:-\d{1,7}){2,4}|[01]{5,}"
    r"|(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=.*[A-Za-z])(?:https?://)?[\w.-]*(?:/[\w.?=&%#~+-]+){1,}/?|[()\[\]{}<>]{4,}"
)
_SPELT = re.compile(
    r"\b(?:string|sequence|codes?|letters?|\w*encode\w*|\w*decode\w*|reverse\w*|backwards|cipher\w*"
    r"|DNA|RNA|moves?|spell\w*|strand|key|binary|bits?|hex\w*|colou?r|path|url|link|isbn|serial"
    r"|address|uuid|brackets?|parenthes[ei]s|file|folder|route|barcode)\b",
    re.IGNORECASE,
)


def _string(text: str) -> Readings:
    text = text.strip()
    if not _STRINGS.fullmatch(text):
        return NOTHING
    return frozenset((plainest(text) or text,))


def _near_strings(text: str, prompt: str) -> Iterator[Miss]:
    yield from place_misses(text, prompt)
    note = "two neighbours are exchanged"
    unlike = [n for n in range(len(text) - 1) if text[n] != text[n + 1]]
    for place in dict.fromkeys((*unlike[-1:], *unlike[len(unlike) // 2 :][:1])):
        turned = text[:place] + text[place + 1] + text[place] + text[place + 2 :]
        yield _HERE, turned, note
    yield _HERE, text[:-1], "its last sign is left out"
    yield _HERE, text + text[-1], "its last sign twice"
    yield _HERE, text[: len(text) // 2] + text[len(text) // 2 + 1 :], "a sign is left out"
    for place in (len(text) - 1, len(text) // 2):
        other = {"0": "1", "1": "0", "(": ")", ")": "("}.get(text[place], "")
        if text[place].isdigit() and not other:
            other = str((int(text[place]) + 1) % 10)
        elif text[place].isalpha():
            other = next(one for one in text + "AC" if one.isalpha() and one != text[place])
        if other:
            yield _HERE, text[:place] + other + text[place + 1 :], "a sign is another"
    if "/" in text:
        yield _HERE, text.rstrip("/").rpartition("/")[0], "its last part is left out"
    if text[::-1] != text:
        yield _HERE, text[::-1], "in reverse"
    yield "lax-form", text.swapcase(), "capitals and small letters are exchanged"


_IN_ROMAN = asked("roman")
_IN_ENDS = asked(r"intervals?|inequalit\w+|domain|range of|solution set|(?:in|ex)cluded|inclusive")
_ONE_WAY = re.compile(r"[<>\u2264\u2265]|\\[lg]eq?\b|inf|\u221e|oo|\[[^\])]*\)|\([^\])]*\]")
TEXT = Notation("text", read_text, text_misses, None, None, other_text)
"""Of a short text with a number in it that is nothing else: its rules are proof."""
NOTATIONS = (
    RECORD,
    Notation("reaction", reaction, near_reactions),
    Notation(
        "pattern", read_pattern, near_patterns,
        asked(r"regular expressions?|regexp?s?|regexes|patterns?"),
    ),
    Notation("region", region_of, near_regions, _IN_ENDS, _ONE_WAY),
    Notation("numeral", roman, near_numerals, _IN_ROMAN),
    Notation(
        "chemical", chemical, near_chemicals,
        asked(r"formulas?|formulae|compounds?|chemical\w*|molecul\w+|ions?|symbols?|substance"),
    ),
    *MEASURES,
    Notation("pairs", _pairs, _near_pairs),
    Notation("string", _string, _near_strings, _SPELT),
)  # fmt: skip
