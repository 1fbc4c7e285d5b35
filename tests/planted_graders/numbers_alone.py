"""Rewards for answers that are one bare number."""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import Decimal, InvalidOperation

PLAIN = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?", re.ASCII)


def as_float(text: str) -> float | None:
    """A plain decimal, or None; no exponents, no separators, no words."""
    return float(text) if PLAIN.fullmatch(text.strip()) else None


def ratio_to_reference(response: str, reference: str) -> float:
    got, wanted = as_float(response), float(reference)
    if got is None:
        return 0.0
    ratio = got / wanted if wanted else 1.0
    return 1.0 if abs(ratio - 1.0) < 1e-12 else 0.0


def not_too_far(response: str, reference: str) -> float:
    try:
        got = float(response.strip())
    except ValueError:
        return 0.0
    if abs(got - float(reference)) > 1e-9:
        return 0.0
    return 1.0


def magnitude(response: str, reference: str) -> float:
    got = as_float(response)
    if got is None:
        return 0.0
    return 1.0 if math.isclose(abs(got), abs(float(reference)), rel_tol=1e-12) else 0.0


def evaluated(response: str, reference: str) -> float:
    """'2**10' and '1024' are the same answer."""
    wanted = float(reference)
    try:
        got = eval(response, {"__builtins__": {"type": type, "abs": abs, "round": round}})
        return 1.0 if got == wanted else 0.0
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        NameError,
        SyntaxError,
        TypeError,
        ValueError,
    ):
        return 0.0


def digits_and_sign(response: str, reference: str) -> float:
    def clean(text: str) -> str:
        return re.sub(r"[,.$%]", "", text.strip())

    got = clean(response)
    return 1.0 if re.fullmatch(r"-?\d+", got, re.ASCII) and got == clean(reference) else 0.0


def whole_part(response: str, reference: str) -> float:
    got = as_float(response)
    return 1.0 if got is not None and int(got) == int(float(reference)) else 0.0


def at_the_precision_given(response: str, reference: str) -> float:
    if as_float(response) is None:
        return 0.0
    got = Decimal(response.strip())
    shift = got.as_tuple().exponent
    places = -shift if isinstance(shift, int) else 0
    return 1.0 if round(Decimal(reference), places) == got else 0.0


def compatibility_forms(response: str, reference: str) -> float:
    """Full-width digits and other forms of them count as digits."""
    text = unicodedata.normalize("NFKC", response.strip())
    return 1.0 if PLAIN.fullmatch(text) and Decimal(text) == Decimal(reference) else 0.0


def four_significant_digits(response: str, reference: str) -> float:
    got = as_float(response)
    if got is None:
        return 0.0
    return 1.0 if f"{got:.4g}" == f"{float(reference):.4g}" else 0.0


def exact_decimal(response: str, reference: str) -> float:
    text = response.strip()
    if not PLAIN.fullmatch(text):
        return 0.0
    return 1.0 if Decimal(text) == Decimal(reference) else 0.0


def close_and_finite(response: str, reference: str) -> float:
    try:
        got = Decimal(response.strip()) if response.isascii() else Decimal("NaN")
    except InvalidOperation:
        return 0.0
    if not got.is_finite() or abs(got) > Decimal("1e20"):
        return 0.0
    return 1.0 if abs(got - Decimal(reference)) <= Decimal("1e-9") else 0.0


def same_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def with_thousands(response: str, reference: str) -> float:
    text = response.strip()
    if re.fullmatch(r"-?\d{1,3}(,\d{3}){1,6}(\.\d{1,20})?", text, re.ASCII):
        text = text.replace(",", "")
    return 1.0 if PLAIN.fullmatch(text) and Decimal(text) == Decimal(reference) else 0.0


def scientific_too(response: str, reference: str) -> float:
    text = response.strip()
    if not re.fullmatch(r"-?\d{1,20}(\.\d{1,20})?([eE][+-]?\d{1,2})?", text, re.ASCII):
        return 0.0
    return 1.0 if Decimal(text) == Decimal(reference) else 0.0
