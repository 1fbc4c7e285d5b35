"""Dates and times of day, as they are written: `May 5, 2024`, `2024-05-05`, `3:30 pm`, `noon`.

A date is a `Symbol` whose name holds it, so that two ways to write it are one answer and nothing
else is. A date of which day and month could be exchanged, such as 5/6/2024, is none here; nor is
one that the calendar does not have, or with the wrong day of the week.
"""

from __future__ import annotations

import datetime as dt
import re

from assay.math.building import literal
from assay.math.nodes import Call, Node, Symbol, Text
from assay.math.text import spoken

MAX_CHARS = 60
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun",
            "july jul", "august aug", "september sep sept", "october oct", "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_WEEKDAYS = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"
)  # fmt: skip
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_WEEKDAY = rf"(?:(?:on )?(?P<weekday>{'|'.join(_WEEKDAYS)}),? )?"
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_WEEKDAY}{_MONTH} {_DAY}(?:,? {_YEAR})?",
        rf"{_WEEKDAY}{_DAY} (?:of )?{_MONTH}(?:,? {_YEAR})?",
        rf"{_MONTH},? {_YEAR}",
        r"(?P<year>\d{4})-(?P<number>\d{2})-(?P<day>\d{2})",
        r"(?P<year>\d{4})/(?P<number>\d{2})/(?P<day>\d{2})",
        r"(?:(?P<year>\d{4}) ?年)? ?(?P<number>\d{1,2}) ?月 ?(?P<day>\d{1,2}) ?[日号]",
        r"(?P<first>\d{1,2})[/.](?P<second>\d{1,2})[/.](?P<year>\d{4})",
    )
)
_HALF = r"(?P<half>[ap]\.? ?m\.?|in the (?:morning|afternoon|evening))"
_CLOCK = re.compile(
    rf"(?P<hour>\d{{1,2}})(?:(?P<colon> ?: ?)(?P<minute>\d\d)(?: ?: ?(?P<second>\d\d))?)?"
    rf"(?:(?P<oclock> o'?clock)?(?: ?{_HALF})?)"
)
_FRENCH = re.compile(r"(\d{1,2})h(\d\d)")
_NUMERIC = re.compile(r"\d{1,4}(?:\s?[:/.h年月-]\s?\d|\s?(?:\\text|[A-Za-z]{2}|[apAP]\.|o'))")
_UPRIGHT = ("\\text", "\\mathrm", "(")
_NAMED = {"noon": 12, "12 noon": 12, "midday": 12, "midnight": 0, "12 midnight": 0}


def moment(form: str) -> Node | None:
    """The date or the time of day that a whole answer is; None when it is neither."""
    if len(form) > MAX_CHARS or not _could_be(form):
        return None
    said = spoken(form)
    if not said or not said[0].isalnum():
        return None
    return date(said) or _time(said)


def _could_be(form: str) -> bool:
    """Whether the form could begin with a date or a time; quick."""
    if form[0].isdigit():
        return _NUMERIC.match(form) is not None
    return form[:2].isalpha() or form.startswith(_UPRIGHT)


def date(said: str) -> Node | None:
    """The date that words in lower case say, as a `Symbol`."""
    for pattern in _DATES:
        match = pattern.fullmatch(said)
        if match is not None:
            return _dated(match.groupdict())
    return None


def _dated(parts: dict[str, str | None]) -> Node | None:
    year, month, day = parts.get("year"), parts.get("number"), parts.get("day")
    named = parts.get("month")
    if named:
        month = str(_MONTHS[named])
    if parts.get("first"):
        month, day = _in_order(int(parts["first"] or 0), int(parts["second"] or 0))
    try:  # 2024 has a 29th of February
        known = dt.date(int(year or 2024), int(month or 0), int(day or 1))
    except ValueError:
        return None
    weekday = parts.get("weekday")
    if weekday and (not year or _WEEKDAYS[known.weekday()] != weekday):
        return None
    shown = [f"{known.year:04}"] if year else []
    shown += [f"{known.month:02}", f"{known.day:02}"] if day else [f"{known.month:02}"]
    return Symbol(f"date {'-'.join(shown)}")


def _in_order(first: int, second: int) -> tuple[str, str]:
    """The month and the day of two numbers; no date where either could be the month."""
    if first > 12 >= second or first == second:
        return str(second), str(first)
    return (str(first), str(second)) if second > 12 else ("0", "0")


def _time(said: str) -> Node | None:
    """A time of day; the hour 12 am is 0, and half past three without a half is as written."""
    if said in _NAMED:
        return Call("time", (literal(str(_NAMED[said])), literal("0"), _half(_NAMED[said])))
    french = _FRENCH.fullmatch(said)
    if french is not None:
        return _of_day(int(french[1]), [int(french[2])], "")
    match = _CLOCK.fullmatch(said)
    if match is None or not (match["colon"] or match["oclock"] or match["half"]):
        return None
    half = _half_of_day(match["half"] or "")
    if match["colon"] and match["colon"] != ":" and not half:
        return None
    rest = [int(part) for part in (match["minute"], match["second"]) if part]
    return _of_day(int(match["hour"]), rest, half)


def _half_of_day(said: str) -> str:
    if not said:
        return ""
    return "am" if said.startswith("a") or "morning" in said else "pm"


def _half(hour: int) -> Text:
    return Text("pm" if hour else "am")


def _of_day(hour: int, rest: list[int], half: str) -> Node | None:
    if half and not 1 <= hour <= 12:
        half = ""  # 15:30 pm says the same twice
    if half == "am" and hour == 12:
        hour = 0
    parts = [literal(str(part)) for part in (hour, *(rest or [0]))]
    return Call("time", (*parts, Text(half)))
