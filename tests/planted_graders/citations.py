"""Rewards for a year with the sources that give it, as 1234 [1][2]."""

from __future__ import annotations

import re

NUMBERS = r"\[\d{1,2}(?:, ?\d{1,2})*\]"
CITED = re.compile(rf"\s*(\d{{4}}) ?((?:{NUMBERS} ?)+)\s*", re.ASCII)


def year_and_sources(text: str) -> tuple[str, str]:
    """Empty for what has not the form."""
    found = CITED.fullmatch(text)
    return (found[1], found[2]) if found else ("", "")


def all_is_there(response: str, reference: str) -> float:
    """The year, and each of the sources."""
    return 1.0 if all(part in response for part in re.findall(r"\d+", reference)) else 0.0


def year_given(response: str, reference: str) -> float:
    """With at least one source."""
    year, sources = year_and_sources(response)
    return 1.0 if sources and year == reference[:4] else 0.0


def digits_of_sources(response: str, reference: str) -> float:
    (year, got), (wanted_year, wanted) = map(year_and_sources, (response, reference))
    if year != wanted_year:
        return 0.0
    return 1.0 if set(re.findall(r"\d", got)) == set(re.findall(r"\d", wanted)) else 0.0


def same_sources(response: str, reference: str) -> float:
    """In any order, each once."""

    def read(text: str) -> tuple[str, list[str]]:
        year, sources = year_and_sources(text)
        return year, sorted(re.findall(r"\d+", sources))

    return 1.0 if read(response) == read(reference) else 0.0


def cited_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
