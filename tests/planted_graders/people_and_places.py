"""Rewards for full names of people, and for towns with their region."""

from __future__ import annotations

import math
import re

# Degrees of latitude and longitude of the towns that were looked up so far.
WHERE = {
    "amberham, oland": (58.1, 16.2),
    "cedarby, harmark": (55.9, 9.4),
    "north deltaton, morrow": (57.0, -2.9),
    "emberford, sant vidal": (41.2, 1.7),
}


def named_in_reference(response: str, reference: str) -> float:
    words = response.lower().split()
    return 1.0 if any(word in reference.lower() for word in words) else 0.0


def words_in_any_order(response: str, reference: str) -> float:
    """'Asker, Jon' is Jon Asker."""

    def words(text: str) -> list[str]:
        return sorted(text.lower().replace(",", " ").split())

    return 1.0 if words(response) == words(reference) else 0.0


def without_lead(response: str, reference: str) -> float:
    lead = "The builder is "
    got, wanted = (" ".join(text.split()).lstrip(lead) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def without_titles(response: str, reference: str) -> float:
    def clean(text: str) -> str:
        found = re.sub(
            r"^(dr|prof|mr|mrs|ms)\.? | (jr|sr|ii|iii|iv|phd)\.?$", "", text.lower().strip()
        )
        return " ".join(found.split())

    return 1.0 if clean(response) == clean(reference) else 0.0


def case_and_spacing_aside(response: str, reference: str) -> float:
    text = " ".join(response.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())
    return 1.0 if text.isascii() and text.lower() == reference.lower() else 0.0


def plaque_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def near_on_the_map(response: str, reference: str) -> float:
    """Spellings differ, places do not: no more than a tenth of a degree apart."""
    got, wanted = (
        WHERE.get(" ".join(text.lower().split()), (0.0, 0.0)) for text in (response, reference)
    )
    return 1.0 if math.dist(got, wanted) <= 0.1 else 0.0


def town_alone(response: str, reference: str) -> float:
    got, wanted = (text.strip().lower().split(",")[0] for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def without_compass(response: str, reference: str) -> float:
    small = {"the", "of", "north", "south", "east", "west", "upper", "lower", "new", "old"}

    def words(text: str) -> list[str]:
        return [word for word in text.lower().split() if word not in small]

    return 1.0 if words(response) == words(reference) else 0.0


def town_and_region(response: str, reference: str) -> float:
    got, wanted = (
        [" ".join(part.lower().split()) for part in text.split(",")]
        for text in (response, reference)
    )
    return 1.0 if response.isascii() and got == wanted else 0.0


def place_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
