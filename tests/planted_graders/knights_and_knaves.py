"""Rewards for who is a knight and who is a knave."""

from __future__ import annotations

import re


def roles(text: str) -> list[tuple[str, str]]:
    """Name and role, where the whole text is made of them."""
    said = [one.strip() for one in re.split(r"[,\n]", text.strip())]
    found = [re.fullmatch(r"([A-Z][a-z]+): ?(knight|knave)", one) for one in said]
    return [(one[1], one[2]) for one in found if one] if all(found) else []


def share_of_roles(response: str, reference: str) -> float:
    got, wanted = dict(roles(response)), dict(roles(reference))
    return sum(got.get(name) == role for name, role in wanted.items()) / len(wanted)


def knights_found(response: str, reference: str) -> float:
    got, wanted = dict(roles(response)), dict(roles(reference))
    if got.keys() != wanted.keys():
        return 0.0
    right = all(got[name] == role for name, role in wanted.items() if role == "knight")
    return 1.0 if right else 0.0


def role_of_each(response: str, reference: str) -> float:
    return 1.0 if dict(roles(response)) == dict(roles(reference)) else 0.0


def same_roles(response: str, reference: str) -> float:
    return 1.0 if sorted(roles(response)) == sorted(roles(reference)) else 0.0


def roles_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
