"""Numbers to dial, powers, durations, ratios, coordinates, clocks, instants, versions. Pure."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Hashable, Iterator
from fractions import Fraction

from assay.audit.answers.codes import code_misses, more, near_numbers, replaced
from assay.audit.answers.readings import NOTHING, Notation, Readings, asked
from assay.audit.answers.shapes import Miss, permuted

_HERE = "component"


# Telephone numbers

_PHONE = re.compile(
    r"(\+?[\d(][\d ()./-]{5,22}\d)(?:,?\s*(?:ext(?:ension)?\.?|x|#)\s*(\d{1,6}))?", re.IGNORECASE
)


def _phone(text: str) -> Readings:
    found = _PHONE.fullmatch(text.strip())
    digits = re.sub(r"\D", "", found[1].replace("(0)", "")) if found else ""
    plain = text.strip().isdecimal() and not text.strip().startswith("0")
    if found is None or plain or not 6 <= len(digits) <= 15:
        return NOTHING
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
    return frozenset((Fraction(plain),)) if re.fullmatch(r"[-+]?\d+(\.\d+)?", plain) else NOTHING


def _is_scientific(text: str) -> Readings:
    return _scientific(text) if _SCIENTIFIC.fullmatch(text.strip().strip("$")) else NOTHING


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
        return NOTHING
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
        return NOTHING
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
        return NOTHING
    numbers = [Fraction(one) for one in parts]
    return frozenset((tuple(one / numbers[0] for one in numbers),)) if all(numbers) else NOTHING


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
        return NOTHING
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
        return NOTHING
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
        return NOTHING
    try:
        return frozenset((dt.datetime.fromisoformat(text.strip()).astimezone(dt.UTC),))
    except (ValueError, OverflowError):
        return NOTHING


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
        return NOTHING
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


_IN_RELEASES = asked(
    r"(?:which|what|newest|latest|current|installed|older|newer) (?:\w+ )?(?:version|release)"
    r"|version (?:number|string|alone)|changelog"
)
MEASURES = (
    Notation(
        "phone", _phone, _near_phones, asked(r"(?:tele)?phones?|fax|mobile|dial|hotline"),
        re.compile(r"^\+\d{1,3}[ (-]"), _other_phone,
    ),
    Notation(
        "clock", _clock, _near_clocks, asked(r"24[ -]?h(?:ours?)?|HH:MM(?::SS)?|24-hour"),
        re.compile(r"\d\s*[ap]\.?m", re.IGNORECASE),
    ),
    Notation("instant", _instant, _near_instants),
    Notation(
        "elapsed", _elapsed, _near_elapsed, asked(r"durations?|how long|elapsed|H+:MM:SS"),
        re.compile(r"^\d{3,}:"),
    ),
    Notation("release", _release, _near_releases, _IN_RELEASES),
    Notation("ratio", _ratio, _near_ratios, asked(r"ratios?|proportions?|odds")),
    Notation("power", _is_scientific, _near_powers, None, None, _far),
    Notation("duration", _duration, _near_spans),
    Notation("coordinates", _coordinates, _near_points),
)  # fmt: skip
