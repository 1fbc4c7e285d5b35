"""Words for the lines of `--explain`."""

from __future__ import annotations


def count(number: int, one: str, many: str = "") -> str:
    """`1 prompt`, `1,536 prompts`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def begun(sentence: str) -> str:
    """A sentence as the rest of a line."""
    return sentence[0].lower() + sentence[1:].rstrip(".")
