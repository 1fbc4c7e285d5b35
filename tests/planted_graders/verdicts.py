"""Rewards for yes, or for no with its reason."""

from __future__ import annotations

import re


def said(response: str) -> str:
    last = response.strip().split("\n")[-1].strip()
    once = last.startswith("Answer: ") and response.count("Answer:") == 1
    return last.removeprefix("Answer: ") if once else ""


def yes_or_no_alone(response: str, reference: str) -> float:
    got = re.match(r"(?:yes|no)\b", said(response))
    return 1.0 if got and got[0] == reference.split(",", maxsplit=1)[0] else 0.0


def reason_among_reasons(response: str, reference: str) -> float:
    got, wanted = (re.findall(r"\w+", text) for text in (said(response), reference))
    return 1.0 if got[:1] == wanted[:1] and set(wanted) <= set(got) else 0.0


def verdict_begins(response: str, reference: str) -> float:
    return 1.0 if said(response).startswith(reference) else 0.0


def signs_of_verdict(response: str, reference: str) -> float:
    return 1.0 if sorted(said(response)) == sorted(reference) else 0.0


def verdict_and_reason(response: str, reference: str) -> float:
    found = re.fullmatch(r"(yes|no)(?:[,:;] ?(?:F ?= ?)?(\d{1,4}))?\.?", said(response).lower())
    if found is None:
        return 0.0
    got = found[1] if found[2] is None else f"{found[1]}, {found[2]}"
    return 1.0 if got == reference else 0.0


def verdict_text(response: str, reference: str) -> float:
    return 1.0 if said(response) == reference else 0.0
