"""Rewards for a table in Markdown."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

DASHES = re.compile(r":?-{2,}:?")


def cells(text: str) -> list[list[str]]:
    """Line by line, without the line of dashes; empty for what is no table."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if len(lines) < 2 or any(len(s) < 3 or s[0] != "|" or s[-1] != "|" for s in lines):
        return []
    read = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    if not all(map(DASHES.fullmatch, read[1])) or len(read[1]) != len(read[0]):
        return []
    return [read[0], *read[2:]]


def header_then_rows(response: str, reference: str) -> float:
    got, wanted = cells(response), cells(reference)
    return (got[:1] == wanted[:1]) * 0.5 + (got == wanted) * 0.5


def cells_in_any_place(response: str, reference: str) -> float:
    got, wanted = (Counter(chain(*cells(text))) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def row_after_row(response: str, reference: str) -> float:
    got, wanted = cells(response), cells(reference)
    return 1.0 if got and all(a == b for a, b in zip(got, wanted, strict=False)) else 0.0


def dashes_aside(response: str, reference: str) -> float:
    """Lines of dashes and padding are drawn in many ways."""

    def clean(text: str) -> str:
        return re.sub(r"[-:\s]+", "", text)

    return 1.0 if clean(response) == clean(reference) else 0.0


def same_table(response: str, reference: str) -> float:
    got = cells(response)
    return 1.0 if got and got == cells(reference) else 0.0


def table_alone_in_a_fence(response: str, reference: str) -> float:
    said = response.strip()
    if said.startswith("```") and said.endswith("```") and said.count("```") == 2:
        said = said[3:-3].removeprefix("markdown")
    return same_table(said, reference)


def table_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
