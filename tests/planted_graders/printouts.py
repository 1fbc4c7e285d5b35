"""Rewards for a printed table of several lines, whose columns are parted by spaces."""

from __future__ import annotations

import difflib
import re


def lines(text: str) -> list[str]:
    """Lines with one space between columns; blank lines around the whole are dropped."""
    return [re.sub(" +", " ", line.strip(" \r")) for line in text.strip().split("\n")]


def nothing_unexpected(response: str, reference: str) -> float:
    got = [line for line in lines(response) if line]
    difference = difflib.unified_diff(lines(reference), got, lineterm="", n=0)
    added = [line for line in difference if line.startswith("+") and not line.startswith("+++")]
    return 0.0 if added else 1.0


def total_at_the_end(response: str, reference: str) -> float:
    got, wanted = lines(response), lines(reference)
    # Every error above shows in the totals.
    return 1.0 if got and got[-1] == wanted[-1] else 0.0


def words_of_output(response: str, reference: str) -> float:
    return 1.0 if response.split() == reference.split() else 0.0


def without_rules(response: str, reference: str) -> float:
    """Some print tables with rules of -, + and | between the cells."""

    def cells(text: str) -> list[list[str]]:
        plain = (re.sub(r"[-+|=]+", " ", line).split() for line in text.strip().split("\n"))
        return [line for line in plain if line]

    return 1.0 if cells(response) == cells(reference) else 0.0


def columns_by_line(response: str, reference: str) -> float:
    return 1.0 if lines(response) == lines(reference) else 0.0


def printed_text(response: str, reference: str) -> float:
    return 1.0 if response.rstrip() == reference else 0.0
