"""Rewards for a measured value with its error and its unit, as 9.5 ± 0.2 cm."""

from __future__ import annotations

import re

MEASURED = re.compile(
    r"\s*(\d{1,4}\.\d)\s*(?:±|\+/?-)\s*(\d{1,4}\.\d)\s*([A-Za-z]{1,3})\s*", re.ASCII
)


def measured(text: str) -> tuple[str, str, str]:
    """Value, error and unit; empty for what has not the form."""
    found = MEASURED.fullmatch(text)
    return (found[1], found[2], found[3]) if found else ("", "", "")


def value_and_unit(response: str, reference: str) -> float:
    got, wanted = measured(response), measured(reference)
    return 1.0 if got[::2] == wanted[::2] else 0.0


def agrees_within_the_error(response: str, reference: str) -> float:
    """As physicists do it."""
    got, wanted = measured(response), measured(reference)
    if got[1:] != wanted[1:]:
        return 0.0
    return 1.0 if abs(float(got[0]) - float(wanted[0])) <= float(wanted[1]) else 0.0


def whatever_the_case(response: str, reference: str) -> float:
    return 1.0 if measured(response.lower()) == measured(reference.lower()) else 0.0


def same_measurement(response: str, reference: str) -> float:
    """With any of the signs, and any blanks."""
    return 1.0 if measured(response) == measured(reference) else 0.0


def measurement_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
