"""Laws of the comparisons and of the codec that carries values between processes."""

from __future__ import annotations

import contextlib
import math
import random
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.sandbox.harness.codec import decode, encode
from assay.sandbox.harness.references import CodecError
from assay.sandbox.judging.model import AnswerComparison, ComparisonKind
from assay.sandbox.judging.stdout import compare_output
from assay.sandbox.judging.text import brief, one_line
from assay.sandbox.judging.values import compare_values, equal

NUMBERS = st.integers() | st.floats(allow_nan=False)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers(allow_nan=False)
)
HASHABLE = st.recursive(
    SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5
)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(HASHABLE, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=4)
    ),
    max_leaves=12,
)
VALUE_RULES = st.sampled_from(
    [
        AnswerComparison(ComparisonKind.DEFAULT),
        AnswerComparison(ComparisonKind.EXACT),
        AnswerComparison(ComparisonKind.NUMERIC, 1e-6, 1e-6),
        AnswerComparison(ComparisonKind.NUMERIC),
        AnswerComparison(ComparisonKind.UNORDERED),
    ]
)
OUTPUT_RULES = st.sampled_from(
    [AnswerComparison(kind) for kind in ComparisonKind if kind is not ComparisonKind.CHECKER]
    + [AnswerComparison(ComparisonKind.NUMERIC, 1e-6, 1e-6)]
)


@given(PLAIN)
def test_what_is_encoded_comes_back_the_same(value: object) -> None:
    back = decode(encode(value))
    assert compare_values(AnswerComparison(ComparisonKind.EXACT), value, back) is None
    assert repr(type(back)) == repr(type(value))


@given(st.binary(max_size=200))
def test_any_bytes_decode_to_a_value_or_a_codec_error(data: bytes) -> None:
    with contextlib.suppress(CodecError):
        decode(data)


@given(PLAIN, st.data())
def test_spoilt_bytes_decode_to_a_value_or_a_codec_error(
    value: object, data: st.DataObject
) -> None:
    spoilt = bytearray(encode(value))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(spoilt) - 1))
        spoilt[at] = data.draw(st.sampled_from(list(b'{}[]",:tsfdbBixucDFrqTnh0-9eN\x00\xff')))
    with contextlib.suppress(CodecError):
        decode(spoilt)


@given(VALUE_RULES, PLAIN)
def test_every_value_is_itself(rule: AnswerComparison, value: object) -> None:
    assert compare_values(rule, value, decode(encode(value))) is None


@given(VALUE_RULES, PLAIN, PLAIN)
def test_a_difference_is_one_short_line(
    rule: AnswerComparison, left: object, right: object
) -> None:
    difference = compare_values(rule, left, right)
    assert difference is None or (len(difference) < 250 and difference.isprintable())


@given(PLAIN, PLAIN)
def test_default_is_pythons_equality_save_nan(left: object, right: object) -> None:
    if left == right:
        assert equal(left, right)
    if equal(left, right) and "nan" not in repr(left):
        assert left == right


@given(PLAIN, PLAIN)
def test_exact_is_stricter_than_default(left: object, right: object) -> None:
    if compare_values(AnswerComparison(ComparisonKind.EXACT), left, right) is None:
        assert compare_values(AnswerComparison(), left, right) is None


@given(PLAIN, PLAIN)
@example({frozenset({float("nan")})}, {frozenset({float("nan")})})
def test_no_tolerance_is_no_different_from_default(left: object, right: object) -> None:
    numeric = compare_values(AnswerComparison(ComparisonKind.NUMERIC), left, right)
    assert (numeric is None) == equal(left, right)


@given(NUMBERS, NUMBERS, st.floats(1e-9, 1e3), st.floats(0, 1e-3))
def test_a_wider_tolerance_takes_whatever_a_narrower_does(
    left: float, right: float, absolute: float, relative: float
) -> None:
    narrow = AnswerComparison(ComparisonKind.NUMERIC, absolute, relative)
    wide = AnswerComparison(ComparisonKind.NUMERIC, absolute * 2, relative * 2)
    if compare_values(narrow, left, right) is None:
        assert compare_values(wide, left, right) is None


@given(st.lists(PLAIN, max_size=6), st.randoms(use_true_random=False))
def test_unordered_means_in_any_order(items: list[object], shuffler: random.Random) -> None:
    mixed = list(items)
    shuffler.shuffle(mixed)
    rule = AnswerComparison(ComparisonKind.UNORDERED)
    assert compare_values(rule, items, mixed) is None
    assert compare_values(rule, items, [*mixed, 0]) is not None


@given(OUTPUT_RULES, st.binary(max_size=60))
def test_every_output_is_itself(rule: AnswerComparison, output: bytes) -> None:
    assert compare_output(rule, output, output) is None


@given(
    st.lists(st.binary(min_size=1, max_size=5), max_size=6), st.sampled_from([b" ", b"\n\n", b"\t"])
)
def test_white_space_between_tokens_means_nothing(tokens: list[bytes], space: bytes) -> None:
    left, right = b" ".join(tokens), space + space.join(tokens) + b"\n"
    assert compare_output(AnswerComparison(), left, right) is None


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_exact_output_is_byte_for_byte(left: bytes, right: bytes) -> None:
    same = compare_output(AnswerComparison(ComparisonKind.EXACT), left, right) is None
    assert same == (left == right)


@given(st.lists(st.text("ab 1", max_size=4), max_size=6), st.randoms(use_true_random=False))
def test_lines_may_come_in_any_order(lines: list[str], shuffler: random.Random) -> None:
    mixed = list(lines)
    shuffler.shuffle(mixed)
    rule = AnswerComparison(ComparisonKind.UNORDERED)
    assert compare_output(rule, "\n".join(lines).encode(), "\n".join(mixed).encode()) is None
    assert compare_output(rule, "\n".join(lines).encode(), "\n".join([*mixed, "x"]).encode())


@given(st.floats(), st.floats())
def test_nan_and_infinity_meet_only_themselves(left: float, right: float) -> None:
    if math.isfinite(left) and math.isfinite(right):
        return
    same = left == right or (math.isnan(left) and math.isnan(right))
    rule = AnswerComparison(ComparisonKind.NUMERIC, 1e300, 1e300)
    assert (compare_values(rule, [left], [right]) is None) == same
    outputs = (str(left).encode(), str(right).encode())
    assert (compare_output(rule, *outputs) is None) == same


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False).map(str)


@given(
    DECIMALS,
    DECIMALS,
    st.floats(0, 1e9, allow_subnormal=False),
    st.floats(0, 10, allow_subnormal=False),
)
def test_written_numbers_are_compared_exactly(
    left: str, right: str, absolute: float, relative: float
) -> None:
    ours, theirs = Fraction(left), Fraction(right)
    allowed = max(Fraction(repr(absolute)), Fraction(repr(relative)) * abs(ours))
    rule = AnswerComparison(ComparisonKind.NUMERIC, absolute, relative)
    near = compare_output(rule, left.encode(), right.encode()) is None
    assert near == (abs(ours - theirs) <= allowed)


@given(PLAIN, st.integers(10, 100))
def test_a_brief_value_is_brief(value: object, limit: int) -> None:
    assert len(brief(value, limit)) <= limit


@given(st.text(st.characters(), max_size=2_000))
def test_one_line_is_one_line(text: str) -> None:
    line = one_line(text)
    assert len(line) <= 400
    assert line.isprintable()


def test_shared_parts_cannot_blow_up_the_encoder() -> None:
    value: list[object] = []
    for _ in range(60):
        value = [value, value]
    with pytest.raises(CodecError, match="elements"):
        encode(value)


def test_a_cycle_is_too_deep() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(CodecError, match="levels"):
        encode(value)
