"""Points that tell apart what agrees near zero: `|x - 100|` and `100 - x`, `min(x, y)` and `x`.

The sample points of `numeric` are small and of one order. Where an expression bends (absolute
values, minima and maxima, rounding, even roots), both sides are tried at sizes from 0.05 to 10^6,
with either sign and with each variable in turn the largest. A bend beyond 10^6 stays unseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from assay.math import numeric
from assay.math.nodes import Call, Node, Number, Pow, Symbol, walk

_BENDING = frozenset({"abs", "min", "max", "floor", "ceil", "root", "mod"})
WHOLE_NAMES = frozenset("jklmnpqrstN")
"""First letters of names that stand for whole numbers."""
_SIZES = (0.05, 0.61, 7.3, 83.7, 1211.3, 1100003.7)
_WHOLE_SIZES = (3.0, 8.0, 85.0, 1212.0, 1100003.0)
_SPREAD = 0.37
_MAX_TURNS = 6
_MAX_WORK = 60_000
_APART = 1e-3  # rounding by cancellation stays below at these sizes, a bend does not


def bends(node: Node) -> bool:
    """Whether a variable stands in a function that changes its formula somewhere."""
    return any(_is_bend(part) and _holds_variable(part) for part in walk(node))


def _is_bend(part: Node) -> bool:
    if isinstance(part, Call):
        return part.name in _BENDING
    if not isinstance(part, Pow):
        return False
    exponent = part.exponent
    return not isinstance(exponent, Number) or exponent.value.denominator != 1


def _holds_variable(part: Node) -> bool:
    """Whether a variable stands below, for a power in its base."""
    inside = part.base if isinstance(part, Pow) else part
    return any(isinstance(inner, Symbol) for inner in walk(inside))


def far_apart(left: Node, right: Node, names: frozenset[str]) -> bool | None:
    """Whether two expressions differ at one of the points; None where that is too much work."""
    ordered = sorted(names)
    points = list(_points(ordered))
    size = sum(map(_size, (left, right)))
    if size * len(points) > _MAX_WORK:
        return None
    return any(_differ(left, right, point) for point in points)


def _size(node: Node) -> int:
    """How many nodes are evaluated at a point, at most; a sum evaluates its body often."""
    parts = list(walk(node))
    sums = any(isinstance(part, Call) and part.name in ("sum", "product") for part in parts)
    return len(parts) * (numeric.MAX_TERMS if sums else 1)


def _differ(left: Node, right: Node, point: Mapping[str, numeric.Value]) -> bool:
    ours, theirs = _real(left, point), _real(right, point)
    return ours is not None and theirs is not None and not numeric.close(ours, theirs, _APART)


def _points(names: Sequence[str]) -> Iterator[dict[str, numeric.Value]]:
    """Sizes, orders and signs; names that stand for whole numbers get positive whole ones."""
    whole = all(name[0] in WHOLE_NAMES for name in names)
    turns = [[*names[k:], *names[:k]] for k in range(min(len(names), _MAX_TURNS))]
    if len(names) > 2:
        turns.append(list(names[::-1]))
    for size in _WHOLE_SIZES if whole else _SIZES:
        for turn in turns:
            values = [size * (1 + _SPREAD * place) for place in range(len(turn))]
            if whole:
                yield dict(zip(turn, map(float, map(round, values)), strict=True))
                continue
            for sign in (1, -1):
                yield {name: sign * value for name, value in zip(turn, values, strict=True)}


def leaves_reals(reference: Node, answer: Node, names: Sequence[str]) -> bool:
    """Whether a negative value of one variable takes the answer alone off the real line.

    It counts only where both are real at the positive value.
    """
    base: dict[str, numeric.Value] = {name: numeric.sample(name, 0) for name in names}
    if _real(answer, base) is None or _real(reference, base) is None:
        return False
    return any(
        _real(reference, point) is not None and _real(answer, point) is None
        for point in one_negative(names)
    )


def one_negative(names: Sequence[str]) -> Iterator[dict[str, numeric.Value]]:
    """Points at which one variable is negative and the others are not, each in turn."""
    base: dict[str, numeric.Value] = {name: numeric.sample(name, 0) for name in names}
    return ({**base, name: -base[name]} for name in names)


def _real(node: Node, point: Mapping[str, numeric.Value]) -> float | None:
    """The value on the real line; None where there is none."""
    try:
        value = numeric.evaluate(node, numeric.MIXED_POINTS[0], point)
    except numeric.Invalid:
        return None
    return value if isinstance(value, float) else None
