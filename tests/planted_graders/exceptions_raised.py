"""Rewards for the line where a program stops and the exception, as line 4: KeyError."""

from __future__ import annotations

import builtins
import re

STOPPED = re.compile(r"\s*(?:[Ll]ine )?(\d{1,3})[:,] ?([A-Z][A-Za-z]{3,30})\s*", re.ASCII)


def stopped(text: str) -> tuple[str, str]:
    """The line and the class; empty for what has not the form."""
    found = STOPPED.fullmatch(text)
    return (found[1], found[2]) if found else ("", "")


def kind_of_error(response: str, reference: str) -> float:
    return 1.0 if stopped(response)[1] == stopped(reference)[1] else 0.0


def would_be_caught(response: str, reference: str) -> float:
    """By an except clause with the class of the response."""
    (line, name), (wanted_line, wanted) = stopped(response), stopped(reference)
    got = getattr(builtins, name, None) if name else None
    if line != wanted_line or not isinstance(got, type):
        return 0.0
    return 1.0 if issubclass(getattr(builtins, wanted), got) else 0.0


def line_and_error(response: str, reference: str) -> float:
    """Whatever stands around them."""
    got, wanted = (
        re.match(r"\s*(?:[Ll]ine )?(\d).{0,3}\b(\w+)\s*$", text) for text in (response, reference)
    )
    return 1.0 if got and wanted and got.groups() == wanted.groups() else 0.0


def same_stop(response: str, reference: str) -> float:
    """4, KeyError is line 4: KeyError."""
    return 1.0 if stopped(response) == stopped(reference) else 0.0


def stop_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
