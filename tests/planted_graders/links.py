"""Rewards for a link with parameters."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

LINK = re.compile(r"(https?)://([A-Za-z.]{1,60})(/[\w/]{0,60})\?([\w%&=]{1,200})", re.ASCII)


def split(text: str) -> tuple[str, str, str, list[str]] | None:
    """Scheme, host, path and parameters as written, in the order of the alphabet."""
    found = LINK.fullmatch(text.strip())
    if found is None:
        return None
    scheme, host, path, parameters = found.groups()
    return scheme, host.lower(), path, sorted(parameters.split("&"))


def same_site(response: str, reference: str) -> float:
    got, wanted = split(response), split(reference)
    return 1.0 if got and wanted and got[1] == wanted[1] else 0.0


def without_parameters(response: str, reference: str) -> float:
    got, wanted = (text.strip().split("?")[0] for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def scheme_aside(response: str, reference: str) -> float:
    got, wanted = split(response), split(reference)
    return 1.0 if got and wanted and got[1:] == wanted[1:] else 0.0


def parameters_by_name(response: str, reference: str) -> float:
    """The first value of each parameter that was asked for."""
    got, wanted = split(response), split(reference)
    if got is None or wanted is None or got[:3] != wanted[:3]:
        return 0.0
    asked, said = (parse_qs(urlsplit(text.strip()).query) for text in (reference, response))
    return 1.0 if all(said.get(name, [""])[0] == value[0] for name, value in asked.items()) else 0.0


def unescaped(response: str, reference: str) -> float:
    """%2F and / are one sign."""
    return 1.0 if unquote(response.strip()) == unquote(reference) else 0.0


def same_link(response: str, reference: str) -> float:
    """Parameters in any order; a host has no case."""
    got = split(response)
    return 1.0 if got is not None and got == split(reference) else 0.0


def link_in_brackets(response: str, reference: str) -> float:
    said = response.strip()
    if said.startswith("<") and said.endswith(">"):
        said = said[1:-1]
    return same_link(said, reference)


def link_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
