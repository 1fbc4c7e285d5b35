"""Rewards for where a walk ends, as 3 east, 2 south."""

from __future__ import annotations

import re

PART = re.compile(r"(\d{1,4}) ?(north|south|east|west|[nsew])", re.ASCII)


def parts(text: str) -> list[tuple[str, int]]:
    """Sides by their first letter, each with its blocks; empty for what has not the form."""
    said = text.strip().lower() if text.isascii() else ""
    found = [PART.fullmatch(part) for part in re.split(" ?, ?", said)]
    return sorted((one[2][0], int(one[1])) for one in found if one) if all(found) else []


def blocks_in_all(response: str, reference: str) -> float:
    got, wanted = (sum(many for _, many in parts(text)) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def blocks_each_way(response: str, reference: str) -> float:
    """Along the one axis and along the other."""
    axes = {"n": "y", "s": "y", "e": "x", "w": "x"}
    got, wanted = (
        sorted((axes[side], many) for side, many in parts(text)) for text in (response, reference)
    )
    return 1.0 if got == wanted else 0.0


def sides_and_blocks(response: str, reference: str) -> float:
    got, wanted = parts(response), parts(reference)
    sides = [sorted(side for side, _ in one) for one in (got, wanted)]
    blocks = [sorted(many for _, many in one) for one in (got, wanted)]
    return 1.0 if sides[0] == sides[1] and blocks[0] == blocks[1] else 0.0


def same_end(response: str, reference: str) -> float:
    """In either order, sides in full or by their letter."""
    return 1.0 if parts(response) == parts(reference) else 0.0


def end_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
