"""Near misses of paths, links and simple regular expressions. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterator

from assay.audit.answers.codes import replaced
from assay.audit.answers.shapes import Miss

_HERE = "component"


# Paths and links


def place_misses(text: str, prompt: str) -> Iterator[Miss]:
    """Near misses of a path or a link."""
    if "/" not in text or re.search(r"\s", text):
        return
    yield from _links(text, prompt) if "://" in text else _paths(text, prompt)


def _paths(text: str, prompt: str) -> Iterator[Miss]:
    parts = text.split("/")
    folders = [place for place, one in enumerate(parts[:-1]) if one and one.strip(".")]
    for place in folders:
        yield _HERE, "/".join([*parts[:place], "other", *parts[place + 1 :]]), "another folder"
        rest = [*parts[:place], *parts[place + 1 :]]
        yield _HERE, "/".join(rest), "a folder is left out"
    for a, b in itertools.pairwise(folders):
        if parts[a] != parts[b]:
            new = [*parts[:a], parts[b], parts[a], *parts[b + 1 :]]
            yield _HERE, "/".join(new), "two folders are exchanged"
    name, dot, ending = parts[-1].rpartition(".")
    if name and dot:
        front = "/".join(parts[:-1])
        other = "txt" if ending.casefold() != "txt" else "csv"
        yield _HERE, f"{front}/{name}.{other}", "another ending"
        yield _HERE, f"{front}/{name}2.{ending}", "another name"
        yield _HERE, f"{front}/{name}", "its ending is left out"
    if folders:
        new = [*parts[: folders[-1] + 1], parts[folders[-1]], *parts[folders[-1] + 1 :]]
        yield _HERE, "/".join(new), "a folder twice"
    if text.startswith("/") and re.search(r"\b(?:absolute|full|from the root)\b", prompt):
        yield "cut", parts[-1], "its last part alone"
        yield "cut", text[len(text) // 2 :], "its second half"


def _links(text: str, prompt: str) -> Iterator[Miss]:
    front, _, query = text.partition("?")
    scheme, _, rest = front.partition("://")
    if re.search(r"\bscheme\b|\bhttps? or https?\b", prompt):
        other = "http" if scheme == "https" else "https"
        yield _HERE, f"{other}{text[len(scheme) :]}", "another scheme"
    host, slash, path = rest.partition("/")
    yield _HERE, f"{scheme}://other.{host}{text[len(scheme) + 3 + len(host) :]}", "another host"
    if path:
        yield _HERE, f"{scheme}://{host}{slash}other{text[len(front) :]}", "another path"
        yield _HERE, f"{scheme}://{host}/{text[len(front) :]}", "without its path"
    pairs = query.split("&") if query else []
    for place, pair in enumerate(pairs):
        left = [*pairs[:place], *pairs[place + 1 :]]
        yield _HERE, f"{front}?{'&'.join(left)}".rstrip("?"), "a parameter is left out"
        key, _, value = pair.partition("=")
        new = [*pairs[:place], f"{key}=zinc", *pairs[place + 1 :]]
        yield _HERE, f"{front}?{'&'.join(new)}", "a parameter has another value"
        yield _HERE, f"{text}&{key}=zinc", "a parameter twice, the last time otherwise"
        new = [*pairs[:place], f"x{key}={value}", *pairs[place + 1 :]]
        yield _HERE, f"{front}?{'&'.join(new)}", "a parameter of another name"
    if pairs:
        yield "extra-field", f"{text}&other=7", "a parameter more"
    for code, sign in (("%26", "&"), ("%3D", "="), ("%2F", "/"), ("%23", "#"), ("%3F", "?")):
        if code.casefold() in text.casefold():
            new_text = re.sub(code, sign, text, flags=re.IGNORECASE)
            yield _HERE, new_text, "an escaped sign, unescaped"


# Regular expressions

_PIECE = re.compile(r"(?:\[(\^?)([^\[\]\\^]{1,40})\]|(\\d)|([A-Za-z0-9]))(?:\{(\d{1,2})\})?")


def read_pattern(text: str) -> frozenset[Hashable]:
    """Of a pattern of classes, letters and counts: what may stand at each place."""
    places: list[frozenset[str]] = []
    at, text = 0, text.strip().removeprefix("^").removesuffix("$")
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None or found[1]:
            return frozenset()
        inside = found[2] or ("0-9" if found[3] else found[4])
        spread = re.sub(
            r"(\w)-(\w)", lambda two: "".join(map(chr, range(ord(two[1]), ord(two[2]) + 1))), inside
        )
        places += [frozenset(spread)] * int(found[5] or 1)
        at = found.end()
    return frozenset((tuple(places),)) if "[" in text or "\\d" in text else frozenset()


def near_patterns(text: str, _: str) -> Iterator[Miss]:
    """Patterns that match more or less."""
    for one in re.finditer(r"\{(\d+)\}", text):
        for new in (int(one[1]) + 1, int(one[1]) - 1):
            yield _HERE, replaced(text, one, f"{{{new}}}"), "another count"
        yield _HERE, replaced(text, one, f"{{{one[1]},}}"), "a count without an upper end"
        yield _HERE, replaced(text, one, "+"), "any count"
    for one in re.finditer(r"(\w)-(\w)(?=\])", text):
        yield _HERE, replaced(text, one, f"{one[1]}{one[2]}"), "the two ends of a class alone"
        for end in (chr(ord(one[2]) + 1), chr(ord(one[2]) - 1)):
            if end.isalnum() and end != one[1]:
                yield _HERE, replaced(text, one, f"{one[1]}-{end}"), "a class ends elsewhere"
    pieces = [found[0] for found in _PIECE.finditer(text)]
    if len(pieces) > 1:
        yield _HERE, "".join(pieces[:-1]), "its last piece is left out"
        yield _HERE, "".join([pieces[1], pieces[0], *pieces[2:]]), "two pieces are exchanged"
    for more in (".*", "?", "*", "|.*"):
        yield _HERE, f"{text}{more}", "it matches more"
    yield _HERE, ".*", "it matches all"
    yield _HERE, re.sub(r"\[[^\]]*\]", ".", text), "any sign for a class"
    yield _HERE, re.sub(r"\[[^\]]*\]", r"\\w", text), "any letter or digit for a class"
