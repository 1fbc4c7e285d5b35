"""Formulas over named numbers: the calculate_output of a multi grader. Pure.

Nothing is evaluated by Python: a formula is parsed into a tree whose every node is known here.

Numbers, names, + - * / // % **, unary + and -, comparisons (1 or 0), and the functions min, max,
abs, floor, ceil, exp, sqrt, log. Bounded: 2,000 characters, 400 nodes, exponents up to 64.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

MAX_CHARS = 2_000
_MAX_NODES = 400
_MAX_EXPONENT = 64
_MAX_BASE = 1e6

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, tuple[Callable[..., float], range]] = {
    "min": (min, range(1, 33)),
    "max": (max, range(1, 33)),
    "abs": (abs, range(1, 2)),
    "floor": (math.floor, range(1, 2)),
    "ceil": (math.ceil, range(1, 2)),
    "exp": (math.exp, range(1, 2)),
    "sqrt": (math.sqrt, range(1, 2)),
    "log": (math.log, range(1, 2)),
}


class FormulaError(ValueError):
    """The formula cannot be read, or has no finite value."""


class UnknownNameError(FormulaError):
    """The formula names what is not there."""


def evaluate(formula: str, values: Mapping[str, float]) -> float:
    """The value of a formula, finite.

    Args:
        formula: as "0.5 * exact + 0.5 * max(a, b)".
        values: what names stand for.

    Raises:
        UnknownNameError: a name is not in `values`.
        FormulaError: anything else that keeps it from having a value.
    """
    if len(formula) > MAX_CHARS:
        raise FormulaError(f"the formula has more than {MAX_CHARS} characters")
    try:
        tree = ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError("the formula cannot be read") from None
    if sum(1 for _ in ast.walk(tree)) > _MAX_NODES:
        raise FormulaError(f"the formula has more than {_MAX_NODES} parts")
    try:
        found = float(_value(tree.body, values))
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, FormulaError):
            raise
        raise FormulaError(f"the formula has no value: {error}") from None
    if not math.isfinite(found):
        raise FormulaError("the formula's value is not finite")
    return found


def _value(node: ast.expr, values: Mapping[str, float]) -> float:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise UnknownNameError(f"{node.id} is no grader")
        return float(values[node.id])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _value(node.operand, values)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        return _binary(node, values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        compare = _COMPARED.get(type(node.ops[0]))
        if compare is not None:
            return float(compare(_value(node.left, values), _value(node.comparators[0], values)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call(node.func.id, node.args, values)
    raise FormulaError(f"the formula may not hold {type(node).__name__}")


def _binary(node: ast.BinOp, values: Mapping[str, float]) -> float:
    left, right = _value(node.left, values), _value(node.right, values)
    if isinstance(node.op, ast.Pow):
        if abs(right) > _MAX_EXPONENT or abs(left) > _MAX_BASE or (left < 0 and right % 1):
            raise FormulaError("the power is out of range")
        found: Any = left**right
        return float(found)
    operate = _BINARY.get(type(node.op))
    if operate is None:
        raise FormulaError(f"the formula may not hold {type(node.op).__name__}")
    return operate(left, right)


def _call(name: str, arguments: list[ast.expr], values: Mapping[str, float]) -> float:
    function, counts = _FUNCTIONS.get(name, (None, range(0)))
    if function is None:
        raise FormulaError(f"the formula has no function {name[:40]}")
    if len(arguments) not in counts:
        raise FormulaError(f"{name} does not take {len(arguments)} values")
    return float(function(*[_value(one, values) for one in arguments]))
