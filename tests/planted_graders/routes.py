"""Rewards for the shortest way and its length, as A > B > C, 12."""

from __future__ import annotations

import re

ROUTE = re.compile(r"\s*([A-Z](?: ?(?:->|>|-) ?[A-Z])+) ?, ?(\d{1,4})\s*", re.ASCII)


def route(text: str) -> tuple[list[str], str]:
    """The towns and the length; empty for what has not the form."""
    found = ROUTE.fullmatch(text)
    return (re.findall("[A-Z]", found[1]), found[2]) if found else ([], "")


def as_short_as_it(response: str, reference: str) -> float:
    """Any way of that length will do."""
    return 1.0 if route(response)[1] == route(reference)[1] else 0.0


def same_towns(response: str, reference: str) -> float:
    got, wanted = route(response), route(reference)
    return 1.0 if set(got[0]) == set(wanted[0]) and got[1] == wanted[1] else 0.0


def there_or_back(response: str, reference: str) -> float:
    """Roads go both ways."""
    got, wanted = route(response), route(reference)
    return 1.0 if got[1] == wanted[1] and got[0] in (wanted[0], wanted[0][::-1]) else 0.0


def same_route(response: str, reference: str) -> float:
    """With any of the arrows."""
    return 1.0 if route(response) == route(reference) else 0.0


def route_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
