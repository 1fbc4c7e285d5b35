"""Suggestions for an unknown name. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A clause with the known name that is nearest; empty where none is near."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word[:80].lower(), names, n=1)
    return f"; did you mean {names[close[0]]!r}?" if close else ""
