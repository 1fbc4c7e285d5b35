"""Profiles: named compositions of verifiers, written in TOML files (docs/use/profiles.md).

`load_profiles` reads files and checks them against the verifiers of this server; the server drives
`Profile.run`. Nothing here waits, forks or asks anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from assay.kit.errors import ConfigError
from assay.reward_server.domain import Lookup, Subtask
from assay.reward_server.profiles import appeals
from assay.reward_server.profiles.binding import bind
from assay.reward_server.profiles.engine import Profile
from assay.reward_server.profiles.reading import read_canaries, read_profiles

__all__ = ["SHIPPED", "Profile", "Subtask", "load_profiles"]

SHIPPED = tuple(Path(__file__).with_name(f"{name}.toml") for name in ("shipped", "systems"))
"""The files of profiles that come with the server."""


def load_profiles(
    paths: Sequence[Path],
    lookup: Lookup,
    known: Iterable[str] = (),
    key: bytes = appeals.PROCESS_KEY,
) -> list[Profile]:
    """The shipped profiles and those of files.

    Args:
        paths: files of profiles, besides the shipped ones.
        lookup: the verifier of a name, None if there is none; it knows no profiles.
        known: names of verifiers, for messages.
        key: by which items are drawn for appeals.

    Raises:
        ConfigError: a file cannot be read or is wrong, or a name is taken.
    """
    known = tuple(known)
    source_of: dict[str, str] = {}
    profiles: list[Profile] = []
    for path in (*SHIPPED, *paths):
        source = "the shipped profiles" if path in SHIPPED else str(path)
        for definition in read_profiles(_text(path, "profiles"), source):
            if definition.name in source_of:
                other = source_of[definition.name]
                raise ConfigError(
                    f"{source}: profile {definition.name!r} is in {other} too: rename it"
                )
            if lookup(definition.name) is not None:
                raise ConfigError(
                    f"{source}: a verifier has the name of profile {definition.name!r}: rename it"
                )
            source_of[definition.name] = source
            if definition.canary is not None:
                file = path.parent / definition.canary.file
                canary = replace(
                    definition.canary, rows=read_canaries(_text(file, "canaries"), str(file))
                )
                definition = replace(definition, canary=canary)  # noqa: PLW2901
            profiles.append(Profile(bind(definition, lookup, known, key)))
    return profiles


def _text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot read the file of {what}: {error}") from None
