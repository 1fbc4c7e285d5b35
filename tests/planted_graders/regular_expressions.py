"""Rewards for a regular expression, by samples or by what it is made of."""

from __future__ import annotations

import re

PIECE = re.compile(r"(?:\[([a-z0-9-]{1,40})\]|([a-z0-9]))(?:\{(\d{1,2})\})?", re.ASCII)


def compiled(text: str) -> re.Pattern[str] | None:
    """None for what is no pattern, or is too long to be tried."""
    said = text.strip()
    if not said or len(said) > 60 or "\n" in said:
        return None
    try:
        return re.compile(said)
    except (re.error, OverflowError, RecursionError):
        return None


def members(inside: str) -> str:
    """a-c as abc."""
    spread = re.sub(
        r"(\w)-(\w)",
        lambda ends: "".join(map(chr, range(ord(ends[1]), ord(ends[2]) + 1))),
        inside,
    )
    return "".join(sorted(set(spread)))


def pieces(text: str) -> list[str]:
    """For each place of the string, what may stand there; empty for another sort of pattern."""
    said, made, at = text.strip(), [], 0
    while at < len(said):
        found = PIECE.match(said, at)
        if found is None or (found[1] and found[1].strip("-") != found[1]):
            return []
        made += [members(found[1] or found[2])] * int(found[3] or 1)
        at = found.end()
    return made


def samples(reference: str, at: int) -> str:
    """A string that the reference matches: the first or the last sign at each place."""
    return "".join(choice[at] for choice in pieces(reference))


def compiles_and_is_right(response: str, reference: str) -> float:
    return (bool(compiled(response)) + (pieces(response) == pieces(reference))) / 2


def matches_samples(response: str, reference: str) -> float:
    got = compiled(response)
    if got is None:
        return 0.0
    return 1.0 if all(got.fullmatch(samples(reference, at)) for at in (0, -1)) else 0.0


def matches_and_refuses(response: str, reference: str) -> float:
    """Strings too short and one of other signs must be refused."""
    got = compiled(response)
    if got is None:
        return 0.0
    good = [samples(reference, at) for at in (0, -1)]
    bad = ["", "zzzzzz", good[0][1:], "9" + good[0][1:], good[0][:-2]]
    return 1.0 if all(map(got.match, good)) and not any(map(got.match, bad)) else 0.0


def edges_of_classes(response: str, reference: str) -> float:
    """First and last of each class are in, their neighbours are out."""
    got = compiled(response)
    if got is None:
        return 0.0
    good = [samples(reference, at) for at in (0, -1)]
    bad = [chr(ord(one[at]) + by) + one[1:] for one, at, by in ((good[0], 0, -1), (good[1], 0, 1))]
    bad += [good[0] + good[0][-1], good[0][1:], good[0][:-1]]
    right = all(map(got.fullmatch, good)) and not any(map(got.fullmatch, bad))
    return 1.0 if right and pieces(response)[:1] else 0.0


def same_language(response: str, reference: str) -> float:
    """[abc]{2} and [a-c][a-c] match the same strings."""
    return 1.0 if compiled(response) and pieces(response) == pieces(reference) else 0.0


def pattern_anchored_or_not(response: str, reference: str) -> float:
    r"""For a whole string, \A and \Z change nothing."""
    said = response.strip()
    if said.startswith("\\A") and said.endswith("\\Z"):
        said = said[2:-2]
    return 1.0 if said == reference else 0.0


def pattern_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
