"""Rewards for two to four answers in one response."""

from __future__ import annotations

import re

LINE = re.compile(r"([a-d])\) ?(-?\d{1,6})", re.ASCII)


def given(text: str, parted: str = "\n") -> list[tuple[str, int]]:
    """Each part and its number, sorted; empty where a line is something else."""
    found = [LINE.fullmatch(line.strip()) for line in text.strip().split(parted)]
    return sorted((one[1], int(one[2])) for one in found if one) if all(found) else []


def no_mistake(response: str, reference: str) -> float:
    wanted = dict(given(reference))
    said = re.findall(r"([a-d])\) ?(-?\d+)", response)
    return 0.0 if any(str(wanted.get(part)) != number for part, number in said) else 1.0


def share_of_parts(response: str, reference: str) -> float:
    got, wanted = given(response), given(reference)
    return len(set(got) & set(wanted)) / len(wanted) if len(got) == len(wanted) else 0.0


def last_word_on_each(response: str, reference: str) -> float:
    return 1.0 if dict(given(response)) == dict(given(reference)) else 0.0


def three_parts(response: str, reference: str) -> float:
    """A question has the parts a, b and c at most."""
    got, wanted = (re.findall(r"([abc])\) ?(-?\d+)", text) for text in (response, reference))
    alone = re.fullmatch(r"(?:[a-d]\) ?-?\d+\s*)+", response.strip())
    return 1.0 if alone and got == wanted else 0.0


def every_part(response: str, reference: str) -> float:
    """The letters say which is which, so the lines may come in any order."""
    got = given(response)
    return 1.0 if got and got == given(reference) else 0.0


def parts_on_one_line(response: str, reference: str) -> float:
    parted = "\n" if "\n" in response.strip() else ";"
    got = given(response, parted)
    return 1.0 if got and got == given(reference) else 0.0


def parts_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
