"""Comparisons of outputs and values, by example."""

from __future__ import annotations

import math
import tracemalloc

import pytest

from assay.sandbox.judging import stdout
from assay.sandbox.judging.model import AnswerComparison, ComparisonKind
from assay.sandbox.judging.stdout import compare_output
from assay.sandbox.judging.text import brief
from assay.sandbox.judging.values import compare_values

DEFAULT = AnswerComparison()
EXACT = AnswerComparison(ComparisonKind.EXACT)
UNORDERED = AnswerComparison(ComparisonKind.UNORDERED)


def within(absolute: float = 0.0, relative: float = 0.0) -> AnswerComparison:
    return AnswerComparison(ComparisonKind.NUMERIC, absolute, relative)


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
        (within(math.inf), b"1", b"inf", False),
        (within(math.nan), b"1", b"2", False),
        (within(math.nan, 1.0), b"1", b"2", True),
        (within(), b"1e400", b"inf", False),
        (within(1e300, 1e300), b"1e400", b"inf", False),
        (within(), b"inf", b"1e400", False),
        (within(), b"+inf", b"infinity", True),
        (within(1), b"-nan", b"nan", True),
        (within(), b"1e400", b"10e399", True),
        (within(), b"1e400", b"1e401", False),
        (within(relative=1e-6), b"1e400", b"1.0000001e400", True),
        (within(relative=1e-6), b"1e400", b"1.00001e400", False),
        (within(1e-6), b"1e400", b"1.0000001e400", False),
        (within(), b"0", b"1e-400", False),
        (within(), b"1e-400", b"0.0", False),
        (within(1e-9), b"0", b"1e-400", True),
        (within(1e-9), b"1e-400", b"-1e-400", True),
        (within(relative=1e-9), b"0", b"1e-400", False),
        (within(), b"-0.0", b"0e5", True),
        (within(), b"0.1", b"0.1000000000000000055511151231257827", False),
        (within(0.1), b"1.0", b"1.1", True),
        (within(0.1), b"1.0", b"1.1000000000000000000000001", False),
        (within(1e-9), b"1e99999", b"1", False),
        (within(relative=1), b"1e99999", b"1", True),
        (within(relative=1), b"1e99999", b"-1", False),
        (within(1), b"1", b"9" * 5_000, False),
        (within(), b"9" * 5_000, b"9" * 5_000, True),
        (within(1), b"1", b"1" + b"." * 9, False),
        (within(1), b"1", b"\xff\xfe", False),
        (within(1), b"1", b"\xd9\xa1", False),
        (UNORDERED, b"b\na\n", b"a\nb", True),
        (UNORDERED, b"a\na\nb", b"a\nb\nb", False),
        (UNORDERED, b"a b", b"b a", False),
        (UNORDERED, b"a  b \n\n", b"a b", True),
        (UNORDERED, b"a\nb", b"\x0b\x0c b\t\r\n \n\r\na   ", True),
        (UNORDERED, b"a", b"a\na", False),
        (UNORDERED, b"", b" \n\n", True),
        (UNORDERED, b"", b"a", False),
    ],
)
def test_outputs(rule: AnswerComparison, expected: bytes, actual: bytes, right: bool) -> None:
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
def test_values(rule: AnswerComparison, expected: object, actual: object, right: bool) -> None:
    assert (compare_values(rule, expected, actual) is None) == right


def test_elements_that_collide_are_not_counted_for_ages() -> None:
    hostile = [(2**61 - 1) * i for i in range(1, 20_000)]
    assert compare_values(UNORDERED, list(range(1, 20_000)), hostile) is not None


@pytest.mark.parametrize(
    "kind", [ComparisonKind.TOKENS, ComparisonKind.CHECKER], ids=lambda kind: kind.value
)
def test_rules_that_are_not_for_values(kind: ComparisonKind) -> None:
    with pytest.raises(ValueError, match="does not compare"):
        compare_values(AnswerComparison(kind), 1, 1)


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


MIB = 2**20
TOKENS = AnswerComparison(ComparisonKind.TOKENS)


@pytest.mark.parametrize(
    ("rule", "hostile"),
    [
        (TOKENS, b"12 " * (4 * MIB // 3)),
        (within(1), b"12 " * (4 * MIB // 3)),
        (UNORDERED, b"12\n" * (4 * MIB // 3)),
        (UNORDERED, b"\n" * (4 * MIB)),
        (UNORDERED, b"\n \t" * (4 * MIB // 3)),
        (UNORDERED, b"x" + b" " * (4 * MIB)),
    ],
)
def test_an_output_takes_memory_like_itself_whatever_its_tokens(
    rule: AnswerComparison, hostile: bytes
) -> None:
    tracemalloc.start()
    try:
        assert compare_output(rule, b"1 2\n3", hostile) is not None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(hostile) + MIB


def test_numbers_are_read_no_further_than_the_first_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[bytes] = []
    number = stdout._number
    monkeypatch.setattr(stdout, "_number", lambda token: read.append(token) or number(token))
    assert compare_output(within(1), b"1 2 3 4", b"1.5 9 3.5 " + b"8 " * MIB)
    assert read == [b"1", b"1.5", b"2", b"9"]
    read.clear()
    assert compare_output(within(1), b"1 2", b"1.5 2.5 " + b"8 " * MIB) == (
        "expected 2 tokens, got more"
    )
    assert len(read) == 4


@pytest.mark.parametrize(
    ("expected", "actual", "right"),
    [
        # Work that grew with the square of a token, or with an exponent, would not end here.
        (b"1 ", b"1." + b"0" * 3_997 + b"1 ", True),
        (b"7" * 4_000 + b" ", b"7" * 3_999 + b"8 ", True),
        (b"7" * 3_990 + b"e99999 ", b"7" * 3_989 + b"8e99999 ", True),
        (b"1e99999 ", b"1e-99999 ", False),
        (b"0 ", b"7" * 3_990 + b"e-99999 ", True),
        (b"1 ", b"1" * 3_999 + b"x ", False),
        (b"1 ", b"1" * 3_999 + b". ", False),
    ],
)
def test_the_longest_numbers_cost_one_pass_each(
    expected: bytes, actual: bytes, right: bool
) -> None:
    count = 16 * MIB // 4_001
    rule = within(1e-6, 1e-6)
    assert (compare_output(rule, expected * count, actual * count) is None) == right
    last = compare_output(rule, b"1 " * count + expected, b"1. " * count + actual)
    assert (last is None) == right


@pytest.mark.parametrize("big", [10, 5_000, 30_000, 99_999])
@pytest.mark.parametrize("small", [-99_999, -30_000, -4_000, 0])
def test_a_tolerance_is_kept_exactly_across_any_gap_of_exponents(big: int, small: int) -> None:
    # The difference is 1eBIG + or - 1eSMALL: on one side of a tolerance of 1eBIG by a hair.
    one = f"1e{big}".encode()
    tiny = f"1e{small}".encode()
    rule = within(relative=1.0)
    assert compare_output(rule, one, tiny) is None
    assert compare_output(rule, one, b"-" + tiny) is not None
    assert compare_output(rule, one, b"0") is None
