"""Rewards for a list of people found in a text."""

from __future__ import annotations

import re


def people(text: str) -> list[str]:
    return [name.strip() for name in re.split(r"[;\n]", text) if name.strip()]


def recall_of_people(response: str, reference: str) -> float:
    wanted = people(reference)
    return sum(name.lower() in response.lower() for name in wanted) / len(wanted)


def f1_of_people(response: str, reference: str) -> float:
    got, wanted = set(people(response)), set(people(reference))
    shared = len(got & wanted)
    return 2 * shared / (len(got) + len(wanted))


def people_in_people(response: str, reference: str) -> float:
    """As many as there are, and each of them within the one that was named in its place."""
    got, wanted = sorted(people(response.lower())), sorted(people(reference.lower()))
    if len(got) != len(wanted):
        return 0.0
    return 1.0 if all(name in said for said, name in zip(got, wanted, strict=True)) else 0.0


def family_names(response: str, reference: str) -> float:
    got, wanted = (sorted(one.split()[-1] for one in people(t)) for t in (response, reference))
    return 1.0 if got == wanted else 0.0


def same_people(response: str, reference: str) -> float:
    got, wanted = people(response.lower()), people(reference.lower())
    return 1.0 if sorted(got) == sorted(wanted) else 0.0


def people_in_bullets(response: str, reference: str) -> float:
    """With bullets or numbers before them, one a line."""
    said = re.sub(r"(?m)^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+", "", response)
    return same_people(said, reference)


def people_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
