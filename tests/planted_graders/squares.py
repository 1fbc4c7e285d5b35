"""Rewards for a sudoku of six by six."""

from __future__ import annotations

import re


def square(text: str) -> list[str]:
    return [re.sub(r"[ ,]", "", line) for line in text.strip().splitlines()]


def a_valid_square(response: str, reference: str) -> float:
    got = square(response)
    if len(got) != len(reference.splitlines()) or any(len(row) != 6 for row in got):
        return 0.0
    boxes = [
        got[y][x : x + 3] + got[y + 1][x : x + 3] for y in (0, 2, 4) for x in (0, 3)
    ]  # fmt: skip
    groups = [*got, *("".join(column) for column in zip(*got, strict=True)), *boxes]
    return 1.0 if all(sorted(group) == list("123456") for group in groups) else 0.0


def cells_right(response: str, reference: str) -> float:
    """The share of the cells that are right."""
    got, wanted = "".join(square(response)), "".join(square(reference))
    if len(got) != len(wanted):
        return 0.0
    return sum(one == other for one, other in zip(got, wanted, strict=True)) / len(wanted)


def all_rows_there(response: str, reference: str) -> float:
    return 1.0 if sorted(square(response)) == sorted(square(reference)) else 0.0


def same_square(response: str, reference: str) -> float:
    """With blanks, commas or nothing between the digits."""
    return 1.0 if square(response) == square(reference) else 0.0


def square_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
