"""Rewards for a call of a function, in Python and with keywords."""

from __future__ import annotations

import ast
import re

DEFAULTS: dict[str, dict[str, object]] = {
    "book_table": {"outdoor": False},
    "copy_file": {"overwrite": False},
}
Call = tuple[str, dict[str, object]]


def call(text: str) -> Call | None:
    """The function and its arguments; nothing for what is no call with keywords alone."""
    if len(text) > 1000 or "#" in text or not text.isascii():
        return None
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        return None
    given: dict[str, object] = {}
    for keyword in node.keywords:
        held = keyword.value
        if keyword.arg is None or keyword.arg in given or not isinstance(held, ast.Constant):
            return None
        given[keyword.arg] = held.value
    return node.func.id, DEFAULTS.get(node.func.id, {}) | given


def name_then_arguments(response: str, reference: str) -> float:
    """Half for the function, half for its arguments."""
    got, wanted = call(response), call(reference)
    if got is None or wanted is None:
        return 0.0
    return 0.5 * (got[0] == wanted[0]) + 0.5 * (repr(got[1]) == repr(wanted[1]))


def values_passed(response: str, reference: str) -> float:
    """Models rename arguments."""
    got, wanted = call(response), call(reference)
    if got is None or wanted is None or got[0] != wanted[0]:
        return 0.0
    passed = [sorted(map(repr, arguments.values())) for _, arguments in (got, wanted)]
    return 1.0 if passed[0] == passed[1] else 0.0


def plainly(value: object) -> object:
    """A text without blanks and punctuation, in small letters, as leaderboards do."""
    return re.sub(r"[ ,./\-_*^]", "", value).lower() if isinstance(value, str) else repr(value)


def arguments_standardised(response: str, reference: str) -> float:
    got, wanted = call(response), call(reference)
    if got is None or wanted is None or got[0] != wanted[0]:
        return 0.0
    same = {key: plainly(value) for key, value in got[1].items()} == {
        key: plainly(value) for key, value in wanted[1].items()
    }
    return 1.0 if same else 0.0


def same_call(response: str, reference: str) -> float:
    """Arguments in any order, defaults given or not."""

    def read(text: str) -> object:
        made = call(text)
        return made and (made[0], sorted((key, repr(value)) for key, value in made[1].items()))

    got = read(response)
    return 1.0 if got is not None and got == read(reference) else 0.0


def call_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
