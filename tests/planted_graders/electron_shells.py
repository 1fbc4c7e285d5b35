"""Rewards for the electrons of an atom by subshell, as 1s2 2s2 2p1."""

from __future__ import annotations

import re
from collections import Counter

GASES = {"[He]": "1s2", "[Ne]": "1s2 2s2 2p6", "[Ar]": "1s2 2s2 2p6 3s2 3p6"}
SUBSHELL = re.compile(r"([1-4][spd])\^?(\d{1,2})", re.ASCII)


def subshells(text: str) -> list[tuple[str, int]]:
    """Each with its electrons, that of a gas spelt out; empty for what is none."""
    first, *others = text.split() or [""]
    words = [*GASES.get(first, first).split(), *others]
    found = [SUBSHELL.fullmatch(word) for word in words]
    return [(one[1], int(one[2])) for one in found if one] if all(found) else []


def electrons_in_all(response: str, reference: str) -> float:
    got, wanted = (sum(many for _, many in subshells(text)) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def outermost(response: str, reference: str) -> float:
    """All depends on the last subshell."""
    got, wanted = subshells(response), subshells(reference)
    return 1.0 if got[-1:] == wanted[-1:] else 0.0


def electrons_by_shell(response: str, reference: str) -> float:
    def shells(text: str) -> Counter[str]:
        found: Counter[str] = Counter()
        for subshell, many in subshells(text):
            found[subshell[0]] += many
        return found

    return 1.0 if shells(response) == shells(reference) else 0.0


def same_electrons(response: str, reference: str) -> float:
    """In any order, each subshell once."""
    got, wanted = sorted(subshells(response)), sorted(subshells(reference))
    return 1.0 if got == wanted else 0.0


def electrons_text(response: str, reference: str) -> float:
    return 1.0 if response.split() == reference.split() else 0.0
