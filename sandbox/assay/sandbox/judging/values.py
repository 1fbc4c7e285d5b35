"""Whether a plain value is the expected one. Pure.

The values are trees of exact built-in types (see `model`), so no comparison runs code of a
candidate's; the codec bounds their depth and size.

    default    as Python's ==: 1 == 1.0 == True, a list is no tuple
    exact      equal in type and value, throughout
    numeric    numbers within the tolerances, throughout; everything else as default
    unordered  the elements of the outermost list, tuple or set in any order, as often each

NaN equals NaN and nothing else, in every rule; an infinity equals the same infinity only. A
tolerance is the larger of the absolute one and the relative one times the expected number's size.
Whole numbers are compared without rounding. Booleans are no numbers to a tolerance.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from typing import TypeGuard

from assay.sandbox.harness.codec import check_spread
from assay.sandbox.harness.references import CodecError
from assay.sandbox.judging.model import AnswerComparison, ComparisonKind, Plain
from assay.sandbox.judging.text import brief


def compare_values(comparison: AnswerComparison, expected: Plain, actual: Plain) -> str | None:
    """None where `actual` is right, else what differs, in one line.

    Raises:
        ValueError: the rule is not one for values.
    """
    match comparison.kind:
        case ComparisonKind.DEFAULT:
            right = equal(expected, actual)
        case ComparisonKind.EXACT:
            right = identical(expected, actual)
        case ComparisonKind.NUMERIC:
            right = near(expected, actual, comparison)
        case ComparisonKind.UNORDERED:
            right = same_elements(expected, actual)
        case kind:
            raise ValueError(f"{kind.value} does not compare values")
    return None if right else f"expected {brief(expected)}, got {brief(actual)}"


def equal(expected: Plain, actual: Plain) -> bool:
    """As Python's ==, but NaN equals NaN."""
    if expected == actual:
        return True
    return _has_nan(expected) and _frozen(expected) == _frozen(actual)


def identical(expected: Plain, actual: Plain) -> bool:
    """Equal in type and value, throughout."""
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        return len(expected) == len(actual) and all(map(identical, expected, actual))
    if isinstance(expected, (set, frozenset)) and isinstance(actual, (set, frozenset)):
        return _typed(expected) == _typed(actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _same_entries(_with_type, identical, expected, actual)
    return equal(expected, actual)


def near(expected: Plain, actual: Plain, comparison: AnswerComparison) -> bool:
    """Equal, with numbers within the tolerances."""
    if _is_number(expected) and _is_number(actual):
        return numbers_near(expected, actual, comparison)
    match expected, actual:
        case (list(ours), list(theirs)) | (tuple(ours), tuple(theirs)):
            return len(ours) == len(theirs) and all(
                near(mine, their, comparison) for mine, their in zip(ours, theirs, strict=True)
            )
        case (dict(ours), dict(theirs)):

            def close(mine: Plain, their: Plain) -> bool:
                return near(mine, their, comparison)

            return _same_entries(_frozen, close, ours, theirs)
        case (set() | frozenset(), set() | frozenset()):
            return _near_sets(expected, actual, comparison)
    return equal(expected, actual)


def numbers_near(expected: int | float, actual: int | float, comparison: AnswerComparison) -> bool:
    """Whether two numbers are equal within the tolerances."""
    if expected == actual:
        return True
    if not (_is_finite(expected) and _is_finite(actual)):
        return expected != expected and actual != actual  # noqa: PLR0124 - both are NaN
    absolute, relative = comparison.absolute_tolerance, comparison.relative_tolerance
    if not (absolute > 0 or relative > 0):
        return False
    if math.isinf(absolute) or math.isinf(relative):
        return True
    if isinstance(expected, float) and isinstance(actual, float):
        return abs(expected - actual) <= max(absolute, relative * abs(expected))
    gap = abs(Fraction(expected) - Fraction(actual))
    return gap <= max(Fraction(absolute), Fraction(relative) * abs(Fraction(expected)))


def same_elements(expected: Plain, actual: Plain) -> bool:
    """The same elements, as often each, in collections of any kind."""
    collections = (list, tuple, set, frozenset)
    if not (isinstance(expected, collections) and isinstance(actual, collections)):
        return equal(expected, actual)
    if len(expected) != len(actual):
        return False
    try:
        ours, theirs = _counted(expected), _counted(actual)
    except CodecError:  # elements chosen to collide: no right answer looks like that
        return False
    return ours == theirs


def _same_entries(
    key: Callable[[Plain], Hashable],
    same: Callable[[Plain, Plain], bool],
    expected: Mapping[Plain, Plain],
    actual: Mapping[Plain, Plain],
) -> bool:
    """Two mappings: the same keys, as `key` tells them apart, with the same values."""
    ours = {key(name): value for name, value in expected.items()}
    theirs = {key(name): value for name, value in actual.items()}
    if len(expected) != len(actual) or ours.keys() != theirs.keys():
        return False
    return all(same(value, theirs[name]) for name, value in ours.items())


def _counted(items: Iterable[Plain]) -> Counter[Hashable]:
    frozen = [_frozen(item) for item in items]
    check_spread(frozen)
    return Counter(frozen)


def _frozen(value: Plain) -> Hashable:
    """A hashable stand-in: two are equal where the values are, NaN with NaN."""
    match value:
        case float() if math.isnan(value):
            return ("nan",)
        case list() | tuple() | deque():
            return (type(value).__name__, *map(_frozen, value))
        case set() | frozenset():
            return ("set", frozenset(map(_frozen, value)))
        case dict():
            pairs = value.items()
            return ("dict", frozenset((_frozen(key), _frozen(item)) for key, item in pairs))
        case bytearray():
            return bytes(value)
    return value


def _typed(items: Iterable[Plain]) -> Counter[object]:
    return Counter(map(_with_type, items))


def _with_type(value: Plain) -> Hashable:
    if isinstance(value, (tuple, frozenset)):
        inner = [_with_type(item) for item in value]
        return (type(value), tuple(inner) if isinstance(value, tuple) else frozenset(inner))
    return (type(value), _frozen(value))


def _has_nan(value: Plain) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, dict):
        return any(map(_has_nan, value)) or any(map(_has_nan, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(map(_has_nan, value))
    return False


def _is_number(value: Plain) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_finite(value: int | float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _near_sets(
    expected: set[Plain] | frozenset[Plain],
    actual: set[Plain] | frozenset[Plain],
    comparison: AnswerComparison,
) -> bool:
    """Sets: numbers pair up in order of size; everything else must be there exactly."""
    if equal(expected, actual):
        return True  # NaN inside included, which neither sorts nor equals itself
    if len(expected) != len(actual):
        return False
    ours = sorted(value for value in expected if _is_number(value))
    theirs = sorted(value for value in actual if _is_number(value))
    if len(ours) != len(theirs) or not all(
        numbers_near(mine, their, comparison) for mine, their in zip(ours, theirs, strict=True)
    ):
        return False
    return {value for value in expected if not _is_number(value)} == {
        value for value in actual if not _is_number(value)
    }
