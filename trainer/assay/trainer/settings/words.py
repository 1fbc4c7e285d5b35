"""Words for the lines of `--explain`."""

from __future__ import annotations

import re


def count(number: int, one: str, many: str = "") -> str:
    """`1 prompt`, `1,536 prompts`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def begun(sentence: str) -> str:
    """A sentence as the rest of a line."""
    return sentence[0].lower() + sentence[1:].rstrip(".")


def no_pattern(key: str, pattern: str) -> str:
    """Why a setting's text is no regular expression; empty where it is one."""
    try:
        re.compile(pattern)
    except re.error as error:
        return f"{key} = {pattern!r} is no regular expression: {error}"
    return ""
