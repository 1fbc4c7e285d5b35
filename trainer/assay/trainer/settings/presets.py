"""Where a config file is: on the disk as given, or among the presets that the package brings.

`configs` beside this module is a link to the repository's configs/, which a wheel carries as files.
"""

from __future__ import annotations

from pathlib import Path

PRESETS = Path(__file__).with_name("configs")


def find(given: Path) -> Path:
    """The file of that path, or else the preset of that name: `dapo`, `configs/dapo.toml`.

    What is neither comes back as given, for its reader to refuse.
    """
    if given.is_file() or given.is_absolute():
        return given
    inside = Path(*given.parts[1:]) if given.parts[:1] == ("configs",) else given
    if not inside.name:
        return given
    preset = PRESETS / inside.with_name(inside.name.removesuffix(".toml") + ".toml")
    return preset if ".." not in inside.parts and preset.is_file() else given


def known(folder: str = "") -> str:
    """The presets of a folder of configs/, for the message about a name that is none."""
    names = ", ".join(sorted(path.stem for path in (PRESETS / folder).glob("*.toml")))
    return f"presets are {names}"
