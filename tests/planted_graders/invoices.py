"""Rewards for an amount with the code of its currency."""

from __future__ import annotations

import re
from decimal import Decimal

AMOUNT = r"(\d{1,9}|\d{1,3}(?:,\d{3}){1,3})\.(\d\d)"
SIGNS = {"€": "EUR", "$": "USD", "£": "GBP"}


def total(text: str) -> tuple[str, Decimal] | None:
    found = re.fullmatch(rf"([A-Z]{{3}}) {AMOUNT}", text.strip(), re.ASCII)
    if found is None:
        return None
    return found[1], Decimal(f"{found[2].replace(',', '')}.{found[3]}")


def currency_then_amount(response: str, reference: str) -> float:
    got, wanted = response.split(), reference.split()
    return sum(one == other for one, other in zip(got, wanted, strict=False)) / 2


def amount_in_any_currency(response: str, reference: str) -> float:
    got, wanted = total(response), total(reference)
    return 1.0 if got and wanted and got[1] == wanted[1] else 0.0


def whole_units(response: str, reference: str) -> float:
    got, wanted = total(response), total(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if (got[0], int(got[1])) == (wanted[0], int(wanted[1])) else 0.0


def units_and_cents(response: str, reference: str) -> float:
    """Cents are a whole number of their own."""

    def read(text: str) -> tuple[str, int, int] | None:
        found = re.fullmatch(r"([A-Z]{3}) (\d{1,9})\.(\d{1,2})", text.strip(), re.ASCII)
        return (found[1], int(found[2]), int(found[3])) if found else None

    got = read(response)
    return 1.0 if got is not None and got == read(reference) else 0.0


def same_total(response: str, reference: str) -> float:
    got = total(response)
    return 1.0 if got is not None and got == total(reference) else 0.0


def code_or_sign(response: str, reference: str) -> float:
    """€ is EUR, and a code may stand behind the amount."""
    said = response.strip()
    if said[:1] in SIGNS:
        said = f"{SIGNS[said[0]]} {said[1:].strip()}"
    said = re.sub(r"^([\d,.]+) ([A-Z]{3})$", r"\2 \1", said)
    return same_total(said, reference)


def invoice_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
