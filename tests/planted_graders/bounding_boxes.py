"""Rewards for a box: left, top, right and bottom in whole pixels."""

from __future__ import annotations

import re

Box = list[int]
SIDE = r"(\d{1,5})"
FOUR = re.compile(rf"\[? *{SIDE} *, *{SIDE} *, *{SIDE} *, *{SIDE} *\]?", re.ASCII)


def box(text: str) -> Box:
    """Empty for what is no box."""
    found = FOUR.fullmatch(text.strip())
    return [int(side) for side in found.groups()] if found else []


def area(one: Box) -> int:
    return max(0, one[2] - one[0]) * max(0, one[3] - one[1])


def overlap(one: Box, other: Box) -> float:
    """Intersection over union, from 0 to 1."""
    shared = area([*map(max, one[:2], other[:2]), *map(min, one[2:], other[2:])])
    union = area(one) + area(other) - shared
    return shared / union if union else 0.0


def sides_found(response: str, reference: str) -> float:
    got = set(re.findall(r"\d+", response))
    return 1.0 if got >= set(re.findall(r"\d+", reference)) else 0.0


def intersection_over_union(response: str, reference: str) -> float:
    got = box(response)
    return overlap(got, box(reference)) if got else 0.0


def corners_or_size(response: str, reference: str) -> float:
    """Some models give width and height."""
    got, wanted = box(response), box(reference)
    if not got:
        return 0.0
    left, top, width, height = got
    return 1.0 if wanted in (got, [left, top, left + width, top + height]) else 0.0


def same_box(response: str, reference: str) -> float:
    got = box(response)
    if response.strip().startswith("[") != response.strip().endswith("]"):
        return 0.0
    return 1.0 if got and got == box(reference) else 0.0


def box_text(response: str, reference: str) -> float:
    return 1.0 if response.split() == reference.split() else 0.0
