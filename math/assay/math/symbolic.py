"""The slow tier: what points in floating point cannot decide, by sympy and mpmath at 60 digits.

Sums, products, integrals and limits; numbers so large, small or close to each other that floating
point sees no difference; identities in several variables. Import this module in a worker only:
it loads sympy. The work is bounded by a number of function calls, counted by a profiling hook, so
that the bound is the same on every machine; what a single call takes in C has no bound but the
limits on digits, so whoever calls must be able to kill. sympy's objects are built from our own
tree, never from text, and every power, factorial and range is limited before sympy sees it.

How two expressions are compared: their difference is exactly zero, or a rational number (then they
differ); else both are evaluated at points (integers where a variable bounds a sum, positive and
negative rationals otherwise) with 60 digits. Beyond 1e-40 of the larger value they differ. Agreeing
at every point is equality: a response that agrees to 40 digits at six points it cannot know is
either equal or a construction nobody has shown. Agreement at positive points alone is not
decided, because the condition is not part of the answer. `simplify` is not asked: it adds no
certainty that points at 60 digits lack, and it has no bound.

Differences from a computer algebra system's equality: no search for a proof, no assumption about
variables, and None for everything outside this list.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType
from typing import TYPE_CHECKING, Any

from assay.math import nodes
from assay.math.compare import Equivalence
from assay.math.policy import Policy
from assay.math.to_sympy import BOUND, OutsideError, integrand, to_sympy

if TYPE_CHECKING:
    from assay.math.reading import Reading

TIER = "symbolic"

_NODES = 512
_CALLS = 500_000
_VARIABLES = 6
_ELEMENTS = 12
_DIGITS = 60
_AGREE = "1e-40"
_PRIMES = (2, 3, 5, 7, 11, 13)


class _Spent(BaseException):
    """The budget of calls is used up. No Exception, because sympy catches those."""


def prepare() -> None:
    """Imports sympy and fills its tables; forked workers start with both."""
    left = nodes.Call("sin", (nodes.Symbol("x"),))
    right = nodes.Mul((nodes.MINUS_ONE, nodes.Call("sin", (nodes.Symbol("x"),))))
    _decide(left, right, Policy())


def compare(reference: Reading, answer: Reading, policy: Policy = Policy()) -> Equivalence:  # noqa: B008 - frozen
    """Compares an answer with a reference; undecided outside the tier's subjects and limits."""
    from sympy.core.cache import clear_cache  # noqa: PLC0415 - see the module's docstring

    clear_cache()  # so that what came before neither helps nor takes memory
    equal = None
    try:
        with _budget(_CALLS):
            equal = _answered(reference.node, answer.node, policy)
    except OutsideError as outside:
        note = str(outside)
    except _Spent:
        note = f"undecided after {_CALLS} steps"
    except (ArithmeticError, NotImplementedError, RecursionError, TypeError, ValueError) as error:
        # sympy and mpmath raise these for what they cannot do: no opinion about the answer.
        note = f"sympy gave up: {type(error).__name__}"
    else:
        note = f"values to {_DIGITS} digits"
        if equal is None:
            note = "not the same kind of thing, or equal only on a condition"
    return Equivalence(equal, TIER, note)


def _answered(left: nodes.Node | None, right: nodes.Node | None, policy: Policy) -> bool | None:
    """Whether two trees are equal, if they are within the limits."""
    for node in (left, right):
        if node is None:
            raise OutsideError("not read as mathematics")
        if any(count >= _NODES for count, _ in enumerate(nodes.walk(node))):
            raise OutsideError("too long an expression")
    assert left is not None  # noqa: S101 - the loop has seen to it
    assert right is not None  # noqa: S101 - as above
    _same_conventions(left, right, policy)
    return _decide(left, right, policy)


@contextmanager
def _budget(calls: int) -> Iterator[None]:
    """Raises `_Spent` out of the block when it has made so many Python calls.

    Python removes a hook that raises, and ignores what is raised while it finalises an object: an
    exception that is ignored there is reported to `sys.unraisablehook`, which sets the hook anew.
    """
    left = calls

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal left
        if event == "call":
            left -= 1
            if left < 0:
                raise _Spent

    def set_anew(ignored: sys.UnraisableHookArgs) -> None:
        if isinstance(ignored.exc_value, _Spent):
            sys.setprofile(count)
        else:
            unraisable_before(ignored)

    before, unraisable_before = sys.getprofile(), sys.unraisablehook
    sys.unraisablehook = set_anew
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
        sys.unraisablehook = unraisable_before
    if left < 0:
        raise _Spent


def _same_conventions(left: nodes.Node, right: nodes.Node, policy: Policy) -> None:
    """Leaves to the quick tiers what their policy decides and not the values.

    Raises:
        OutsideError: a sign (percent, degree) on one side only, or a decimal that may stand for a
            number that it rounds.
    """
    signs = [
        {part.name for part in nodes.walk(node) if isinstance(part, nodes.Constant)}
        & {"percent", "degree"}
        for node in (left, right)
    ]
    if signs[0] != signs[1]:
        raise OutsideError("a percent or degree sign on one side only")
    if policy.relative_tolerance or policy.decimals is not None:
        raise OutsideError("a tolerance is in force")
    for part in (*nodes.walk(left), *nodes.walk(right)):
        if isinstance(part, nodes.Number) and part.digits >= (policy.approximation_digits or 99):
            raise OutsideError("a decimal that may be rounded")


# --- Shapes ---------------------------------------------------------------------------------------


def _decide(left: nodes.Node, right: nodes.Node, policy: Policy) -> bool | None:
    """Whether two trees are equal; None when this tier cannot tell."""
    if left == right:
        return True
    if policy.strip_name:
        left, right = _nameless(left, right), _nameless(right, left)
    equal: bool | None = None
    match left, right:
        case nodes.Group(), nodes.Group():
            equal = _groups(left, right, policy)
        case nodes.Matrix(), nodes.Matrix():
            equal = _matrices(left, right, policy)
        case nodes.Chain(), nodes.Chain():
            equal = _chains(left, right, policy)
        case nodes.Quantity(), nodes.Quantity() if left.unit == right.unit:
            equal = _decide(left.value, right.value, policy)
        case _ if not any(isinstance(node, _SHAPES) for node in (left, right)):
            equal = _expressions(left, right)
    return equal


def _matrices(left: nodes.Matrix, right: nodes.Matrix, policy: Policy) -> bool | None:
    """Entry by entry, in the same shape."""
    if [len(row) for row in left.rows] != [len(row) for row in right.rows]:
        return False
    return _each(nodes.children(left), nodes.children(right), policy)


_SHAPES = (
    nodes.Group,
    nodes.Matrix,
    nodes.Chain,
    nodes.Quantity,
    nodes.SetOperation,
    nodes.PlusMinus,
    nodes.Text,
)


def _nameless(node: nodes.Node, other: nodes.Node) -> nodes.Node:
    """The right side of `name = value` where the other is no relation."""
    if isinstance(other, nodes.Chain) or not isinstance(node, nodes.Chain):
        return node
    named = node.operators == ("=",) and isinstance(node.operands[0], nodes.Symbol)
    return node.operands[1] if named else node


def _each(left: Sequence[nodes.Node], right: Sequence[nodes.Node], policy: Policy) -> bool | None:
    """Element by element: False as soon as one differs, None when one is undecided."""
    if len(left) != len(right):
        return False
    verdicts: list[bool | None] = []
    for one, other in zip(left, right, strict=True):
        verdicts.append(_decide(one, other, policy))
        if verdicts[-1] is False:
            return False
    return None if None in verdicts else True


def _groups(left: nodes.Group, right: nodes.Group, policy: Policy) -> bool | None:
    """Tuples, intervals and bare lists in order; sets in any order."""
    if (left.opening, left.closing, left.alternatives) != (
        right.opening,
        right.closing,
        right.alternatives,
    ):
        return None
    if len(left.items) != len(right.items):
        return False
    if (left.opening == "{" or not (left.opening or policy.ordered_lists)) and len(left.items) > 1:
        return _matched(left.items, right.items, policy)
    return _each(left.items, right.items, policy)


def _matched(
    left: Sequence[nodes.Node], right: Sequence[nodes.Node], policy: Policy
) -> bool | None:
    """In any order. Equality is transitive, so the first element that fits is as good as any."""
    if len(left) > _ELEMENTS:
        raise OutsideError("too many elements")
    rest = list(right)
    undecided = False
    for one in left:
        verdicts = [_decide(one, other, policy) for other in rest]
        if True in verdicts:
            del rest[verdicts.index(True)]
        elif None in verdicts:
            undecided = True
        else:
            return False
    return None if undecided else True


def _chains(left: nodes.Chain, right: nodes.Chain, policy: Policy) -> bool | None:
    """Relations: the same operators around equal operands; equations also up to a factor."""
    if left.operators == right.operators and _each(left.operands, right.operands, policy):
        return True
    if left.operators != ("=",) or right.operators != ("=",):
        return None
    return True if _proportional(left.operands, right.operands) else None


def _proportional(left: Sequence[nodes.Node], right: Sequence[nodes.Node]) -> bool:
    """Whether left minus right side of one equation is a constant times that of the other."""
    first, second = (_difference(*sides) for sides in (left, right))
    variables = sorted(nodes.symbols(first) | nodes.symbols(second))
    if not variables or nodes.symbols(first) != nodes.symbols(second):
        return False
    ratios = []
    for point in _points(variables, frozenset()):
        one, other = _value(first, point), _value(second, point)
        if one is None or other is None or not one or not other:
            return False
        ratios.append(one / other)
    return all(_close(a, b) for a, b in pairwise(ratios))


def _difference(left: nodes.Node, right: nodes.Node) -> nodes.Node:
    return nodes.Add((left, nodes.Mul((nodes.MINUS_ONE, right))))


# --- Values ---------------------------------------------------------------------------------------


def _expressions(left: nodes.Node, right: nodes.Node) -> bool | None:
    """Two expressions, by their difference and by their values."""
    if _free(left) != _free(right):
        return None
    one, other = to_sympy(left, {}), to_sympy(right, {})
    difference = one - other
    if difference == 0:
        return True
    if difference.is_Rational:
        return False
    variables = sorted(nodes.symbols(left) | nodes.symbols(right))
    if len(variables) > _VARIABLES:
        raise OutsideError("too many variables")
    whole = _bounding(left) | _bounding(right)
    agree: list[bool] = []
    positive: list[bool] = []
    for point in _points(variables, whole):
        a, b = _value(left, point), _value(right, point)
        if a is None or b is None:
            continue
        agree.append(_close(a, b))
        if all(value > 0 for value in point.values()):
            positive.append(agree[-1])
    if not agree:
        raise OutsideError("no value at any point")
    if all(agree):
        return True if len(agree) >= min(3, 1 + 2 * len(variables)) else None
    return None if positive and all(positive) else False


def _free(node: nodes.Node) -> frozenset[str]:
    """The variables of an expression that no sum, product, integral or limit binds."""
    if isinstance(node, nodes.Symbol):
        return frozenset((node.name,))
    inside = frozenset[str]().union(*map(_free, nodes.children(node)))
    if not isinstance(node, nodes.Call) or node.name not in BOUND:
        return inside
    variable = node.arguments[1] if len(node.arguments) > 1 else nodes.Text("")
    if node.name == "integral":
        _, variable = integrand(node.arguments[0], variable)
        inside -= {"d"}  # of d x, which is read as two factors
    return inside - nodes.symbols(variable)


def _bounding(node: nodes.Node) -> frozenset[str]:
    """The variables that bound a sum or product, or stand in a factorial: whole numbers."""
    names: set[str] = set()
    for part in nodes.walk(node):
        if isinstance(part, nodes.Call):
            if part.name in ("sum", "product"):
                for end in part.arguments[2:]:
                    names |= nodes.symbols(end)
            elif part.name in ("factorial", "double_factorial", "binomial", "mod"):
                names |= nodes.symbols(part)
    return frozenset(names)


def _points(variables: Sequence[str], whole: frozenset[str]) -> list[dict[str, Any]]:
    """Where expressions are evaluated: three positive points, three of mixed signs."""
    from sympy import Integer, Rational  # noqa: PLC0415 - see the module's docstring

    if not variables:
        return [{}]
    points = []
    for turn in range(6):
        point = {}
        for k, name in enumerate(variables):
            prime = _PRIMES[(turn + k) % len(_PRIMES)]
            if name in whole:
                point[name] = Integer(2 + (turn * 3 + k * 2) % 7)
            else:
                sign = 1 if turn < 3 or (turn + k) % 2 else -1
                point[name] = sign * Rational(prime * 10 + turn, 7 + 4 * k)
        points.append(point)
    return points


def _value(node: nodes.Node, point: dict[str, Any]) -> Any:
    """The value at a point as an mpmath number; None where there is none."""
    import mpmath  # noqa: PLC0415 - see the module's docstring
    import sympy  # noqa: PLC0415 - as above

    parts = to_sympy(node, point).evalf(_DIGITS, maxn=2 * _DIGITS).as_real_imag()
    if not all(part.is_Float or part.is_Rational for part in parts):
        return None
    with mpmath.workdps(_DIGITS):
        real, imaginary = (mpmath.mpf(sympy.Float(part, _DIGITS)) for part in parts)
        value = mpmath.mpc(real, imaginary)
    return value if mpmath.isfinite(value) else None


def _close(one: Any, other: Any) -> bool:
    """Whether two values agree to 40 digits of the larger."""
    import mpmath  # noqa: PLC0415 - see the module's docstring

    with mpmath.workdps(_DIGITS):
        scale = max(abs(one), abs(other))
        return bool(abs(one - other) <= mpmath.mpf(_AGREE) * scale)
