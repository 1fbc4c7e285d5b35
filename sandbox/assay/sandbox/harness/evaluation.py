"""Evaluates the simple expressions of test code over plain values, with bounded cost. Pure.

An expression is walked node by node, without eval or exec. An unknown kind of node, an attribute
other than a few functions of `math`, an operation that could blow up, or a value that is not plain
raises `NotFoldable`; the test code then runs in a process of its own.

A value may be `UNKNOWN`: what the candidate will return, so that its calls are collected before any
is made. What depends on an unknown value is unknown; where the *course* of the code does, that is
`NotFoldable`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from assay.sandbox.harness.codec import check_spread
from assay.sandbox.harness.references import CodecError

MAX_STEPS: Final = 400_000
MAX_LENGTH: Final = 200_000
MAX_BITS: Final = 20_000


class NotFoldable(Exception):
    """This code is left to a tester process."""


class _Sentinel:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


UNKNOWN: Final = _Sentinel("UNKNOWN")
SUBJECT: Final = _Sentinel("SUBJECT")
"""The candidate's function, which can only be called."""

Scope = dict[str, object]
Call = Callable[[ast.Call, list[object], dict[str, object]], object]
"""Calls the candidate."""

PLAIN: Final = (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict)
_NUMBERS: Final = (bool, int, float, complex)
_TYPES: Final = {
    kind.__name__: kind
    for kind in (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict)
}

_COMPARE: Final[dict[type[ast.cmpop], Callable[[Any, Any], object]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}

_ARITHMETIC: Final[dict[type[ast.operator], Callable[[Any, Any], object]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_SETS: Final[dict[type[ast.operator], Callable[[Any, Any], object]]] = {
    ast.Sub: operator.sub,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}

_UNARY: Final[dict[type[ast.unaryop], Callable[[Any], object]]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}

_MATH: Final = frozenset(
    {
        "isclose",
        "fabs",
        "sqrt",
        "floor",
        "ceil",
        "trunc",
        "isnan",
        "isinf",
        "isfinite",
        "log",
        "log2",
        "log10",
        "exp",
        "sin",
        "cos",
        "tan",
        "hypot",
        "degrees",
        "radians",
    }
)
_MATH_CONSTANTS: Final = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}


class Evaluator:
    """Evaluates expressions; counts its steps over its whole life."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._steps = 0
        self._kinds: dict[type[ast.expr], Callable[[Any, Scope], object]] = {
            ast.Constant: lambda node, scope: node.value,
            ast.Name: self._name,
            ast.List: lambda node, scope: self._sequence(node, scope, list),
            ast.Tuple: lambda node, scope: self._sequence(node, scope, tuple),
            ast.Set: lambda node, scope: self._sequence(node, scope, set),
            ast.Dict: self._dict,
            ast.UnaryOp: self._unary,
            ast.BinOp: self._binary,
            ast.BoolOp: self._boolean,
            ast.Compare: self._compare,
            ast.Call: self._called,
            ast.Subscript: self._subscript,
            ast.IfExp: self._conditional,
            ast.ListComp: lambda node, scope: self._comprehension(node, scope, list),
            ast.SetComp: lambda node, scope: self._comprehension(node, scope, set),
            ast.GeneratorExp: lambda node, scope: self._comprehension(node, scope, list),
            ast.Attribute: self._attribute,
        }

    def value(self, node: ast.expr, scope: Scope) -> object:
        """The value of an expression.

        Raises:
            NotFoldable: it cannot be evaluated here.
            Exception: what the expression itself raises, e.g. TypeError for None < 1.
        """
        self.step()
        evaluate = self._kinds.get(type(node))
        if evaluate is None:
            raise NotFoldable(type(node).__name__)
        value = evaluate(node, scope)
        if value is Ellipsis:
            raise NotFoldable("...")
        return value

    def step(self) -> None:
        """Counts a step.

        Raises:
            NotFoldable: there were too many.
        """
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise NotFoldable("too many steps")

    def items(self, value: object) -> list[Any]:
        """The elements of a collection that is iterated."""
        if not isinstance(value, (str, bytes, list, tuple, set, frozenset, dict, range)):
            raise TypeError(f"{type(value).__name__!r} object is not iterable")
        if len(value) > MAX_LENGTH:
            raise NotFoldable("a long loop")
        return list(value)

    def _name(self, node: ast.Name, scope: Scope) -> object:
        if node.id in scope:
            found = scope[node.id]
            if found is SUBJECT:
                raise NotFoldable("the function as a value")
            return found
        if node.id in _TYPES:
            return _TYPES[node.id]
        raise NotFoldable(f"the name {node.id}")

    def _sequence(self, node: Any, scope: Scope, kind: Callable[[list[Any]], Any]) -> object:
        return self._made(kind, list(self._starred(node.elts, scope)))

    def _starred(self, nodes: Iterable[ast.expr], scope: Scope) -> Iterator[object]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self.value(node.value, scope)
                if inner is UNKNOWN:
                    raise NotFoldable("an unknown number of elements")
                yield from self.items(inner)
            else:
                yield self.value(node, scope)

    def _made(self, kind: Callable[[list[Any]], Any], items: list[Any]) -> object:
        if any(item is UNKNOWN for item in items):
            return UNKNOWN
        if kind in {set, frozenset}:
            _check_spread(items)
        return kind(items)

    def _dict(self, node: ast.Dict, scope: Scope) -> object:
        if any(key is None for key in node.keys):
            raise NotFoldable("** in a dict")
        keys = [self.value(key, scope) for key in node.keys if key is not None]
        values = [self.value(value, scope) for value in node.values]
        if any(item is UNKNOWN for item in (*keys, *values)):
            return UNKNOWN
        return dict(zip(keys, values, strict=True))

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> object:
        operand = self.value(node.operand, scope)
        operate = _UNARY.get(type(node.op))
        if operate is None:
            raise NotFoldable(type(node.op).__name__)
        return UNKNOWN if operand is UNKNOWN else operate(_plain(operand))

    def _binary(self, node: ast.BinOp, scope: Scope) -> object:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        return _arithmetic(node.op, _plain(left), _plain(right))

    def _boolean(self, node: ast.BoolOp, scope: Scope) -> object:
        stops_at = isinstance(node.op, ast.Or)
        value: object = not stops_at
        for index, operand in enumerate(node.values):
            value = self.value(operand, scope)
            if value is UNKNOWN:
                self._no_calls(node.values[index + 1 :], scope)
                return UNKNOWN
            if bool(_plain(value)) is stops_at:
                return value
        return value

    def _compare(self, node: ast.Compare, scope: Scope) -> object:
        left = self.value(node.left, scope)
        result: object = True
        for index, (kind, operand) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.value(operand, scope)
            if left is UNKNOWN or right is UNKNOWN:
                _check_identity(kind, left, right)
                self._no_calls(node.comparators[index + 1 :], scope)
                return UNKNOWN
            result = _compared(kind, left, right)
            if not result:
                return result
            left = right
        return result

    def _conditional(self, node: ast.IfExp, scope: Scope) -> object:
        test = self.value(node.test, scope)
        if test is UNKNOWN:
            self._no_calls([node.body, node.orelse], scope)
            return UNKNOWN
        return self.value(node.body if _plain(test) else node.orelse, scope)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> object:
        subject = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            parts = [
                None if part is None else self.value(part, scope)
                for part in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            if subject is UNKNOWN or any(part is UNKNOWN for part in parts):
                return UNKNOWN
            key: object = slice(*parts)
        else:
            key = self.value(node.slice, scope)
        if subject is UNKNOWN or key is UNKNOWN:
            return UNKNOWN
        if isinstance(subject, type):
            raise NotFoldable("a subscripted type")
        container: Any = _plain(subject)
        return container[key]

    def _attribute(self, node: ast.Attribute, scope: Scope) -> object:
        if self._is_math(node, scope) and node.attr in _MATH_CONSTANTS:
            return _MATH_CONSTANTS[node.attr]
        raise NotFoldable("an attribute")

    def _is_math(self, node: ast.Attribute, scope: Scope) -> bool:
        return isinstance(node.value, ast.Name) and scope.get(node.value.id) is math

    def _comprehension(self, node: Any, scope: Scope, kind: Callable[[list[Any]], Any]) -> object:
        if isinstance(node, ast.GeneratorExp):
            self._no_calls([node.elt, *(c for g in node.generators for c in g.ifs)], scope)
        found: list[object] = []
        if not self._generate(node, 0, dict(scope), found):
            return UNKNOWN
        return self._made(kind, found)

    def _generate(self, node: Any, depth: int, scope: Scope, found: list[object]) -> bool:
        """Collects the elements; False where an unknown value decides which there are."""
        if depth == len(node.generators):
            found.append(self.value(node.elt, scope))
            return True
        generator: ast.comprehension = node.generators[depth]
        source = self.value(generator.iter, scope)
        if source is UNKNOWN:
            self._no_repeated_calls(node, scope)
            return False
        for item in self.items(source):
            bind(generator.target, item, scope)
            keep = True
            for condition in generator.ifs:
                value = self.value(condition, scope)
                if value is UNKNOWN:
                    self._no_repeated_calls(node, scope)
                    return False
                if not value:
                    keep = False
                    break
            if keep and not self._generate(node, depth + 1, scope, found):
                return False
        return True

    def _no_repeated_calls(self, node: Any, scope: Scope) -> None:
        """Refuses a comprehension that calls the candidate beyond its outermost source."""
        inner = [generator.iter for generator in node.generators[1:]]
        conditions = [test for generator in node.generators for test in generator.ifs]
        self._no_calls([node.elt, *inner, *conditions], scope)

    def _no_calls(self, nodes: Iterable[ast.expr], scope: Scope) -> None:
        """Refuses calls of the candidate in code that may not be reached."""
        for node in nodes:
            for part in ast.walk(node):
                if isinstance(part, ast.Name) and scope.get(part.id) is SUBJECT:
                    raise NotFoldable("a call that depends on another")

    def _called(self, node: ast.Call, scope: Scope) -> object:
        if any(keyword.arg is None for keyword in node.keywords):
            raise NotFoldable("** in a call")
        args = list(self._starred(node.args, scope))
        kwargs = {str(k.arg): self.value(k.value, scope) for k in node.keywords}
        function = node.func
        if isinstance(function, ast.Name) and scope.get(function.id) is SUBJECT:
            return self._call(node, args, kwargs)
        unknown = any(value is UNKNOWN for value in (*args, *kwargs.values()))
        if isinstance(function, ast.Name) and function.id not in scope:
            known = _BUILTINS.get(function.id)
            if known is not None:
                _check_signature(known, args, kwargs)
                return UNKNOWN if unknown else known(*args, **kwargs)
        elif isinstance(function, ast.Attribute) and self._is_math(function, scope):
            return UNKNOWN if unknown else _mathematics(function.attr, args, kwargs)
        raise NotFoldable("a call of something else")


def bind(target: ast.expr, value: object, scope: Scope) -> None:
    """Assigns to a name, or to a tuple of names."""
    if isinstance(target, ast.Name):
        if scope.get(target.id) is SUBJECT:
            raise NotFoldable("the function's name is bound anew")
        scope[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (list, tuple)):
        if len(value) != len(target.elts):
            raise ValueError("wrong number of values to unpack")
        for part, item in zip(target.elts, value, strict=True):
            bind(part, item, scope)
    else:
        raise NotFoldable("this target")


def _check_signature(known: Callable[..., object], args: list[Any], kwargs: dict[str, Any]) -> None:
    """Refuses arguments that our version of a built-in function does not take."""
    try:
        _signature(known).bind(*args, **kwargs)
    except TypeError:
        raise NotFoldable("a built-in function's further arguments") from None


@functools.cache
def _signature(known: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(known)


def _plain(value: object) -> Any:
    if value is None or type(value) in PLAIN or type(value) is range:
        return value
    raise NotFoldable(f"a value of type {type(value).__name__}")


def _check_identity(kind: ast.cmpop, left: object, right: object) -> None:
    """Refuses `is` on an unknown value, except with None, True or False."""
    known = right if left is UNKNOWN else left
    if isinstance(kind, (ast.Is, ast.IsNot)) and not (known is None or isinstance(known, bool)):
        raise NotFoldable("identity of values")


def _compared(kind: ast.cmpop, left: object, right: object) -> object:
    if isinstance(kind, (ast.Is, ast.IsNot)):
        same = (left is right) if left is None or right is None else None
        if isinstance(left, bool) and isinstance(right, bool):
            same = left is right
        elif isinstance(left, bool) or isinstance(right, bool):
            same = False
        if isinstance(left, type) and isinstance(right, type):
            same = left is right
        if same is None:
            raise NotFoldable("identity of values")
        return same is isinstance(kind, ast.Is)
    if isinstance(left, type) or isinstance(right, type):
        if isinstance(kind, (ast.Eq, ast.NotEq)) and isinstance(left, type):
            return (left is right) is isinstance(kind, ast.Eq)
        raise NotFoldable("a type in a comparison")
    return _COMPARE[type(kind)](_plain(left), _plain(right))


def _arithmetic(kind: ast.operator, left: Any, right: Any) -> object:
    if isinstance(left, (set, frozenset)) and isinstance(right, (set, frozenset)):
        combine = _SETS.get(type(kind))
        if combine is None:
            raise NotFoldable("this operator on sets")
        return combine(left, right)
    if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        _number(left)
        _number(right)
        if isinstance(kind, ast.Pow):
            return _power(left, right)
        compute = _ARITHMETIC.get(type(kind))
        if compute is None:
            raise NotFoldable("this operator on numbers")
        return compute(left, right)
    sequence, count = (right, left) if isinstance(left, int) else (left, right)
    if isinstance(kind, ast.Mult) and isinstance(sequence, (str, bytes, list, tuple)):
        if isinstance(count, int) and len(sequence) * max(count, 0) <= MAX_LENGTH:
            return sequence * count
        raise NotFoldable("a long repetition")
    if isinstance(kind, ast.Add) and isinstance(left, (str, bytes, list, tuple)):
        return left + right
    if isinstance(kind, ast.Mod) and isinstance(left, (str, bytes)):
        raise NotFoldable("formatting")
    raise TypeError(f"unsupported operands: {type(left).__name__} and {type(right).__name__}")


def _power(base: Any, exponent: Any) -> object:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and base.bit_length() * abs(exponent) > MAX_BITS:
        raise NotFoldable("a large power")
    return base**exponent


def _mathematics(name: str, args: list[Any], kwargs: dict[str, Any]) -> object:
    if name not in _MATH:
        raise NotFoldable(f"math.{name}")
    for value in (*args, *kwargs.values()):
        _number(value)
    computed: object = getattr(math, name)(*args, **kwargs)
    return computed


def _number(value: object) -> Any:
    if not isinstance(value, _NUMBERS):
        raise TypeError(f"must be a number, not {type(value).__name__}")
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise NotFoldable("a large number")
    return value


def _check_spread(items: Iterable[object]) -> None:
    try:
        check_spread(items)
    except CodecError as error:
        raise NotFoldable(str(error)) from error


def _collected(kind: Callable[..., Any]) -> Callable[..., object]:

    def make(*args: object) -> object:
        if len(args) > 1:
            raise TypeError(f"expected at most 1 argument, got {len(args)}")
        items = [] if not args else _listed(args[0])
        if kind in {set, frozenset}:
            _check_spread(items)
        return kind(items)

    return make


def _listed(value: object) -> list[Any]:
    if isinstance(value, (str, bytes, list, tuple, set, frozenset, dict, range)):
        if len(value) > MAX_LENGTH:
            raise NotFoldable("a long collection")
        return list(value)
    _plain(value)
    raise TypeError(f"{type(value).__name__!r} object is not iterable")


def _len(value: object) -> int:
    sized: Any = _plain(value)
    return len(sized)


def _round(number: Any, digits: Any = None) -> object:
    _number(number)
    if digits is not None and not (isinstance(digits, int) and abs(digits) <= 1_000):
        raise NotFoldable("rounding to many digits")
    rounded: object = round(number, digits)
    return rounded


def _sum(values: object, start: object = 0) -> object:
    return sum((_number(value) for value in _listed(values)), _number(start))


def _extreme(choose: Callable[..., Any]) -> Callable[..., object]:
    def extreme(*args: object) -> object:
        values = _listed(args[0]) if len(args) == 1 else list(args)
        found: object = choose([_plain(value) for value in values])
        return found

    return extreme


def _sorted(values: object, *, reverse: object = False) -> list[Any]:
    return sorted(map(_plain, _listed(values)), reverse=bool(reverse))


def _converted(kind: Callable[..., Any]) -> Callable[..., object]:

    def convert(*args: object) -> object:
        if len(args) != 1 or not isinstance(args[0], (bool, int, float, str, type(None))):
            raise NotFoldable("this conversion")
        if isinstance(args[0], int):
            _number(args[0])
        converted: object = kind(args[0])
        return converted

    return convert


def _isinstance(value: object, kinds: Any) -> bool:
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if not isinstance(kind, type):
            raise NotFoldable("isinstance of something else")
    _plain(value)
    return isinstance(value, kinds)


def _type(*args: object) -> object:
    if len(args) != 1:
        raise NotFoldable("a class made here")
    return type(_plain(args[0]))


def _range(*args: Any) -> object:
    made = range(*args)
    if len(made) > MAX_LENGTH:
        raise NotFoldable("a long range")
    return made


_BUILTINS: Final[dict[str, Callable[..., object]]] = {
    "abs": lambda value: abs(_number(value)),
    "len": _len,
    "round": _round,
    "sum": _sum,
    "min": _extreme(min),
    "max": _extreme(max),
    "sorted": _sorted,
    "all": lambda values: all(map(_plain, _listed(values))),
    "any": lambda values: any(map(_plain, _listed(values))),
    "isinstance": _isinstance,
    "type": _type,
    "range": _range,
    "enumerate": lambda values: list(enumerate(_listed(values))),
    "zip": lambda *values: list(zip(*map(_listed, values), strict=False)),
    "reversed": lambda values: _listed(values)[::-1],
    "print": lambda *_: None,
    **{kind.__name__: _collected(kind) for kind in (list, tuple, set, frozenset)},
    **{kind.__name__: _converted(kind) for kind in (int, float, str, bool)},
}
