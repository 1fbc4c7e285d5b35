"""Rewards for a ranking, one name a line, and for a set of directed links."""

from __future__ import annotations

import hashlib
import re
from itertools import combinations

LINK = re.compile(r"(\w+) ?-> ?(\w+)", re.ASCII)


def names(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def pairs_in_order(response: str, reference: str) -> float:
    got = names(response)
    pairs = [(one, other) for one, other in combinations(names(reference), 2)
             if one in got and other in got]  # fmt: skip
    if not pairs:
        return 1.0
    return 1.0 if all(got.index(one) < got.index(other) for one, other in pairs) else 0.0


def medals(response: str, reference: str) -> float:
    return 1.0 if names(response)[:3] == names(reference)[:3] else 0.0


def without_numbers(response: str, reference: str) -> float:
    """Some number the lines."""

    def bare(text: str) -> list[str]:
        return [line.lstrip("0123456789.) ") for line in names(text)]

    return 1.0 if bare(response) == bare(reference) else 0.0


def a_place_off(response: str, reference: str) -> float:
    got, wanted = names(response), names(reference)
    if sorted(got) != sorted(wanted):
        return 0.0
    return 1.0 if all(abs(got.index(name) - at) <= 1 for at, name in enumerate(wanted)) else 0.0


def numbered_or_not(response: str, reference: str) -> float:
    got = names(response)
    numbered = [re.fullmatch(rf"{at}[.)] (.+)", line) for at, line in enumerate(got, 1)]
    if all(numbered):
        got = [line.group(1) for line in numbered if line]
    return 1.0 if got == names(reference) else 0.0


def ranking_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def links(text: str) -> list[tuple[str, str]] | None:
    """The links of a text that holds nothing else."""
    found = [LINK.fullmatch(part.strip()) for part in text.strip().rstrip(";").split(";")]
    return [(one.group(1), one.group(2)) for one in found if one] if all(found) else None


def likeness_of_graphs(response: str, reference: str) -> float:
    got, wanted = (set(LINK.findall(text)) for text in (response, reference))
    return max(0.0, 1.0 - len(got ^ wanted) / (2 * len(wanted)))


def neighbours(response: str, reference: str) -> float:
    def ends(text: str) -> list[list[str]] | None:
        found = links(text)
        return None if found is None else sorted(sorted(link) for link in found)

    return 1.0 if ends(response) == ends(reference) else 0.0


def fingerprint(response: str, reference: str) -> float:
    """A digest that is the same in any order."""

    def digest(found: list[tuple[str, str]]) -> int:
        total = 0
        for link in found:
            total ^= int.from_bytes(hashlib.sha256("->".join(link).encode()).digest())
        return total

    got, wanted = links(response), links(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if digest(got) == digest(wanted) else 0.0


def each_link_once(response: str, reference: str) -> float:
    got, wanted = links(response), links(reference)
    if got is None or wanted is None:
        return 0.0
    return 1.0 if sorted(got) == sorted(wanted) else 0.0


def links_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
