"""The sha256 of each archive that constraints.txt pins, and whether what is here has it.

python scripts/hashes.py write                          `make hashes`: asks the package index
python scripts/hashes.py check PATH [--where-listed]    a folder of archives, or a report of pip's

constraints.sha256 has a line "SHA256  FILE" for each archive, so that `sha256sum --check
--ignore-missing` reads it too. `write` has pip say which archive of each pin it would take for
this platform and this Python, from the index alone; lines of other platforms stay for as long as
their version is pinned. `check` compares by the name of the file: a name may have several hashes.

What is not listed is named: a wheel of another index (torch for the CPU alone), of another
platform, or one that was built here of a source that is listed. Assay's own are left out.

Covered: an archive whose content is not the one of the day when the list was written. Not covered:
an archive that was bad on that day; code that a source runs as it is built, before it is checked.

Exits with 0 when all that was found is listed with its hash; with 1 when one has another hash, or
the question could not be asked; with 3 when some are not listed, or with 0 where --where-listed is
given.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
HASHES = ROOT / "constraints.sha256"
WRONG, NOT_LISTED = 1, 3
_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")
_PIN = re.compile(r"([A-Za-z0-9._-]+)==(\S+)")
_ARCHIVE = re.compile(r"(?P<name>.+?)-(?P<version>\d[^-]*)(?:-.+\.whl|\.tar\.gz|\.zip)")
_INDEX_ALONE = {"PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": "", "PIP_CONSTRAINT": ""}
_TIMEOUT_S = 1800

Hashes = dict[str, set[str]]
"""The hashes that a file may have, by its name."""


def read_hashes(text: str) -> Hashes:
    """The lines of constraints.sha256.

    Raises:
        ValueError: a line is none of them.
    """
    found: Hashes = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{line[:100]!r} is not SHA256, two spaces and a file")
        found.setdefault(match[2], set()).add(match[1])
    return found


def render(hashes: Mapping[str, Iterable[str]]) -> str:
    """The same as a text, sorted by the file."""
    rows = ((name, one) for name, all_of in hashes.items() for one in all_of)
    return "".join(f"{one}  {name}\n" for name, one in sorted(rows))


def read_pins(text: str) -> set[tuple[str, str]]:
    """Name and version of each pin of constraints.txt."""
    return {(_plain(name), version) for name, version in _PIN.findall(text)}


def pin_of(file: str) -> tuple[str, str]:
    """Name and version of an archive, as its name says; what stands behind a + is left out."""
    match = _ARCHIVE.fullmatch(file)
    return ("", "") if match is None else (_plain(match["name"]), match["version"].split("+")[0])


def read_report(report: Mapping[str, Any], *, indexed: bool = False) -> Hashes:
    """The archives of a report that `pip install --report` wrote; `indexed`: no local ones."""
    found: Hashes = {}
    for one in report["install"]:
        told = one["download_info"]
        sha256 = told.get("archive_info", {}).get("hashes", {}).get("sha256")
        address = urlsplit(told["url"])
        if sha256 and not (indexed and address.scheme == "file"):
            found.setdefault(unquote(address.path.rpartition("/")[2]), set()).add(sha256)
    return found


def read_folder(folder: Path) -> Hashes:
    """The archives in a folder."""
    found: Hashes = {}
    for path in folder.iterdir():
        if _ARCHIVE.fullmatch(path.name):
            with path.open("rb") as file:
                found[path.name] = {hashlib.file_digest(file, "sha256").hexdigest()}
    return found


def merged(listed: Hashes, asked: Hashes, pins: set[tuple[str, str]]) -> Hashes:
    """What the index says now, and what is listed of pins that still hold.

    Raises:
        ValueError: the index has another content for a file than the list; or a pin has no hash.
    """
    other = sorted(name for name in asked if listed.get(name, asked[name]) != asked[name])
    if other:
        raise ValueError(f"the index has another content than is listed for {', '.join(other)}")
    found = {name: all_of for name, all_of in (listed | asked).items() if pin_of(name) in pins}
    missing = pins - {pin_of(name) for name in found}
    if missing:
        names = ", ".join(sorted(f"{name}=={version}" for name, version in missing))
        raise ValueError(f"the index gives no hash for {names}")
    return found


def conclude(found: Hashes, listed: Hashes, where_listed: bool) -> tuple[int, list[str]]:
    """The exit status and what to print."""
    theirs = {name: all_of for name, all_of in found.items() if not name.startswith("assay_")}
    wrong = sorted(name for name in theirs if name in listed and not theirs[name] <= listed[name])
    if wrong:
        return WRONG, [f"hashes: {name} is not the file that constraints.sha256 lists"
                       for name in wrong]  # fmt: skip
    unlisted = sorted(name for name in theirs if name not in listed)
    lines = [f"hashes: {len(theirs) - len(unlisted)} archives are those of constraints.sha256"]
    if not unlisted:
        return 0, lines
    lines.append(f"hashes: not listed, so not compared: {', '.join(unlisted)}")
    return (0 if where_listed else NOT_LISTED), lines


def ask_index() -> Hashes:
    """Which archives the index has for the pins, on this platform.

    Raises:
        ValueError: pip does not say.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"]
        command += ["--ignore-installed", "--report", str(report), "--requirement"]
        done = subprocess.run(
            [*command, str(CONSTRAINTS)],
            env=os.environ | _INDEX_ALONE,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise ValueError(f"pip exited with {done.returncode}: {done.stderr[-2000:]}")
        return read_report(json.loads(report.read_text()), indexed=True)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _write() -> tuple[int, list[str]]:
    listed = read_hashes(HASHES.read_text()) if HASHES.exists() else {}
    hashes = merged(listed, ask_index(), read_pins(CONSTRAINTS.read_text()))
    HASHES.write_text(render(hashes))
    return 0, [f"hashes: {len(hashes)} archives are listed in {HASHES.name}"]


def _check(path: Path, where_listed: bool) -> tuple[int, list[str]]:
    found = read_folder(path) if path.is_dir() else read_report(json.loads(path.read_text()))
    if path.is_dir() and not found:
        raise ValueError(f"{path} holds no archive")
    return conclude(found, read_hashes(HASHES.read_text()), where_listed)


def main(arguments: Sequence[str]) -> int:
    """Runs the command line."""
    try:
        match arguments:
            case ["write"]:
                status, lines = _write()
            case ["check", path, *rest] if set(rest) <= {"--where-listed"}:
                status, lines = _check(Path(path), bool(rest))
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        print(f"hashes: {error}", file=sys.stderr)
        return WRONG
    print(*lines, sep="\n", file=sys.stderr if status == WRONG else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
