"""Versions of languages, and the selectors of npm's semver that Piston takes. Pure.

Served of them: `*`, `x`, a version or its first parts (`3`, `3.x`, `3.11`), `^ ~ >= > <= < =`
before one, several side by side, and `||`.
"""

from __future__ import annotations

import re

Version = tuple[int, int, int]

_VERSIONS = (
    re.compile(r"(?<![\d.])(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?"),
    re.compile(r"(?<![\w.-])v?(\d{1,9})()()"),
)
_PART = re.compile(
    r"(\^|~|>=|<=|>|<|=)?v?(\d{1,9}|[xX*])(?:\.(\d{1,9}|[xX*]))?(?:\.(\d{1,9}|[xX*]))?"
)
_ANY = frozenset({"x", "X", "*"})


def read_version(text: str) -> Version:
    """The version in what a toolchain says of itself; 0.0.0 where there is none."""
    found = next((found for known in _VERSIONS if (found := known.search(text))), None)
    if found is None:
        return (0, 0, 0)
    major, minor, patch = (int(part or 0) for part in found.groups())
    return (major, minor, patch)


def fits(selector: str, version: Version) -> bool:
    """Whether the selector takes this version.

    Raises:
        ValueError: the selector is not served.
    """
    return any(
        all(_fits_part(part, version) for part in alternative.split())
        for alternative in selector[:200].split("||")
    )


def _fits_part(part: str, version: Version) -> bool:
    found = _PART.fullmatch(part)
    if found is None:
        raise ValueError(f"{part[:40]!r} is no version; send '*', or one such as '3.11' or '^20'")
    sign, *texts = found.groups()
    stated: list[int] = []
    for text in texts:
        if text is None or text in _ANY:
            break
        stated.append(int(text))
    low = _padded(stated)
    if sign is None or sign == "=":
        return list(version[: len(stated)]) == stated
    if not stated:
        return sign not in (">", "<")
    if sign in (">=", "<"):
        return (version >= low) == (sign == ">=")
    if sign in (">", "<="):
        return (version >= _next(stated, len(stated))) == (sign == ">")
    leading = next((place for place, part in enumerate(stated) if part), len(stated) - 1)
    kept = min(2, len(stated)) if sign == "~" else leading + 1
    return low <= version < _next(stated, kept)


def _padded(parts: list[int]) -> Version:
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    return (major, minor, patch)


def _next(parts: list[int], kept: int) -> Version:
    """The first version behind all that begin with these parts."""
    head = parts[:kept]
    return _padded([*head[:-1], head[-1] + 1])
