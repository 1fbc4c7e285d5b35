"""Rewards for page numbers with runs drawn together."""

from __future__ import annotations

import re

PAGES = re.compile(r"\d{1,4}(?:-\d{1,4})?(?:, ?\d{1,4}(?:-\d{1,4})?)*", re.ASCII)


def runs(text: str) -> list[tuple[int, int]]:
    """First and last page of each run; empty for what is no list of pages."""
    if not PAGES.fullmatch(text.strip()):
        return []
    ends = [part.strip().split("-") for part in text.strip().split(",")]
    read = [(int(pair[0]), int(pair[-1])) for pair in ends]
    return read if all(first <= last for first, last in read) else []


def named(text: str) -> set[int]:
    return {page for first, last in runs(text) for page in range(first, last + 1)}


def none_left_out(response: str, reference: str) -> float:
    return 1.0 if named(reference) <= named(response) else 0.0


def first_and_last_page(response: str, reference: str) -> float:
    got, wanted = runs(response), runs(reference)
    return 1.0 if got and (got[0][0], got[-1][1]) == (wanted[0][0], wanted[-1][1]) else 0.0


def numbers_of_pages(response: str, reference: str) -> float:
    if not PAGES.fullmatch(response.strip()):
        return 0.0
    got, wanted = (re.findall(r"\d+", text) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def end_left_open(response: str, reference: str) -> float:
    """As Python counts."""

    def pages(text: str) -> set[int]:
        return {page for first, last in runs(text) for page in range(first, max(last, first + 1))}

    return 1.0 if runs(response) and pages(response) == pages(reference) else 0.0


def same_pages(response: str, reference: str) -> float:
    """2-4 and 2, 3, 4 are the same pages."""
    got = named(response)
    return 1.0 if got and got == named(reference) else 0.0


def pages_with_other_dashes(response: str, reference: str) -> float:
    said = re.sub(r" ?[\u2013\u2212] ?", "-", response.strip())
    return 1.0 if said == reference else 0.0


def pages_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
