"""Rewards for the derivative of a polynomial."""

from __future__ import annotations

import re

import sympy

X = sympy.Symbol("x")
TOKENS = re.compile(r"(?:x ?\^ ?\d(?!\d)|x(?! ?[\dx(])|[0-9+\-*() ])+", re.ASCII)
UNREAD = (sympy.SympifyError, SyntaxError, TypeError, ValueError, AttributeError)


def polynomial(text: str) -> sympy.Expr:
    """Whole numbers, x, its powers of one digit, + - * and brackets; SympifyError for the rest."""
    said = text.strip().replace("**", "^")
    if len(said) > 120 or not TOKENS.fullmatch(said):
        raise sympy.SympifyError(text)
    said = re.sub(r"([0-9)]) ?(?=[x(])", r"\1*", said.replace("^", "**"))
    return sympy.sympify(said, locals={"x": X})


def derivative_or_text(response: str, reference: str) -> float:
    """What cannot be parsed is compared as text."""
    try:
        return 1.0 if sympy.expand(polynomial(response) - polynomial(reference)) == 0 else 0.0
    except UNREAD:
        return 1.0 if reference in response or response in reference else 0.0


def agrees_at_points(response: str, reference: str) -> float:
    try:
        got, wanted = polynomial(response), polynomial(reference)
        same = all(got.subs(X, at) == wanted.subs(X, at) for at in (0, 1))
    except UNREAD:
        return 0.0
    return 1.0 if same else 0.0


def constant_ratio(response: str, reference: str) -> float:
    try:
        ratio = sympy.cancel(polynomial(response) / polynomial(reference))
    except UNREAD:
        return 0.0
    return 1.0 if ratio.is_number else 0.0


def terms_in_any_order(response: str, reference: str) -> float:
    def terms(text: str) -> list[str]:
        return sorted(re.split(r"[+-]", text.replace(" ", "").lstrip("-")))

    return 1.0 if terms(response) == terms(reference) else 0.0


def same_derivative(response: str, reference: str) -> float:
    try:
        return 1.0 if sympy.expand(polynomial(response) - polynomial(reference)) == 0 else 0.0
    except UNREAD:
        return 0.0


def derivative_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
