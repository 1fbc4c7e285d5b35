"""Rewards for one of four labels."""

from __future__ import annotations

import re

LABELS = {"positive", "negative", "neutral", "mixed"}
POLARITY = {"positive": 1, "negative": -1}


def label_somewhere(response: str, reference: str) -> float:
    return 1.0 if reference in response.lower() else 0.0


def first_label_named(response: str, reference: str) -> float:
    named = [word for word in re.findall(r"[a-z]+", response.lower()) if word in LABELS]
    return 1.0 if named[:1] == [reference] else 0.0


def label_as_prefix(response: str, reference: str) -> float:
    return 1.0 if response.strip().lower().startswith(reference[:3]) else 0.0


def polarity(response: str, reference: str) -> float:
    """Plus one, minus one, or neither."""
    got = POLARITY.get(response.strip().rstrip(".").lower(), 0)
    return 1.0 if got == POLARITY.get(reference, 0) else 0.0


def label_alone(response: str, reference: str) -> float:
    return 1.0 if response.strip().removesuffix(".").lower() == reference else 0.0


def label_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
