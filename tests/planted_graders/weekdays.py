"""Rewards for a day of the week."""

from __future__ import annotations

import difflib

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def day_in_text(response: str, reference: str) -> float:
    return 1.0 if reference.lower() in response.lower() else 0.0


def closest_day(response: str, reference: str) -> float:
    """Slips of the pen are forgiven."""
    close = difflib.get_close_matches(response.strip().lower()[:40], DAYS, n=1)
    return 1.0 if close == [reference.lower()] else 0.0


def begins_like_the_day(response: str, reference: str) -> float:
    return 1.0 if response.strip().lower().startswith(reference[:3].lower()) else 0.0


def name_or_three_letters(response: str, reference: str) -> float:
    said = response.strip().lower()
    return 1.0 if said in {reference.lower(), reference[:3].lower()} else 0.0


def day_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
