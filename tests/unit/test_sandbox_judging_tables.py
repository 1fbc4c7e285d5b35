"""Comparisons of outputs and values, by example."""

from __future__ import annotations

import math

import pytest

from assay.sandbox.judging.model import Comparison, ComparisonKind
from assay.sandbox.judging.stdout import compare_output
from assay.sandbox.judging.text import brief
from assay.sandbox.judging.values import compare_values

DEFAULT = Comparison()
EXACT = Comparison(ComparisonKind.EXACT)
UNORDERED = Comparison(ComparisonKind.UNORDERED)


def within(absolute: float = 0.0, relative: float = 0.0) -> Comparison:
    return Comparison(ComparisonKind.NUMERIC, absolute, relative)


@pytest.mark.parametrize(
    ("rule", "expected", "actual", "right"),
    [
        (DEFAULT, b"1 2\n", b"1  2", True),
        (DEFAULT, b"1 2\n", b"12", False),
        (DEFAULT, b"Yes", b"YES", False),
        (DEFAULT, b"", b"\n \n", True),
        (DEFAULT, b"", b"x", False),
        (DEFAULT, b"1.0", b"1", False),
        (DEFAULT, b"1 2 3", b"1 2", False),
        (DEFAULT, b"a\x00b", b"a\x00b", True),
        (EXACT, b"1\n", b"1", False),
        (EXACT, b"\xff\x00", b"\xff\x00", True),
        (within(), b"1.0", b"1", True),
        (within(), b"1.50", b"1.5", True),
        (within(), b"0.1", b"0.10000001", False),
        (within(1e-6), b"0.1", b"0.10000001", True),
        (within(1e-6), b"100000.1", b"100000.2", False),
        (within(relative=1e-5), b"100000.1", b"100000.2", True),
        (within(0.5), b"10", b"11", False),
        (within(1), b"10", b"11", True),
        (within(1e-9), b"9007199254740993", b"9007199254740992", False),
        (within(1e-9), b"1" * 300, b"1" * 300, True),
        (within(1e-9), b"x 1.0", b"y 1.0", False),
        (within(1), b"nan", b"NaN", True),
        (within(1), b"nan", b"1", False),
        (within(1), b"1", b"nan", False),
        (within(1e300), b"inf", b"1e300", False),
        (within(1), b"inf", b"Infinity", True),
        (within(1), b"inf", b"-inf", False),
        (within(1), b"1", b"0x1", False),
        (within(1), b"10", b"1_0", False),
        (within(1), b"1", b"1e99999999", False),
        (within(math.inf), b"1", b"2", True),
        (UNORDERED, b"b\na\n", b"a\nb", True),
        (UNORDERED, b"a\na\nb", b"a\nb\nb", False),
        (UNORDERED, b"a b", b"b a", False),
        (UNORDERED, b"a  b \n\n", b"a b", True),
    ],
)
def test_outputs(rule: Comparison, expected: bytes, actual: bytes, right: bool) -> None:
    assert (compare_output(rule, expected, actual) is None) == right


@pytest.mark.parametrize(
    ("rule", "expected", "actual", "right"),
    [
        (DEFAULT, 1, 1.0, True),
        (DEFAULT, 1, True, True),
        (DEFAULT, [1, 2], (1, 2), False),
        (DEFAULT, {1, 2}, {2, 1}, True),
        (DEFAULT, {1}, frozenset({1}), True),
        (DEFAULT, "1", 1, False),
        (DEFAULT, None, False, False),
        (DEFAULT, math.nan, math.nan, True),
        (DEFAULT, [math.nan], [math.nan], True),
        (DEFAULT, math.nan, 1.0, False),
        (DEFAULT, 1.0, math.nan, False),
        (DEFAULT, {"a": [math.nan]}, {"a": [math.nan]}, True),
        (DEFAULT, 0.1 + 0.2, 0.3, False),
        (EXACT, 1, 1.0, False),
        (EXACT, 1, True, False),
        (EXACT, [1], [True], False),
        (EXACT, {1}, {1.0}, False),
        (EXACT, {1: "a"}, {True: "a"}, False),
        (EXACT, {"a": 1}, {"a": 1.0}, False),
        (EXACT, {(1, 2)}, {(1, 2.0)}, False),
        (EXACT, ((1,), {"b": {2}}), ((1,), {"b": {2}}), True),
        (EXACT, math.nan, math.nan, True),
        (within(1e-9), 0.1 + 0.2, 0.3, True),
        (within(1e-9), [0.1 + 0.2, {"a": (0.3,)}], [0.3, {"a": (0.1 + 0.2,)}], True),
        (within(1e-9), {0.1 + 0.2, "x"}, {0.3, "x"}, True),
        (within(1e-9), {0.1 + 0.2, "x"}, {0.3, "y"}, False),
        (within(1e-9), [1.0], (1.0,), False),
        (within(1e-9), 2**80, 2**80 + 1, False),
        (within(1), 2**80, 2**80 + 1, True),
        (within(1), 2**2000, 1.5, False),
        (within(1), 1, True, True),
        (within(1), 1, False, False),
        (within(1), 5, "5", False),
        (within(math.nan, 0.0), 1.0, 2.0, False),
        (within(1), math.inf, 1.0, False),
        (UNORDERED, [1, 2, 2], [2, 1, 2], True),
        (UNORDERED, [1, 2, 2], [2, 1, 1], False),
        (UNORDERED, [[1], [2]], [[2], [1]], True),
        (UNORDERED, [{"a": {1}}, [math.nan]], [[math.nan], {"a": {1}}], True),
        (UNORDERED, [1, 2], (2, 1.0), True),
        (UNORDERED, {1, 2}, [2, 1], True),
        (UNORDERED, [[1, 2]], [[2, 1]], False),
        (UNORDERED, 3, 3, True),
        (UNORDERED, 3, [3], False),
    ],
)
def test_values(rule: Comparison, expected: object, actual: object, right: bool) -> None:
    assert (compare_values(rule, expected, actual) is None) == right


def test_elements_that_collide_are_not_counted_for_ages() -> None:
    hostile = [(2**61 - 1) * i for i in range(1, 20_000)]
    assert compare_values(UNORDERED, list(range(1, 20_000)), hostile) is not None


@pytest.mark.parametrize(
    "kind", [ComparisonKind.TOKENS, ComparisonKind.CHECKER], ids=lambda kind: kind.value
)
def test_rules_that_are_not_for_values(kind: ComparisonKind) -> None:
    with pytest.raises(ValueError, match="does not compare"):
        compare_values(Comparison(kind), 1, 1)


@pytest.mark.parametrize(
    "value",
    [
        [2**4_000_000],
        ["x" * 10_000_000],
        [list(range(1_000))] * 10_000,
        {"k" * 1_000: b"v" * 999},
    ],
    ids=["whole number", "text", "list", "mapping"],
)
def test_large_values_are_shown_short(value: object) -> None:
    assert len(brief(value)) <= 80


def test_a_difference_shows_little_of_either_side() -> None:
    secret, given = b"s" * 5_000, b"g" * 5_000
    for rule in (DEFAULT, EXACT, UNORDERED, within(1)):
        difference = compare_output(rule, secret, given) or ""
        assert max(difference.count("s"), difference.count("g")) <= 100
