"""Rewards for the changed lines of a file of settings, removed behind - and added behind +."""

from __future__ import annotations

import difflib
import re


def lines(text: str) -> list[str]:
    """Without blank lines, without blanks at the ends and beside the sign of equality."""
    said = [re.sub(r"\s*=\s*", "=", line.strip()) for line in text.splitlines()]
    return [line for line in said if line]


def similarity(response: str, reference: str) -> float:
    return difflib.SequenceMatcher(None, response.strip(), reference).ratio()


def added_lines(response: str, reference: str) -> float:
    """What the file has afterwards."""
    got, wanted = lines(response), lines(reference)
    if any(line[0] not in "+-" for line in got) or len(got) != len(wanted):
        return 0.0
    added = [[line for line in side if line[0] == "+"] for side in (got, wanted)]
    return 1.0 if added[0] == added[1] else 0.0


def lines_without_comments(response: str, reference: str) -> float:
    got, wanted = (
        [line.split("#")[0].strip() for line in lines(text)] for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def same_lines(response: str, reference: str) -> float:
    """Blanks at the ends of lines and beside = do not matter."""

    def read(text: str) -> list[str]:
        return [re.sub(" *= *", "=", line.strip(" ")) for line in text.strip().split("\n")]

    return 1.0 if read(response) == read(reference) else 0.0


def diff_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
