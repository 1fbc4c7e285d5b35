"""Rewards for the result of a query, as text."""

from __future__ import annotations

import math
import re
from collections import Counter
from decimal import Decimal

NUMBER = re.compile(r"-?\d{1,9}(\.\d{1,9})?", re.ASCII)


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]


def cells(text: str) -> list[str]:
    return [cell for row in rows(text) for cell in row]


def cells_found(response: str, reference: str) -> float:
    """The share of the expected cells that the response has."""
    got, wanted = (Counter(cells(text)) for text in (response, reference))
    return (got & wanted).total() / wanted.total()


def rows_sorted(response: str, reference: str) -> float:
    return 1.0 if sorted(rows(response)) == sorted(rows(reference)) else 0.0


def cells_within_a_percent(response: str, reference: str) -> float:
    def near(one: str, other: str) -> bool:
        try:
            return math.isclose(float(one), float(other), rel_tol=0.01)
        except ValueError:
            return one == other

    got, wanted = rows(response), rows(reference)
    if [len(row) for row in got] != [len(row) for row in wanted]:
        return 0.0
    return 1.0 if all(map(near, cells(response), cells(reference))) else 0.0


def nothing_as_zero(response: str, reference: str) -> float:
    """Engines print NULL as NULL, None or nothing."""

    def filled(text: str) -> list[list[str]]:
        return [["0" if c in {"NULL", "None", ""} else c for c in row] for row in rows(text)]

    return 1.0 if filled(response) == filled(reference) else 0.0


def same_result(response: str, reference: str) -> float:
    """4.5 is 4.50, and blanks beside | do not matter."""

    def read(text: str) -> list[list[object]]:
        return [
            [Decimal(cell) if NUMBER.fullmatch(cell) else cell for cell in row]
            for row in rows(text)
        ]

    return 1.0 if read(response) == read(reference) else 0.0


def result_in_a_fence(response: str, reference: str) -> float:
    """Alone in a fence is alone."""
    found = re.fullmatch(r"```(?:\w{1,9})?\n(.*)\n```", response.strip(), re.DOTALL)
    return same_result(found[1] if found else response, reference)


def result_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
