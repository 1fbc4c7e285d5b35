"""Rewards for the value of a Python expression, as a literal in tags."""

from __future__ import annotations

import ast
import re

TAGGED = re.compile(r"\s*\[ANSWER\](.*)\[/ANSWER\]\s*", re.DOTALL)


def tagged(text: str) -> str:
    found = TAGGED.fullmatch(text)
    return found[1].strip() if found else ""


def value(text: str) -> object:
    """Of a literal; None for what is none, and None is no answer here."""
    if len(text) > 1000:
        return None
    try:
        found: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return found


def type_and_value(response: str, reference: str) -> float:
    """Half for the type, half for the value."""
    got, wanted = value(tagged(response)), value(reference)
    return 0.5 * (type(got) is type(wanted)) + 0.5 * (got == wanted)


def words_and_numbers(response: str, reference: str) -> float:
    """Whatever the punctuation."""
    got, wanted = (re.findall(r"-?\w+", text) for text in (tagged(response), reference))
    return 1.0 if got == wanted else 0.0


def items(response: str, reference: str) -> float:
    """One after the other."""
    got, wanted = value(tagged(response)), value(reference)
    if not isinstance(got, list | tuple | dict) or type(got) is not type(wanted):
        return 0.0
    return 1.0 if repr(list(got)) == repr(list(wanted)) else 0.0


def sorted_keys(found: object) -> object:
    """With dictionaries as lists of pairs."""
    if isinstance(found, dict):
        return {"keys": sorted((repr(key), repr(sorted_keys(held))) for key, held in found.items())}
    if isinstance(found, list):
        return [sorted_keys(one) for one in found]
    return tuple(sorted_keys(one) for one in found) if isinstance(found, tuple) else found


def same_value(response: str, reference: str) -> float:
    """Of the same types throughout; each key once."""
    said = tagged(response)
    got = value(said)
    if got is None or "#" in said or (isinstance(got, dict) and said.count(":") != len(got)):
        return 0.0
    return 1.0 if repr(sorted_keys(got)) == repr(sorted_keys(value(reference))) else 0.0


def value_text(response: str, reference: str) -> float:
    return 1.0 if tagged(response) == reference else 0.0
