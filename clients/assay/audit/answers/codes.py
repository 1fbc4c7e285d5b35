r"""Near misses of codes: dates, times, versions, addresses, names of digits and letters. Pure.

A component is changed by one, exchanged, left out or added. What a lenient reader of such codes may
take has the class `lax-form`: of 3/4/2024 nobody knows which number is the month.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from assay.audit.answers import shapes
from assay.audit.answers.shapes import Code, Miss, permuted

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)")
_NTH = ("first", "second", "third")


def code_misses(text: str) -> Iterator[Miss]:
    """The near misses of a code; none of another text."""
    code = shapes.read_code(text)
    if code is not None:
        yield from _WAYS.get(code.kind, _other_codes)(code)


def replaced(text: str, found: re.Match[str], new: str) -> str:
    """A text with another one in place of what was found in it."""
    return f"{text[: found.start()]}{new}{text[found.end() :]}"


def more(digits: str, by: int) -> str:
    """A number as it is written, some more in its whole part."""
    whole, point, rest = digits.partition(".")
    return f"{abs(int(whole) + by)}{point}{rest}"


def near_numbers(text: str) -> Iterator[Miss]:
    """One number is one more or less, or the first two are exchanged."""
    found = list(_NUMBER.finditer(text))
    for one in (*found[:3], *found[3:][-1:]):
        yield "component", replaced(text, one, more(one[0], 1)), "a number is one more"
        if int(one[0].partition(".")[0]):
            yield "component", replaced(text, one, more(one[0], -1)), "a number is one less"
    for a, b in itertools.pairwise(found[:3]):
        turned = f"{text[: a.start()]}{b[0]}{text[a.end() : b.start()]}{a[0]}{text[b.end() :]}"
        yield "component", turned, "two numbers are exchanged"


def days_around(text: str) -> list[str]:
    """All days of a date's month with the date between them; empty for no date, or one at an end.

    Only of dates that begin with the year.
    """
    code = shapes.read_code(text)
    if code is None or code.kind != "date":
        return []
    ((y, m, d),) = shapes.days_of(text)
    last = shapes.days_in(y, m)
    start = "".join(code.groups[:4])
    width = len(code.groups[4])
    return [f"{start}{one:0{width}}" for one in range(1, last + 1)] if 1 < d < last else []


def _shifted(day: shapes.Day) -> Iterator[tuple[shapes.Day, str]]:
    """Other days, close to one."""
    y, m, d = day
    last = shapes.days_in(y, m)
    yield (y, m, d + 1 if d < last else d - 1), "a day off"
    yield (y, m, d - 1 if d > 1 else d + 2), "a day off"
    month = m + 1 if m < 12 else m - 1
    if d <= shapes.days_in(y, month):
        yield (y, month, d), "a month off"
    if d <= shapes.days_in(y + 1, m):
        yield (y + 1, m, d), "a year off"
    if d <= shapes.days_in(y - 100, m) and y > 1100:
        yield (y - 100, m, d), "another century"
    if m != d and d <= 12 and m <= shapes.days_in(y, d):
        yield (y, d, m), "day and month are exchanged"


def _dates(code: Code) -> Iterator[Miss]:
    day = next(iter(shapes.days_of(code.text)))
    groups = code.groups
    for (y, m, d), note in _shifted(day):
        new = [str(one).zfill(len(old)) for one, old in zip((y, m, d), groups[::2], strict=True)]
        yield "component", f"{new[0]}{groups[1]}{new[1]}{groups[3]}{new[2]}", note
    yield "component", "".join(groups[:3]), "year and month alone"
    yield "component", groups[0], "the year alone"
    yield "component", "".join(groups[2:]), "without the year"
    yield "lax-form", code.text[2:], "the century is left out"
    yield "lax-form", f"{code.text}7", "a digit behind it"
    yield "lax-form", f"{code.text}/{_moved(code.text, 4)}", "the beginning of a span"


def _moved(text: str, years: int) -> str:
    """The same day of a later year."""
    return f"{int(text[:4]) + years}{text[4:]}"


def _stamps(code: Code) -> Iterator[Miss]:
    day, rest = code.text[:10], code.text[10:]
    known = next(iter(shapes.days_of(day)))
    for (y, m, d), note in _shifted(known):
        yield "component", f"{y:04}-{m:02}-{d:02}{rest}", note
    hour, minute = int(rest[1:3]), int(rest[4:6])
    yield "component", f"{day}{rest[0]}{(hour + 1) % 24:02}{rest[3:]}", "an hour off"
    other = minute + 1 if minute < 59 else minute - 1
    yield "component", f"{day}{rest[:4]}{other:02}{rest[6:]}", "a minute off"
    yield "lax-form", day, "the date alone"


def _days(code: Code) -> Iterator[Miss]:
    """Of 3/4/2024: what is another day whichever of the two is the month."""
    groups = code.groups
    for place in (0, 2, 4):
        for step in (1, -1):
            new = list(groups)
            new[place] = str(int(groups[place]) + step).zfill(len(groups[place]))
            if shapes.days_of("".join(new)):
                yield "component", "".join(new), f"its {_NTH[place // 2]} number is another"
    if len(groups[4]) == 4:
        new = [*groups[:4], str(int(groups[4]) - 100)]
        yield "component", "".join(new), "another century"
        yield "lax-form", "".join([*groups[:4], groups[4][2:]]), "the century is left out"
    if groups[0] != groups[2] and max(int(groups[0]), int(groups[2])) <= 12:
        turned = [groups[2], groups[1], groups[0], *groups[3:]]
        yield "lax-form", "".join(turned), "day and month are exchanged"
    yield "component", "".join(groups[2:]), "a number is left out"


def _worded_days(code: Code) -> Iterator[Miss]:
    names = re.compile("|".join(shapes.MONTHS), re.IGNORECASE)
    found = names.search(code.text)
    (known,) = shapes.days_of(code.text)
    for (y, m, d), note in _shifted(known):
        text = re.sub(r"\d{4}", f"{y:04}", code.text)
        text = re.sub(r"\b\d{1,2}(?:st|nd|rd|th)?\b", str(d), text)
        if found is not None:
            yield "component", names.sub(shapes.MONTHS[m - 1].capitalize(), text), note
        elif m == known[1]:
            yield "component", text, note
    yield "component", re.sub(r"\b\d{1,2}(?:st|nd|rd|th)?\b,? ?", "", code.text, count=1), "no day"
    yield "component", re.sub(r",? \d{4}", "", code.text), "no year"


def _times(code: Code) -> Iterator[Miss]:
    parts = code.text.split(":")
    for place, top in enumerate((24, 60, 60)[: len(parts)]):
        for step in (1, -1):
            value = (int(parts[place]) + step) % top
            new = [*parts[:place], str(value).zfill(len(parts[place])), *parts[place + 1 :]]
            yield "component", ":".join(new), f"one {('hour', 'minute', 'second')[place]} off"
    if int(parts[0]) < 24 and int(parts[1]) < 24 and parts[0] != parts[1]:
        yield "component", ":".join([parts[1], parts[0], *parts[2:]]), "exchanged"
    if len(parts) == 2 and int(parts[1]):
        yield "component", parts[0], "without its minutes"
        yield "lax-form", f"{code.text}:25", "with seconds"
    yield "lax-form", f"1{code.text}", "a digit before it"


def _dotted(code: Code) -> Iterator[Miss]:
    """Versions and addresses: whole numbers between points, of which zeros at the end are none."""
    known = shapes.trimmed(code.numbers)
    for kind, answer, note in _redotted(code):
        if shapes.trimmed(Code(code.kind, answer).numbers) != known:
            yield kind, answer, note


def _redotted(code: Code) -> Iterator[Miss]:
    mark = "v" if code.text.startswith("v") else ""
    parts = code.text.removeprefix("v").split(".")
    for place, part in enumerate(parts):
        more = int(part) + 1 if int(part) != 255 else 254
        new = [*parts[:place], str(more), *parts[place + 1 :]]
        yield "component", mark + ".".join(new), "a component is one more"
    for place in range(len(parts) - 1):
        if parts[place] != parts[place + 1]:
            new = [*parts[:place], parts[place + 1], parts[place], *parts[place + 2 :]]
            yield "component", mark + ".".join(new), "neighbours are exchanged"
    if int(parts[-1]):
        yield "component", mark + ".".join(parts[:-1]), "its last component is left out"
    yield "component", mark + ".".join(parts[1:]), "its first component is left out"
    joined = [*parts[:-2], parts[-2] + parts[-1]]
    yield "run-together", mark + ".".join(joined), "a point is left out"
    yield "run-together", mark + "".join(parts), "without its points"
    yield "dotless", mark + "7".join(parts), "a digit where the points are"
    kind = "lax-form" if code.kind == "address" else "component"
    yield kind, f"{code.text}.1", "a component more"
    if code.kind == "version":
        yield "component", f"{code.text}1", "a digit behind it"
        yield "component", f"{mark}1{'.'.join(parts)}", "a digit before it"
        yield "lax-form", f"{code.text}-beta", "an early form of it"
    else:
        yield "lax-form", f"{code.text}7", "a digit behind it"


def _mails(code: Code) -> Iterator[Miss]:
    at = code.text.rindex(".")
    yield "dotless", f"{code.text[:at]}x{code.text[at + 1 :]}", "a letter where the point is"
    yield "component", f"x{code.text}", "a letter before it"
    yield "component", f"{code.text}x", "a letter behind it"
    name, _, host = code.text.rpartition("@")
    if name:
        yield "component", f"{name}2@{host}", "another name"
        yield "component", f"{name}@other.{host}", "another host"


def _other_codes(code: Code) -> Iterator[Miss]:
    groups = code.groups
    for place, group in enumerate(groups):
        if group.isdecimal():
            more = str(int(group) + 1).zfill(len(group))
            yield "component", "".join([*groups[:place], more, *groups[place + 1 :]]), "one more"
            turned = permuted(group)
            new = "".join([*groups[:place], turned, *groups[place + 1 :]]) if turned else ""
            if new:
                yield "component", new, "two digits are exchanged"
    yield "component", f"{code.text}7", "a digit behind it"
    yield "component", f"7{code.text}", "a digit before it"
    yield "component", f"X{code.text}", "a letter before it"
    if len(groups) > 2:
        yield "component", "".join(groups[:-1]).rstrip("-/:._#"), "its last part is left out"
        yield "lax-form", "".join(groups[1:]).lstrip("-/:._#"), "its first part is left out"
    if "." in code.text:
        yield "dotless", code.text.replace(".", "7"), "a digit where the points are"
    bare = re.sub(r"[-/:._#]", "", code.text)
    yield "lax-form", bare, "without what parts it"
    yield "lax-form", code.text.swapcase(), "capitals and small letters are exchanged"
    alike = code.text.translate(str.maketrans("0O1l", "O0l1"))
    yield "lax-form", alike, "signs of equal look"


_WAYS: dict[str, Callable[[Code], Iterator[Miss]]] = {
    "date": _dates, "stamp": _stamps, "day": _days, "worded": _worded_days, "time": _times,
    "address": _dotted, "version": _dotted, "mail": _mails,
}  # fmt: skip
