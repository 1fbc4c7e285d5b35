"""What a setting needs of the others, as a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterable

Need = tuple[bool, str, str]
"""Whether it is met, the setting as it must be, and why."""


def first_unmet(what: str, needs: Iterable[Need]) -> str:
    """The error of the first need that is not met; "" where all are.

    Args:
        what: the setting that has the needs.
        needs: in the order in which they are told.
    """
    return next((f"{what} needs {needed}: {why}" for met, needed, why in needs if not met), "")
