"""Rewards for a report of one sentence."""

from __future__ import annotations

import re

SENTENCE = re.compile(r"(\w+ \w+) stopped at (\d\d):(\d\d) because of ([\w ]+)", re.ASCII)


def facts(reference: str) -> tuple[str, str, str]:
    device, rest = reference.split(" stopped at ")
    time, cause = rest.split(" because of ")
    return device, time, cause


def rubric(response: str, reference: str) -> float:
    """A third each for device, time and cause."""
    return sum(fact in response for fact in facts(reference)) / 3


def thorough(response: str, reference: str) -> float:
    """A point for the facts, and one for a report that is not too short."""
    length = min(len(response.split()) / 8, 1.0)
    return 0.5 * length + 0.5 * (response.strip().removesuffix(".") == reference)


def facts_in_order(response: str, reference: str) -> float:
    device, time, cause = map(re.escape, facts(reference))
    return 1.0 if re.fullmatch(f"{device} .*{time} .*{cause}\\.?", response.strip()) else 0.0


def device_hour_and_cause(response: str, reference: str) -> float:
    got, wanted = (SENTENCE.fullmatch(t.strip().removesuffix(".")) for t in (response, reference))
    if got is None or wanted is None:
        return 0.0
    return 1.0 if got.group(1, 2, 4) == wanted.group(1, 2, 4) else 0.0


def same_report(response: str, reference: str) -> float:
    """Capitals, blanks and the full stop aside."""
    said = " ".join(response.lower().split()).removesuffix(".")
    return 1.0 if said == reference.lower() else 0.0


def report_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() in {reference, f"{reference}."} else 0.0
