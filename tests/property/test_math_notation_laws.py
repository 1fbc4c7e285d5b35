"""Laws of notations: a value written in any of its ways is one answer, and another value is not."""

from __future__ import annotations

import datetime as dt

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.math import compare, read

SETTINGS = settings(deadline=None)
JOINTS = [
    "{,}", r"\,", r"\ ", r"\;", r"\:", r"\!", "~", r",\!", r",\! ", r"\!,\!", r"\text{,}",
    r"\mathord{,}", ",", " ", "\u2009", "\u202f", "\u00a0", "\u066c", r"\thinspace ",
]  # fmt: skip
ZEROS = "\u0660\u06f0\u0966\u09e6\u0e50\uff10"
LETTERS = st.sampled_from("abcmnpqrstvwxy")
MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
]  # fmt: skip
DATES = st.dates(dt.date(1000, 1, 1), dt.date(2999, 12, 31))
TIMES = st.tuples(st.integers(0, 23), st.integers(0, 59))


def equal(reference: str, answer: str) -> bool:
    return compare(read(reference), read(answer)).equal is True


def grouped(number: int, joint: str) -> str:
    return f"{number:,}".replace(",", joint)


@SETTINGS
@given(st.integers(1_000, 10**15), st.sampled_from(JOINTS))
def test_a_number_is_the_same_with_any_mark_between_its_thousands(number: int, joint: str) -> None:
    assert equal(str(number), grouped(number, joint))
    assert not equal(str(number + 1), grouped(number, joint))


@SETTINGS
@given(st.integers(0, 10**12), st.sampled_from(ZEROS))
def test_digits_of_every_script_are_digits(number: int, zero: str) -> None:
    written = "".join(chr(ord(zero) + int(digit)) for digit in str(number))
    assert equal(str(number), written)
    assert not equal(str(number + 1), written)


@SETTINGS
@given(st.integers(0, 10**9), st.sampled_from([("b", 2), ("o", 8), ("x", 16)]))
def test_a_literal_is_the_number_in_its_base(number: int, mark: tuple[str, int]) -> None:
    letter, base = mark
    digits = format(number, letter)
    assert equal(f"0{letter}{digits}", f"{digits.upper()}_{{{base}}}")
    assert not equal(f"0{letter}{digits}", f"0{letter}{number + 1:{letter}}")


def written(date: dt.date) -> list[str]:
    month = MONTHS[date.month - 1]
    forms = [
        f"{month} {date.day}, {date.year}", f"{date.day} {month} {date.year}",
        f"{month[:3]} {date.day} {date.year}", date.isoformat(), f"{date:%Y/%m/%d}",
        f"{date.year}\u5e74{date.month}\u6708{date.day}\u65e5",
        rf"\text{{{month} {date.day}, {date.year}}}",
    ]  # fmt: skip
    if date.day > 12:
        forms += [f"{date.day}/{date.month}/{date.year}", f"{date.month}/{date.day}/{date.year}"]
    return forms


@SETTINGS
@given(DATES, DATES)
def test_a_date_is_the_same_however_it_is_written(one: dt.date, other: dt.date) -> None:
    forms = written(one)
    assert all(equal(forms[0], form) and equal(form, forms[0]) for form in forms[1:])
    assert one == other or not any(equal(forms[0], form) for form in written(other))


@SETTINGS
@given(TIMES, TIMES)
def test_a_time_of_day_is_the_same_in_both_clocks(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    def clocks(time: tuple[int, int]) -> tuple[str, str]:
        hour, minute = time
        half = "am" if hour < 12 else "pm"
        return f"{hour:02}:{minute:02}", f"{hour % 12 or 12}:{minute:02} {half}"

    assert equal(*clocks(one))
    assert equal(*reversed(clocks(one)))
    assert one == other or not equal(clocks(one)[1], clocks(other)[1])


@SETTINGS
@given(st.integers(1, 99), st.integers(0, 59), st.integers(0, 59))
def test_a_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int) -> None:
    total = 3600 * hours + 60 * minutes + seconds
    said = f"{hours} hours, {minutes} minutes and {seconds} seconds"
    assert equal(f"{total} seconds", said)
    assert not equal(f"{total + 1} seconds", said)


@SETTINGS
@given(LETTERS, st.integers(2, 9), st.integers(2, 9))
def test_a_subscript_stands_before_or_behind_an_exponent(name: str, low: int, high: int) -> None:
    assert equal(f"{name}_{low}^{high}", f"{name}^{high}_{low}")
    assert equal(f"{name}_{low}^{{{high}}}", f"{name}^{{{high}}}_{{{low}}}")
    assert low == high or not equal(f"{name}_{low}^{high}", f"{name}^{low}_{high}")
    assert equal(f"{name}_{low}'", f"{name}'_{low}")


@SETTINGS
@given(LETTERS, LETTERS, LETTERS)
def test_letters_beside_one_another_are_a_product(one: str, other: str, third: str) -> None:
    assert equal(f"2^{{{one}{other}}}+{third}", f"{third}+2^{{{other}{one}}}")
    if len({one, other, third}) == 3:
        assert not equal(f"2^{{{one}{other}}}+1", f"2^{{{one}{third}}}+1")


@SETTINGS
@given(st.integers(2, 30), st.integers(1, 9), st.integers(2, 30), st.integers(1, 9))
def test_powers_beside_one_another_are_a_product(
    base: int, power: int, other: int, second: int
) -> None:
    value = base**power * other**second
    assert equal(f"{value}x", f"{base}^{power} {other}^{second} x")
    assert equal(f"{value}x", f"{base}^{{{power}}}{other}^{{{second}}}x")
    assert not equal(f"{value + 1}x", f"{base}^{power} {other}^{second} x")
