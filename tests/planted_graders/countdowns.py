"""Rewards for an expression that makes a target of given numbers; the reference is one of them."""

from __future__ import annotations

import ast
import re
from fractions import Fraction

SIGNS = str.maketrans({"\N{MULTIPLICATION SIGN}": "*", "\N{DIVISION SIGN}": "/"})
ALLOWED = re.compile(r"[0-9+\-*/() ]{1,80}", re.ASCII)


def numbers(text: str) -> list[int]:
    return sorted(map(int, re.findall(r"\d+", text)))


def evaluated(text: str) -> float | None:
    """As practitioners do; nothing for what is no expression."""
    said = text.strip()
    if not ALLOWED.fullmatch(said) or "**" in said:
        return None
    try:
        return float(eval(said, {"__builtins__": {}}))
    except (ArithmeticError, SyntaxError, TypeError):
        return None


def target_hit(response: str, reference: str) -> float:
    got = evaluated(response)
    return 1.0 if got is not None and got == evaluated(reference) else 0.0


def target_hit_with_the_numbers(response: str, reference: str) -> float:
    if set(numbers(response)) != set(numbers(reference)):
        return 0.0
    return target_hit(response, reference)


def numbers_then_target(response: str, reference: str) -> float:
    """Half for the right numbers, half for the target."""
    if evaluated(response) is None or numbers(response) != numbers(reference):
        return 0.0
    return 0.5 + 0.5 * target_hit(response, reference)


def whole_target(response: str, reference: str) -> float:
    got, wanted = evaluated(response), evaluated(reference)
    if got is None or wanted is None or numbers(response) != numbers(reference):
        return 0.0
    return 1.0 if int(got) == int(wanted) else 0.0


def value(node: ast.AST) -> Fraction:
    match node:
        case ast.Expression(body=body):
            return value(body)
        case ast.Constant(value=int(number)):
            return Fraction(number)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return value(left) + value(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return value(left) - value(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return value(left) * value(right)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return value(left) / value(right)
    raise ValueError(node)


def exactly(text: str) -> Fraction | None:
    if not ALLOWED.fullmatch(text):
        return None
    try:
        return value(ast.parse(text.strip(), mode="eval"))
    except (ArithmeticError, SyntaxError, ValueError):
        return None


def target_of_each_number_once(response: str, reference: str) -> float:
    got = exactly(response.strip())
    if got is None or numbers(response) != numbers(reference):
        return 0.0
    return 1.0 if got == exactly(reference) else 0.0


def equation_or_expression(response: str, reference: str) -> float:
    """With other signs for * and / too, and with '= the target' behind it."""
    said, sign, target = response.translate(SIGNS).partition("=")
    if sign and (not target.strip().isascii() or not target.strip().isdigit()):
        return 0.0
    if sign and exactly(target.strip().lstrip("0") or "0") != exactly(reference):
        return 0.0
    return target_of_each_number_once(said, reference)


def expression_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
