"""A release: one version of every distribution, its wheels and sdists, its part of the CHANGELOG.

python scripts/release.py set 0.2.0     # every distribution's version, and the CHANGELOG's heading
python scripts/release.py check v0.2.0  # do the tag, all versions and the CHANGELOG agree?
python scripts/release.py notes v0.2.0  # the CHANGELOG's part, for the release
python scripts/release.py dist          # dist/: a wheel and an sdist of every distribution
"""

from __future__ import annotations

import datetime as dt
import re
import shutil
import sys
import tomllib
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[1]
_VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
_FIELD = re.compile(r'^version = "([^"]*)"$', re.MULTILINE)
_UNRELEASED = "## Unreleased\n"


def distributions(root: Path) -> list[Path]:
    """Folders of the distributions: those whose pyproject.toml has a project."""
    files = [*root.glob("*/pyproject.toml"), *root.glob("plugins/*/pyproject.toml")]
    return sorted(file.parent for file in files if "project" in tomllib.loads(file.read_text()))


def versions(root: Path) -> dict[str, str]:
    """The version of each distribution, by its folder."""
    return {
        str(folder.relative_to(root)): tomllib.loads((folder / "pyproject.toml").read_text())[
            "project"
        ]["version"]
        for folder in distributions(root)
    }


def notes(root: Path, version: str) -> str:
    """The CHANGELOG's part of a version.

    Raises:
        ValueError: it has none, or an empty one.
    """
    text = (root / "CHANGELOG.md").read_text()
    head = re.search(rf"^## {re.escape(version)}( .*)?$\n", text, re.MULTILINE)
    part = text[head.end() :].partition("\n## ")[0].strip() if head else ""
    if not part:
        raise ValueError(
            f"CHANGELOG.md says nothing of {version}: scripts/release.py set {version}"
        )
    return part + "\n"


def check(root: Path, tag: str) -> None:
    """Holds a tag against the versions and the CHANGELOG.

    Raises:
        ValueError: it is no tag of a version, a distribution has another, or the CHANGELOG none.
    """
    version = tag.removeprefix("v")
    if not tag.startswith("v") or not _VERSION.fullmatch(version):
        raise ValueError(f"{tag!r} is no tag of a version: v1.2.3, v1.2.3rc1")
    others = {folder: said for folder, said in versions(root).items() if said != version}
    if others:
        raise ValueError(
            "these have another version than "
            f"{version}: " + ", ".join(f"{folder} {said}" for folder, said in others.items())
        )
    notes(root, version)


def set_version(root: Path, version: str, today: dt.date) -> None:
    """Writes a version into every distribution, and heads what is unreleased with it.

    Raises:
        ValueError: it is no version, or nothing is unreleased.
    """
    if not _VERSION.fullmatch(version):
        raise ValueError(f"{version!r} is no version: 1.2.3, 1.2.3rc1")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text()
    before, found, after = text.partition(_UNRELEASED)
    if not found or not after.partition("\n## ")[0].strip():
        raise ValueError("CHANGELOG.md has nothing under Unreleased")
    heading = f"{_UNRELEASED}\n## {version} - {today.isoformat()}\n"
    changelog.write_text(before + heading + after)
    for folder in distributions(root):
        file = folder / "pyproject.toml"
        file.write_text(_FIELD.sub(f'version = "{version}"', file.read_text(), count=1))


def build(root: Path, out: Path) -> list[Path]:
    """A wheel and an sdist of every distribution, in a folder that is made anew."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    return [
        Path(made)
        for folder in distributions(root)
        for builder in (WheelBuilder, SdistBuilder)
        for made in builder(str(folder)).build(directory=str(out))
    ]


def main(words: list[str]) -> int:
    """The command; see the module."""
    match words:
        case ["set", version]:
            set_version(ROOT, version, dt.datetime.now(dt.UTC).date())
        case ["check", tag]:
            check(ROOT, tag)
        case ["notes", tag]:
            sys.stdout.write(notes(ROOT, tag.removeprefix("v")))
        case ["dist"]:
            for made in build(ROOT, ROOT / "dist"):
                print(made.relative_to(ROOT))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ValueError as error:
        sys.exit(f"release: {error}")
