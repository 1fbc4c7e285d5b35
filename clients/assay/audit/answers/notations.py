r"""Answers in a notation: intervals, inequalities, chemical formulas, Roman numerals, and others.

Each has a lenient reader, which gives all readings that a text may have: two texts are apart where
no reading is common. What is asked is made by changing one thing, and kept where it is apart.
A notation whose texts may be something else is read only where the prompt names it. Pure.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from assay.audit.answers.chemistry import chemical, near_chemicals, near_reactions, reaction
from assay.audit.answers.codes import code_misses, more, near_numbers, replaced
from assay.audit.answers.numerals import near_numerals, roman
from assay.audit.answers.regions import near_regions, region_of
from assay.audit.answers.shapes import Miss, permuted, plainest
from assay.audit.answers.tokens import (
    near_patterns,
    other_text,
    place_misses,
    read_pattern,
    read_text,
    text_misses,
)

Readings = frozenset[Hashable]
_NONE: Readings = frozenset()
_HERE = "component"


@dataclass(frozen=True, slots=True)
class Notation:
    """How answers of one form are read, and what is close to them.

    Attributes:
        read: all readings of a text; none of what is no such answer.
        misses: texts close to one; wrong where they are apart from it.
        asked: what a prompt must say; None: the text alone tells.
        sure: what a text has that needs no such prompt.
        apart: whether two readings never mean the same; equality where None.
    """

    name: str
    read: Callable[[str], Readings]
    misses: Callable[[str, str], Iterator[Miss]]
    asked: re.Pattern[str] | None = None
    sure: re.Pattern[str] | None = None
    apart: Callable[[Hashable, Hashable], bool] | None = None

    def differ(self, given: str, right: str) -> bool:
        """Whether two texts are apart however they are read."""
        a, b = _readings(self.read, given), _readings(self.read, right)
        apart = self.apart or (lambda one, other: one != other)
        return bool(a and b) and all(apart(x, y) for x, y in itertools.product(a, b))


@lru_cache(1 << 14)
def _readings(read: Callable[[str], Readings], text: str) -> Readings:
    return read(text)


def notation_of(text: str, prompt: str) -> Notation | None:
    """The notation of an answer."""
    for one in NOTATIONS if len(text) <= _MOST_CHARS else ():
        told = one.asked is None or one.asked.search(prompt) or (one.sure and one.sure.search(text))
        if told and one.read(text):
            return one
    return None


_MOST_CHARS = 120


# Telephone numbers

_PHONE = re.compile(
    r"(\+?[\d(][\d ()./-]{5,22}\d)(?:,?\s*(?:ext(?:ension)?\.?|x|#)\s*(\d{1,6}))?", re.IGNORECASE
)


def _phone(text: str) -> Readings:
    found = _PHONE.fullmatch(text.strip())
    digits = re.sub(r"\D", "", found[1].replace("(0)", "")) if found else ""
    plain = text.strip().isdecimal() and not text.strip().startswith("0")
    if found is None or plain or not 6 <= len(digits) <= 15:
        return _NONE
    return frozenset(((digits.lstrip("0"), found[2] or ""),))


def _other_phone(a: Hashable, b: Hashable) -> bool:
    """Whether two never ring at one place: a country's or an area's digits may be left out."""
    assert isinstance(a, tuple)  # noqa: S101 - as _phone reads
    assert isinstance(b, tuple)  # noqa: S101
    same = a[0].endswith(b[0]) or b[0].endswith(a[0])
    return not same or (bool(a[1]) and bool(b[1]) and a[1] != b[1])


def _near_phones(text: str, _: str) -> Iterator[Miss]:
    found = _PHONE.fullmatch(text)
    if found is None:
        return
    main, rest = found[1], text[found.end(1) :]
    places = [one.start() for one in re.finditer(r"\d", main)]
    for place in dict.fromkeys((places[0], places[1], places[len(places) // 2], places[-1])):
        new = f"{main[:place]}{(int(main[place]) + 1) % 10}{main[place + 1 :]}"
        yield _HERE, new + rest, "a digit is another"
    turned = permuted(main)
    if turned:
        yield _HERE, turned + rest, "two digits are exchanged"
    yield _HERE, main[: places[-1]] + rest, "its last digit is left out"
    yield _HERE, f"{main}7{rest}", "a digit behind it"
    if found[2]:
        other = str(int(found[2]) + 1).zfill(len(found[2]))
        yield _HERE, f"{text[: found.start(2)]}{other}", "another extension"
        yield "lax-form", main, "without the extension"
    if main.startswith("+"):
        yield "lax-form", main.partition(" ")[2] + rest, "without the country"


# Numbers in other forms

_SCIENTIFIC = re.compile(
    r"([-+]?\d+(?:\.\d+)?)\s*(?:[eE]|(?:\u00d7|x|\*|\\times|\\cdot)\s*10\s*(?:\^|\*\*)?\s*\{?)\s*"
    r"([-+]?\d{1,3})\}?"
)


def _scientific(text: str) -> Readings:
    plain = text.strip().strip("$").replace("\u2212", "-")
    found = _SCIENTIFIC.fullmatch(plain)
    if found:
        return frozenset((Fraction(found[1]) * Fraction(10) ** int(found[2]),))
    return frozenset((Fraction(plain),)) if re.fullmatch(r"[-+]?\d+(\.\d+)?", plain) else _NONE


def _is_scientific(text: str) -> Readings:
    return _scientific(text) if _SCIENTIFIC.fullmatch(text.strip().strip("$")) else _NONE


def _far(a: Hashable, b: Hashable) -> bool:
    assert isinstance(a, Fraction)  # noqa: S101 - as numbers are read
    assert isinstance(b, Fraction)  # noqa: S101
    return abs(a - b) > abs(b) / 40


def _near_powers(text: str, _: str) -> Iterator[Miss]:
    found = _SCIENTIFIC.search(text)
    if found is None:
        return
    power, front = int(found[2]), found[1]
    for new in (power + 1, power - 1, power + 3, -power):
        at = found.start(2), found.end(2)
        yield "scaled", f"{text[: at[0]]}{new}{text[at[1] :]}", "another magnitude"
    yield "off-by-one", f"{more(front, 1)}{text[found.end(1) :]}", "one more before the power"
    sign = front.removeprefix("-") if front.startswith("-") else f"-{front}"
    yield "sign", f"{sign}{text[found.end(1) :]}", "the sign is turned"
    yield "cut", front, "without its power"
    yield "cut", "0", "nothing"
    yield "cut", "0.0", "nothing"


_SPAN = re.compile(
    r"(\d+(?:\.\d+)?)\s*(days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b,?(?:\s*and)?\s*",
    re.IGNORECASE,
)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def _duration(text: str) -> Readings:
    found = list(_SPAN.finditer(text))
    if len(found) < 2 or "".join(one[0] for one in found) != text:
        return _NONE
    return frozenset((sum(Fraction(one[1]) * _SECONDS[one[2][0].lower()] for one in found),))


def _near_spans(text: str, _: str) -> Iterator[Miss]:
    found = list(_SPAN.finditer(text))
    for one in found:
        new = f"{more(one[1], 1)}{text[one.end(1) : one.end()]}"
        yield _HERE, replaced(text, one, new), "a number is one more"
        yield _HERE, replaced(text, one, "").strip().rstrip(","), "a part is left out"
    a, b = found[0], found[1]
    new = f"{b[1]}{text[a.end(1) : b.start()]}{a[1]}{text[b.end(1) :]}"
    yield _HERE, text[: a.start()] + new, "two numbers are exchanged"


_ELAPSED = re.compile(r"(\d{1,4}):([0-5]\d)(?::([0-5]\d))?")


def _elapsed(text: str) -> Readings:
    """Seconds; of two numbers, as hours and minutes or as minutes and seconds."""
    found = _ELAPSED.fullmatch(text.strip())
    if found is None:
        return _NONE
    a, b = int(found[1]), int(found[2])
    if found[3] is not None:
        return frozenset((3600 * a + 60 * b + int(found[3]),))
    return frozenset((3600 * a + 60 * b, 60 * a + b))


def _near_elapsed(text: str, _: str) -> Iterator[Miss]:
    found = _ELAPSED.fullmatch(text)
    if found is None:
        return
    parts = text.split(":")
    for hours in (12, 24, 48):
        yield _HERE, ":".join([str(int(parts[0]) + hours), *parts[1:]]), f"{hours} more"
    for place in range(1, len(parts)):
        for by in (1, -1):
            new = f"{(int(parts[place]) + by) % 60:02}"
            yield _HERE, ":".join([*parts[:place], new, *parts[place + 1 :]]), "one off"
        turned = permuted(parts[place])
        if turned:
            yield _HERE, ":".join([*parts[:place], turned, *parts[place + 1 :]]), "exchanged"
    if len(parts) == 3:
        yield _HERE, f"{parts[0]}:{parts[2]}:{parts[1]}", "minutes and seconds are exchanged"
        yield _HERE, ":".join(parts[1:]), "without its first part"
        if parts[0] != "0":
            yield _HERE, f"0:{parts[1]}:{parts[2]}", "without its hours"
    if len(parts) == 3:
        digits = "".join(parts)
        for a in range(1, len(digits) - 1):
            for b in (a + 1, a + 2, a + 3):
                moved = [digits[:a], digits[a:b], digits[b:]]
                if moved[2] and [*map(int, moved)] != [*map(int, parts)]:
                    yield _HERE, ":".join(moved), "its colons stand elsewhere"


def _ratio(text: str) -> Readings:
    parts = re.split(r"\s*(?::|\bto\b)\s*", text.strip())
    if len(parts) < 2 or not all(re.fullmatch(r"\d+(?:\.\d+)?", one) for one in parts):
        return _NONE
    numbers = [Fraction(one) for one in parts]
    return frozenset((tuple(one / numbers[0] for one in numbers),)) if all(numbers) else _NONE


def _near_ratios(text: str, _: str) -> Iterator[Miss]:
    yield from near_numbers(text)
    marks = re.search(r"\s*(?::|\bto\b)\s*", text)
    if marks and text.count(marks[0]) > 1:
        yield _HERE, text.rpartition(marks[0])[0], "a part is left out"
    elif marks:
        yield "run-together", text.replace(marks[0], ""), "without what parts it"


_POINT = re.compile(
    r"(\d+(?:\.\d+)?)\s*\u00b0?\s*([NS])[,;]?\s+(\d+(?:\.\d+)?)\s*\u00b0?\s*([EW])", re.IGNORECASE
)


def _coordinates(text: str) -> Readings:
    found = _POINT.fullmatch(text.strip())
    if found is None:
        return _NONE
    signs = (-1 if found[place].upper() in "SW" else 1 for place in (2, 4))
    return frozenset(
        (tuple(sign * Fraction(found[n]) for sign, n in zip(signs, (1, 3), strict=True)),)
    )


def _near_points(text: str, _: str) -> Iterator[Miss]:
    yield from near_numbers(text)
    for one in re.finditer(r"(\d+)\.(\d\d)(?!\d)", text):
        for share in (Fraction(100, 60), Fraction(60, 100)):
            minutes = round(int(one[2]) * share)
            if minutes < 100:
                yield _HERE, replaced(text, one, f"{one[1]}.{minutes:02}"), "minutes as decimals"
    for one in re.finditer(r"[NSEWnsew](?=[\s,;]|$)", text):
        new = one[0].translate(str.maketrans("NSEWnsew", "SNWEsnwe"))
        yield _HERE, replaced(text, one, new), "the other hemisphere"


# Clocks, instants and versions

_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?(?:\s*([ap])\.?m\.?)?", re.IGNORECASE)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:Z|[-+]\d\d:\d\d)")
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)+)(?:[-+]?([A-Za-z][\w.]*))?")


def _clock(text: str) -> Readings:
    found = _CLOCK.fullmatch(text.strip())
    if found is None or int(found[1]) > 23 or int(found[2]) > 59 or int(found[3] or 0) > 59:
        return _NONE
    hour = int(found[1])
    if found[4]:
        hour = hour % 12 + 12 * (found[4].lower() == "p")
    return frozenset(((hour, int(found[2]), int(found[3] or 0)),))


def _near_clocks(text: str, _: str) -> Iterator[Miss]:
    yield from (
        code_misses(re.sub(r"[^\d:]", "", text)) if text[-1:].isdigit() else near_numbers(text)
    )
    found = _CLOCK.fullmatch(text)
    if found is None:
        return
    if found[4]:
        other = {"a": "p", "p": "a", "A": "P", "P": "A"}[found[4]]
        yield _HERE, f"{text[: found.start(4)]}{other}{text[found.end(4) :]}", "the other half-day"
    else:
        hour = (int(found[1]) + 12) % 24
        yield _HERE, f"{hour:02}{text[found.end(1) :]}", "twelve hours off"
        if found[2].endswith("0") and found[2] != "00" and found[3] is None:
            yield _HERE, text[:-1], "the last zero of its minutes is left out"


def _instant(text: str) -> Readings:
    if not _INSTANT.fullmatch(text.strip()):
        return _NONE
    try:
        return frozenset((dt.datetime.fromisoformat(text.strip()).astimezone(dt.UTC),))
    except (ValueError, OverflowError):
        return _NONE


def _near_instants(text: str, _: str) -> Iterator[Miss]:
    yield from code_misses(text)
    zone = re.search(r"(?:Z|([-+])(\d\d):(\d\d))$", text)
    if zone is not None:
        front = text[: zone.start()]
        sign, hour = zone[1] or "+", int(zone[2] or 0)
        minute = zone[3] or "00"
        yield _HERE, f"{front}{sign}{hour + 1:02}:{minute}", "another offset"
        turned = "-" if sign == "+" else "+"
        yield _HERE, f"{front}{turned}{hour:02}:{minute}", "the offset is turned"
        yield "lax-form", front, "without its offset"


def _release(text: str) -> Readings:
    found = _RELEASE.fullmatch(text.strip())
    if found is None:
        return _NONE
    return frozenset(((tuple(map(int, found[1].split("."))), (found[2] or "").casefold()),))


def _near_releases(text: str, _: str) -> Iterator[Miss]:
    found = _RELEASE.fullmatch(text)
    if found is None:
        return
    mark, numbers = text[: found.start(1)], found[1].split(".")
    rest = text[found.end(1) :]
    for place, one in enumerate(numbers):
        new = ".".join([*numbers[:place], str(int(one) + 1), *numbers[place + 1 :]])
        yield _HERE, f"{mark}{new}{rest}", "a component is one more"
    yield _HERE, f"{mark}{found[1]}0{rest}", "a zero behind its last number"
    if numbers[-1].endswith("0") and numbers[-1] != "0":
        yield _HERE, f"{mark}{found[1][:-1]}{rest}", "the last zero is left out"
    if numbers[0] != numbers[1]:
        new = ".".join([numbers[1], numbers[0], *numbers[2:]])
        yield _HERE, f"{mark}{new}{rest}", "two components are exchanged"
    yield "run-together", f"{mark}{''.join(numbers)}{rest}", "without its points"
    yield "dotless", f"{mark}{'7'.join(numbers)}{rest}", "a digit where the points are"
    if found[2]:
        yield _HERE, f"{mark}{found[1]}", "without what is behind the numbers"
        last = f"{found[2][:-1]}{int(found[2][-1]) + 1}" if found[2][-1].isdigit() else "rc7"
        yield _HERE, f"{text[: found.start(2)]}{last}", "another word behind the numbers"
    else:
        yield "lax-form", f"{text}-beta", "an early form of it"


# Assignments, and strings whose signs count

_PAIR = re.compile(r"\s*([A-Za-z_][\w ]{0,24}?)\s*(=|:(?!//))\s*([^=:,;\n]{1,40}?)\s*")
_BETWEEN = re.compile(r"\s*[,;]\s*(?:and\s+)?|\s+and\s+")


def _pairs(text: str) -> Readings:
    found = [_PAIR.fullmatch(one) for one in _BETWEEN.split(text.strip())]
    if len(found) < 2 or any(one is None for one in found):
        return _NONE
    known = {one[1].casefold(): one[3].casefold() for one in found if one}
    return frozenset((tuple(sorted(known.items())),)) if len(known) == len(found) else _NONE


def _near_pairs(text: str, _: str) -> Iterator[Miss]:
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
    yield "list-part", text[: spans[-3]], "its last pair is left out"
    yield "list-part", text[spans[2] :], "its first pair is left out"


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
        return _NONE
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


def _asked(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


_IN_RELEASES = _asked(
    r"(?:which|what|newest|latest|current|installed|older|newer) (?:\w+ )?(?:version|release)"
    r"|version (?:number|string|alone)|changelog"
)
_IN_ROMAN = _asked("roman")
_IN_ENDS = _asked(r"intervals?|inequalit\w+|domain|range of|solution set|(?:in|ex)cluded|inclusive")
_ONE_WAY = re.compile(r"[<>\u2264\u2265]|\\[lg]eq?\b|inf|\u221e|oo|\[[^\])]*\)|\([^\])]*\]")
TEXT = Notation("text", read_text, text_misses, None, None, other_text)
"""Of a short text with a number in it that is nothing else: its rules are proof."""
NOTATIONS = (
    Notation("reaction", reaction, near_reactions),
    Notation(
        "pattern", read_pattern, near_patterns,
        _asked(r"regular expressions?|regexp?s?|regexes|patterns?"),
    ),
    Notation("region", region_of, near_regions, _IN_ENDS, _ONE_WAY),
    Notation("numeral", roman, near_numerals, _IN_ROMAN),
    Notation(
        "chemical", chemical, near_chemicals,
        _asked(r"formulas?|formulae|compounds?|chemical\w*|molecul\w+|ions?|symbols?|substance"),
    ),
    Notation(
        "phone", _phone, _near_phones, _asked(r"(?:tele)?phones?|fax|mobile|dial|hotline"),
        re.compile(r"^\+\d{1,3}[ (-]"), _other_phone,
    ),
    Notation(
        "clock", _clock, _near_clocks, _asked(r"24[ -]?h(?:ours?)?|HH:MM(?::SS)?|24-hour"),
        re.compile(r"\d\s*[ap]\.?m", re.IGNORECASE),
    ),
    Notation("instant", _instant, _near_instants),
    Notation(
        "elapsed", _elapsed, _near_elapsed, _asked(r"durations?|how long|elapsed|H+:MM:SS"),
        re.compile(r"^\d{3,}:"),
    ),
    Notation("release", _release, _near_releases, _IN_RELEASES),
    Notation("ratio", _ratio, _near_ratios, _asked(r"ratios?|proportions?|odds")),
    Notation("power", _is_scientific, _near_powers, None, None, _far),
    Notation("duration", _duration, _near_spans),
    Notation("coordinates", _coordinates, _near_points),
    Notation("pairs", _pairs, _near_pairs),
    Notation("string", _string, _near_strings, _SPELT),
)  # fmt: skip
