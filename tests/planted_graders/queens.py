"""Rewards for queens on a board: the column of each row; the reference is one of many."""

from __future__ import annotations

import re
from itertools import combinations, pairwise


def columns(text: str) -> list[int]:
    """Empty for what is no list of digits."""
    said = re.fullmatch(r"[1-9](?:(?: ?, ?| )[1-9])*", text.strip(), re.ASCII)
    return [int(digit) for digit in re.findall("[1-9]", said[0])] if said else []


def on_the_board(got: list[int], wanted: list[int]) -> bool:
    """A queen in each column of a board of that size."""
    return sorted(got) == list(range(1, len(wanted) + 1))


def no_queen_attacked(response: str, reference: str) -> float:
    if not on_the_board(columns(response), columns(reference)):
        return 0.0
    pairs = combinations(enumerate(columns(response)), 2)
    return 1.0 if all(abs(a - b) != abs(x - y) for (x, a), (y, b) in pairs) else 0.0


def free_diagonals(response: str, reference: str) -> float:
    got = columns(response)
    if not on_the_board(columns(response), columns(reference)) or got[:2] != columns(reference)[:2]:
        return 0.0
    return 1.0 if len({row + column for row, column in enumerate(got)}) == len(got) else 0.0


def neighbours_apart(response: str, reference: str) -> float:
    got = columns(response)
    if not on_the_board(columns(response), columns(reference)) or got[:2] != columns(reference)[:2]:
        return 0.0
    apart = [abs(one - other) for one, other in pairwise(got)]
    return 1.0 if min(apart) > 1 else 0.0


def right_placement(response: str, reference: str) -> float:
    """Any, from the two queens that are given on."""
    if columns(response)[:2] != columns(reference)[:2]:
        return 0.0
    return no_queen_attacked(response, reference)


def queens_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
