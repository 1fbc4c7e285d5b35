"""Laws of answers in a notation: every near miss means something else, to a reader of our own."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.audit import read_truth
from assay.audit.answers.expressions import differ
from assay.audit.answers.truth import mentions
from assay.audit.answers.wrong import near_misses, plain_wrong
from assay.audit.engines.metamorphic import CLASSES
from audit_support import accepted_classes, audited, rows

HOLES = {kind.name for kind in CLASSES if kind.severity == "hole"}
ENDS = st.tuples(st.integers(-60, 60), st.integers(1, 50)).map(lambda one: (one[0], sum(one)))
DIGITS = (
    ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"),
    ("", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"),
    ("", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM"),
    ("", "M", "MM", "MMM"),
)


def holes(reference: str, prompt: str) -> list[str]:
    found = near_misses(read_truth(reference, prompt))
    return [answer for kind, answer, _ in found if kind in HOLES]


def within(text: str, x: Fraction) -> bool:
    """Whether a number is in an interval as it is written."""
    low, high = text[1:-1].split(",")
    return (Fraction(low) <= x if text[0] == "[" else Fraction(low) < x) and (
        x <= Fraction(high) if text[-1] == "]" else x < Fraction(high)
    )


@pytest.mark.slow
@given(ENDS, st.sampled_from(["[]", "()", "[)", "(]"]))
def test_another_interval_holds_other_numbers(ends: tuple[int, int], marks: str) -> None:
    text = f"{marks[0]}{ends[0]}, {ends[1]}{marks[1]}"
    points = {Fraction(n, 2) for n in range(-500, 500)} | {
        Fraction(n * 997) for n in range(-200, 200)
    }
    found = holes(text, "Give the interval.")
    assert len(found) > 4
    for other in found:
        assert any(within(other, x) != within(text, x) for x in points), other


@pytest.mark.slow
@given(st.integers(-500, 500), st.sampled_from(["<", "<=", ">", ">="]))
def test_another_inequality_holds_for_other_numbers(bound: int, sign: str) -> None:
    text = f"x {sign} {bound}"
    compared = {
        "<": Fraction.__lt__, "<=": Fraction.__le__, ">": Fraction.__gt__, ">=": Fraction.__ge__,
        "=": Fraction.__eq__,
    }  # fmt: skip

    def holds(said: str, x: Fraction) -> bool:
        left, op, right = said.split()
        a, b = (x if one == "x" else Fraction(one) for one in (left, right))
        return compared[op](a, b)

    points = [Fraction(n, 2) for n in range(-1300, 1300)]
    for other in holes(text, "Solve for x."):
        assert any(holds(other, x) != holds(text, x) for x in points), other


@given(st.integers(1, 3999))
def test_another_numeral_is_another_number(value: int) -> None:
    def written(number: int) -> str:
        return "".join(DIGITS[n][number // 10**n % 10] for n in (3, 2, 1, 0))

    known = {written(number): number for number in range(1, 4000)}
    for other in holes(written(value), "Write it as a Roman numeral."):
        assert known.get(other) != value


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=4))
def test_another_polynomial_has_other_values(coefficients: list[int]) -> None:
    if sum(one != 0 for one in coefficients) < 2:
        return
    terms = [f"{one}*x^{power}" for power, one in reversed(list(enumerate(coefficients))) if one]
    text = " + ".join(terms).replace("+ -", "- ")

    def worth(said: str, x: int) -> int:
        return int(eval(said.replace("^", "**"), {"x": x}))

    for other in holes(text, "Multiply out."):
        assert any(worth(other, x) != worth(text, x) for x in range(-3, 12)), other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x^2 + 2x + 1", "(x+1)^2"), ("\\frac{1}{2}x", "x/2"), ("2\\sqrt{3}", "\\sqrt{12}"),
        ("y = 2x + 3", "2x - y + 3 = 0"), ("\\sin(x)", "sin x"), ("3\\cdot 4x", "12*x"),
    ],
)  # fmt: skip
def test_one_formula_in_two_forms_is_one(one: str, other: str) -> None:
    assert not differ(one, other)
    assert differ(one.replace("2", "7"), other) or "2" not in one


LIKENED = [
    ("Give the interval.", "(2, 23]", lambda text: re.sub(r"[\[\](\s)]", "", text)),
    ("Solve for x.", "x < 270", lambda text: re.sub(r"[<>=\s]", "", text)),
    ("Give the formula of the compound.", "CO", str.casefold),
    ("Give the formula of the ion.", "SO4^2-", lambda text: re.sub(r"\^.*", "", text)),
    ("Write it as a Roman numeral.", "MMCXLV", lambda text: "".join(sorted(set(text)))),
    ("What is the telephone number?", "040 222 8124 ext. 45", lambda text: text.split("ext")[0]),
    ("Which place?", "South Inletby, Morrow", lambda text: re.sub("North|South", "", text)),
    ("What is owed?", "$4450.00", lambda text: text.rstrip(".0")),
    ("In the form 9.9e-9.", "3.3e-9", lambda text: text.partition("e")[0]),
    ("As a mixed number.", "1 13/42", lambda text: text.replace(" ", "")),
    ("Multiply out.", "x^2 + 9*x + 8", lambda text: sorted(re.findall(r"[\w^*]+", text))),
    ("Which hold? In this order.", "true, false, true", lambda text: sorted(text.split(", "))),
    ("Every link.", "a->delta; b->grove", lambda text: sorted(re.findall(r"\w+", text))),
    ("In the form HH:MM of 24 hours.", "10:40", lambda text: int(text[:2]) % 12),
    ("Which version is the newest?", "3.10", float),
    ("How long?", "2 h 30 min", lambda text: text.partition("h")[0]),
    ("In which ratio?", "3:2", sorted),
    ("Where?", "51.5 N, 0.1 W", lambda text: re.sub("[NSEW]", "", text)),
    ("Solve.", "x = 3, y = 4", sorted),
    ("Which DNA sequence?", "ACGTTA", sorted),
    ("When?", "2026-03-26T19:19+08:00", lambda text: text[:16]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("prompt", "reference", "seen"), LIKENED)
def test_who_sees_less_than_all_is_found_and_who_sees_all_is_not(
    prompt: str, reference: str, seen: Callable[[str], object]
) -> None:
    def careless(response: str, right: str) -> float:
        try:
            return float(seen(response.strip()) == seen(right))
        except ValueError:
            return 0.0

    def careful(response: str, right: str) -> float:
        return float(response.strip() == right)

    some = rows([(prompt, reference)])
    assert accepted_classes(audited(careless, some))
    assert not accepted_classes(audited(careful, some))


@settings(max_examples=30)
@given(st.sampled_from(LIKENED))
def test_what_is_wrong_is_told_apart_and_the_right_is_seen(
    case: tuple[str, str, Callable[[str], object]],
) -> None:
    truth = read_truth(case[1], case[0])
    assert mentions(f"I say {case[1]}, as asked.", truth)
    assert len(plain_wrong(truth)) == 2
    assert case[1] not in plain_wrong(truth)


@pytest.mark.parametrize(
    ("text", "prompt", "sort"),
    [
        ("C", "Which compound?\nA) x\nB) y\nC) z", "choice"),
        ("NO", "Is it an ion? YES or NO", "polar"),
        ("[3, 4]", "A JSON list of all.", "json"), ("(3, 4)", "Where do they meet?", "list"),
        ("3.10", "How long is it?", "number"), ("1200000", "How many mobile phones?", "number"),
        ("10:30", "In which proportion of cases, at what time?", "notation"),
        ("Helena", "Which symbol of the city?", "words"), ("3/4", "Which path?", "number"),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_notation_is_none(text: str, prompt: str, sort: str) -> None:
    assert read_truth(text, prompt).sort == sort
