"""From our tree of an answer to sympy's objects, with limits that hold before sympy computes.

For the slow tier (`symbolic`), in a worker. No text reaches sympy but the names of variables, which
are names to it and nothing else. A root of a negative number with an odd index is the real one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from assay.math import nodes

_BITS = 16_384
_FACTORIAL = 2_000
_TERMS = 500
BOUND = ("sum", "product", "integral", "limit")


class OutsideError(Exception):
    """The node is outside what the slow tier knows, or over its limits."""


def to_sympy(node: nodes.Node, names: dict[str, Any]) -> Any:
    """The sympy object of a tree; the names given stand for these objects.

    Raises:
        OutsideError: for a node that has none, or one over the limits.
    """
    import sympy  # noqa: PLC0415 - slow to load

    match node:
        case nodes.Number():
            value = _limited(sympy.Rational(node.value.numerator, node.value.denominator))
        case nodes.Based():
            value = _limited(sympy.Rational(node.value.numerator, node.value.denominator))
        case nodes.Symbol():
            value = names.get(node.name, sympy.Symbol(node.name, real=True))
        case nodes.Constant():
            value = _constant(node.name)
        case nodes.Add():
            value = sympy.Add(*(to_sympy(term, names) for term in node.terms))
        case nodes.Mul():
            value = _limited(sympy.Mul(*(to_sympy(factor, names) for factor in node.factors)))
        case nodes.Pow():
            value = _power(to_sympy(node.base, names), to_sympy(node.exponent, names))
        case nodes.Call():
            value = _call(node, names)
        case _:
            raise OutsideError(f"a {type(node).__name__.lower()} has no value")
    return value


def _constant(name: str) -> Any:
    import sympy  # noqa: PLC0415 - slow to load

    table = {
        "pi": sympy.pi,
        "e": sympy.E,
        "i": sympy.I,
        "infinity": sympy.oo,
        "degree": sympy.pi / 180,
        "percent": sympy.Rational(1, 100),
    }
    if name not in table:
        raise OutsideError(f"the constant {name} has no value")
    return table[name]


def _limited(value: Any) -> Any:
    """The value, unless it is a rational number of more digits than we compute with."""
    if value.is_Rational and (abs(value.p) * value.q).bit_length() > _BITS:
        raise OutsideError("too long a number")
    return value


def _power(base: Any, exponent: Any) -> Any:
    """A power; one of numbers only when its result is short."""
    import sympy  # noqa: PLC0415 - slow to load

    if exponent.is_Rational and abs(exponent) > 1:
        size = max(abs(exponent.p), exponent.q)
        # A power of a sum stays one; of a product, sympy works out those of its numbers.
        numbers = () if base.is_Add else base.atoms(sympy.Rational)
        bits = sum((abs(number.p) * number.q).bit_length() for number in numbers)
        if size * max(bits, 1) > _BITS:
            raise OutsideError("too great a power")
    elif exponent.is_number and base.is_number and abs(exponent.evalf(15)) > _BITS:
        raise OutsideError("too great a power")
    return sympy.Pow(base, exponent)


def _call(node: nodes.Call, names: dict[str, Any]) -> Any:
    """A function's value."""
    if node.name in BOUND:
        return _bound(node, names)
    arguments = [to_sympy(argument, names) for argument in node.arguments]
    if node.name in ("factorial", "double_factorial", "binomial") and any(
        argument.is_number and abs(argument.evalf(15)) > _FACTORIAL for argument in arguments
    ):
        raise OutsideError("too great a factorial")
    function = _functions().get(node.name)
    if function is None:
        raise OutsideError(f"the function {node.name[:20]} is not known")
    return function(*arguments)


def _functions() -> dict[str, Callable[..., Any]]:
    """What the calls of our trees mean."""
    import sympy  # noqa: PLC0415 - slow to load

    return {
        "root": _root,
        "abs": sympy.Abs,
        "log": lambda value, base=sympy.E: sympy.log(value) / sympy.log(base),
        "double_factorial": sympy.factorial2,
        "max": sympy.Max,
        "min": sympy.Min,
        "mod": sympy.Mod,
        "gcd": lambda *values: reduce(sympy.gcd, values),
        "lcm": lambda *values: reduce(sympy.lcm, values),
        "ceil": sympy.ceiling,
        **{name: getattr(sympy, name) for name in _SAME_NAME},
        **{f"arc{name}": getattr(sympy, f"a{name}") for name in _INVERSE},
        **{f"ar{name}": getattr(sympy, f"a{name}") for name in ("sinh", "cosh", "tanh")},
    }


_INVERSE = ("sin", "cos", "tan", "cot", "sec", "csc")
_SAME_NAME = (
    *_INVERSE,
    *("sinh", "cosh", "tanh", "coth", "sech", "csch"),
    *("exp", "floor", "factorial", "binomial", "re", "im", "arg", "conjugate"),
)


def _root(radicand: Any, index: Any) -> Any:
    """The principal root; of a negative number and an odd index the real one."""
    import sympy  # noqa: PLC0415 - slow to load

    if index.is_Integer and index % 2 == 1 and radicand.is_number and radicand.is_negative:
        return -sympy.Pow(-radicand, 1 / index)
    return sympy.Pow(radicand, 1 / index)


def _bound(node: nodes.Call, names: dict[str, Any]) -> Any:
    """A sum, product, integral or limit between ends that are written."""
    import sympy  # noqa: PLC0415 - slow to load

    body, variable, lower, upper = (*node.arguments, *(nodes.Text(""),) * 4)[:4]
    if node.name == "integral":
        body, variable = integrand(body, variable)
    if any(isinstance(part, nodes.Call) and part.name in BOUND for part in nodes.walk(body)):
        raise OutsideError(f"something bound inside a {node.name}")  # their costs would multiply
    if not isinstance(variable, nodes.Symbol) or isinstance(lower, nodes.Text):
        raise OutsideError(f"a {node.name} without its variable or ends")
    symbol = sympy.Dummy(variable.name, integer=node.name in ("sum", "product") or None)
    inner = to_sympy(body, {**names, variable.name: symbol})
    low = to_sympy(lower, names)
    if node.name == "limit":
        return sympy.limit(inner, symbol, low, "+-" if low.is_finite else "-")
    if isinstance(upper, nodes.Text):
        raise OutsideError(f"a {node.name} without its upper end")
    ends = (symbol, low, to_sympy(upper, names))
    if node.name == "integral":
        return sympy.Integral(inner, ends)
    return _terms(node.name, inner, ends)


def integrand(body: nodes.Node, variable: nodes.Node) -> tuple[nodes.Node, nodes.Node]:
    """An integrand without its `d x`, which was read as two factors, and the variable."""
    if isinstance(variable, nodes.Symbol) or not isinstance(body, nodes.Mul):
        return body, variable
    factors: tuple[nodes.Node, ...] = (nodes.ONE, nodes.ONE, *body.factors)
    if factors[-2] != nodes.Symbol("d"):
        return body, nodes.Text("")
    return nodes.Mul(factors[:-2]), factors[-1]


def _terms(name: str, inner: Any, ends: tuple[Any, Any, Any]) -> Any:
    """A sum or product: term by term, an infinite one in closed form."""
    import sympy  # noqa: PLC0415 - slow to load

    symbol, low, high = ends
    if low.is_Integer and high.is_Integer:
        if high - low > _TERMS:
            raise OutsideError("too many terms")
        values = [inner.subs(symbol, k) for k in range(int(low), int(high) + 1)]
        return sympy.Add(*values) if name == "sum" else sympy.Mul(*values)
    whole = (sympy.Sum if name == "sum" else sympy.Product)(inner, ends)
    return whole.doit() if high.is_infinite else whole  # at a point its ends will be numbers
