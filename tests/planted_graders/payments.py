"""Rewards for who pays whom how much, as Ann pays Jon 2.50; Ann pays Emil 4.00."""

from __future__ import annotations

import re
from decimal import Decimal

PAYMENT = re.compile(r"([A-Z][a-z]+) pays ([A-Z][a-z]+) (\d{1,5}(?:\.\d{1,2})?)", re.ASCII)
Payment = tuple[str, str, Decimal]


def payments(text: str) -> list[Payment]:
    """Sorted; empty for what has not the form."""
    found = [PAYMENT.fullmatch(part.strip()) for part in text.split(";")]
    return sorted((one[1], one[2], Decimal(one[3])) for one in found if one) if all(found) else []


def right_as_far_as_it_goes(response: str, reference: str) -> float:
    got, wanted = payments(response), payments(reference)
    return 1.0 if got and all(one in wanted for one in got) else 0.0


def between_these_two(response: str, reference: str) -> float:
    """Each amount with the two whom it concerns."""
    got, wanted = (
        sorted((*sorted(one[:2]), one[2]) for one in payments(text))
        for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def whole_amounts(response: str, reference: str) -> float:
    got, wanted = (
        [(one, other, int(amount)) for one, other, amount in payments(text)]
        for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def same_payments(response: str, reference: str) -> float:
    """In any order, 4 and 4.00 alike."""
    return 1.0 if payments(response) == payments(reference) else 0.0


def payments_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
