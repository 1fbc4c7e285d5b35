"""A run's rollouts on disk: RUN/rollouts/, a file for each step and process.

docs/reference/rollouts.md has the keys of a row. A file appears whole; who reads beside the run, or
after it died, sees whole steps. What a machine's end cut short is left out, and said.

    000012.jsonl.gz         step 12 of training, as the first process has it
    000012.p1.jsonl.gz      and the second one
    000012.eval.jsonl.gz    an evaluation after step 12; step 0 is before training
    timeline.jsonl          what the first process did when; timeline.p1.jsonl the second one
    vocabulary.json.gz      the bytes of each token
    thinned.json            which steps are gone, where run.rollouts_mb said so
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.pieces import Pieces
from assay.kit.runs.records import Row, read_rows, truncate_after

VERSION = 1
FOLDER = "rollouts"
TRAIN, EVAL = "train", "eval"
VOCABULARY = "vocabulary.json.gz"
_LEVEL = 1  # of gzip; 6 takes half as long again for a sixth less
_NEWEST = 10  # steps that no cap takes
_NAME = re.compile(r"(\d{6,})(\.eval)?(?:\.p(\d+))?\.jsonl\.gz")


@dataclass(frozen=True, slots=True, order=True)
class RolloutFile:
    """One file of rollouts.

    Attributes:
        step: from 1; of an evaluation the steps before it.
        phase: "train" or "eval".
        process: from 0.
    """

    step: int
    phase: str
    process: int
    path: Path


def path_for(folder: Path, step: int, phase: str = TRAIN, process: int = 0) -> Path:
    """Where a step's rollouts of a process lie in RUN/rollouts."""
    parts = (".eval" if phase == EVAL else "", f".p{process}" if process else "")
    return folder / f"{step:06}{''.join(parts)}.jsonl.gz"


def files_in(folder: Path) -> list[RolloutFile]:
    """The files of RUN/rollouts, by step; a step's training before its evaluation."""
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        match = _NAME.fullmatch(path.name)
        if match is not None:
            phase = EVAL if match[2] else TRAIN
            found.append(RolloutFile(int(match[1]), phase, int(match[3] or 0), path))
    return sorted(found, key=lambda one: (one.step, one.phase == EVAL, one.process))


def is_rollouts(path: Path) -> bool:
    """Whether this is a run with rollouts, its folder of them, or one of their files."""
    if path.is_dir():
        return bool(files_in(path) or files_in(path / FOLDER))
    return _NAME.fullmatch(path.name) is not None


def write_rollouts(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Writes a file of rows, whole or not at all; returns its bytes."""
    beside = path.with_name(path.name + ".new")
    beside.parent.mkdir(parents=True, exist_ok=True)
    # without spaces, and in ASCII: half a surrogate pair, which a policy may write, is no UTF-8
    lines = (json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n" for row in rows)
    try:
        with gzip.GzipFile(beside, "wb", compresslevel=_LEVEL, mtime=0) as file:
            file.write("".join(lines).encode())
        size = beside.stat().st_size
        beside.replace(path)
    except BaseException:
        if beside.is_file():
            beside.unlink()
        raise
    return size


def write_vocabulary(folder: Path, pieces: Pieces) -> int:
    """Writes RUN/rollouts/vocabulary.json.gz, whole or not at all; returns its bytes."""
    row = {
        "version": VERSION,
        "kind": pieces.kind,
        "special": sorted(pieces.special),
        "pieces": [None if piece is None else piece.decode("latin-1") for piece in pieces.of],
    }
    return write_rollouts(folder / VOCABULARY, [row])


def read_vocabulary(path: Path) -> Pieces | None:
    """What each token of a run, or of its folder of rollouts, stands for; None where it is lost.

    Raises:
        ConfigError: it is of a later version.
    """
    for folder in (path, path / FOLDER):
        for row in _rows_of(folder / VOCABULARY, lambda _note: None):
            pieces = [None if piece is None else piece.encode("latin-1") for piece in row["pieces"]]
            return Pieces(row["kind"], pieces, frozenset(row["special"]))
    return None


def read_rollouts(
    path: Path,
    *,
    steps: Callable[[int], bool] = lambda _step: True,
    phase: str | None = None,
    note: Callable[[str], None] = lambda _text: None,
) -> Iterator[Row]:
    """The rows of a run, of its folder of rollouts, or of one file, step by step.

    Of a rollout that two processes tell of, the row of the one that trained on it.

    Args:
        path: of a run, of its folder of rollouts, or of a file.
        steps: which are read.
        phase: "train" or "eval"; None for both.
        note: gets a sentence for each file of which something is missing.

    Raises:
        ConfigError: there are no rollouts, or a row is of a later version.
    """
    if path.is_dir() or not path.exists():
        files = files_in(path) or files_in(path / FOLDER)
        if not files:
            raise ConfigError(
                f"{path} holds no rollouts; name a run that has a folder {FOLDER!r} (see "
                "run.rollouts), or a file"
            )
    else:
        match = _NAME.fullmatch(path.name)
        parts = (int(match[1]), EVAL if match[2] else TRAIN, 0) if match else (0, TRAIN, 0)
        files = [RolloutFile(*parts, path)]
    chosen = [one for one in files if steps(one.step) and phase in (None, one.phase)]
    groups: dict[tuple[int, str], list[RolloutFile]] = {}
    for one in chosen:
        groups.setdefault((one.step, one.phase), []).append(one)
    for group in groups.values():
        yield from _merged([row for one in group for row in _rows_of(one.path, note)])


def thinned(folder: Path) -> dict[str, Any] | None:
    """What RUN/rollouts/thinned.json says; None where every step is there."""
    path = folder / "thinned.json"
    found: dict[str, Any] | None = None
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))
    return found


def thin(folder: Path, megabytes: float) -> None:
    """Removes old steps of training until the folder is small enough, evenly over the run.

    Steps that are multiples of 2 stay, then of 4, and so on; the first and the newest ten always.
    """
    files = files_in(folder)
    size = {one.path: one.path.stat().st_size for one in files}
    total, room = sum(size.values()), megabytes * 2**20
    steps = sorted({one.step for one in files if one.phase == TRAIN})
    old = set(steps[1:-_NEWEST])
    told = thinned(folder) or {"kept_every": 1, "removed": 0}
    every = told["kept_every"]
    gone = 0
    while total > room and old:
        gone_now = {step for step in old if step % every}
        if not gone_now:
            every *= 2
            continue
        for step in sorted(gone_now):
            for one in files:
                if one.step == step and one.phase == TRAIN:
                    one.path.unlink(missing_ok=True)
                    total -= size[one.path]
            old.discard(step)
            gone += 1
            if total <= room:
                break
    if gone:
        said = {
            "kept_every": every,
            "removed": told["removed"] + gone,
            "through": max(steps[:-_NEWEST], default=0),
            "why": f"the files were larger than run.rollouts_mb ({megabytes:g})",
        }
        (folder / "thinned.json").write_text(json.dumps(said) + "\n", encoding="utf-8")


def drop_after(folder: Path, step: int) -> None:
    """Removes what a run wrote after the step that it goes on from, and what is half written."""
    for one in files_in(folder):
        # an evaluation after the last step that counts is made before the next one begins
        if one.step > step:
            one.path.unlink(missing_ok=True)
    if folder.is_dir():
        for path in folder.glob("*.gz.new"):
            path.unlink(missing_ok=True)
        for path in folder.glob("timeline*.jsonl"):
            truncate_after(path, step)


def read_timeline(folder: Path) -> list[Row]:
    """What all processes did when, by its start; without a row that was cut short."""
    found = [row for path in folder.glob("timeline*.jsonl") for row in read_rows(path)]
    return sorted(found, key=lambda row: float(row["start"]))


def timeline_for(folder: Path, process: int) -> Path:
    """Where a process writes what it did when."""
    return folder / (f"timeline.p{process}.jsonl" if process else "timeline.jsonl")


def _rows_of(path: Path, note: Callable[[str], None]) -> Iterator[Row]:
    count = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                if row.get("version", 0) > VERSION:
                    raise ConfigError(
                        f"{path} is of version {row['version']}, and this release reads up to "
                        f"{VERSION}; read it with the release that wrote it"
                    )
                yield row
                count += 1
    except FileNotFoundError:
        note(f"{path} is gone: the run thinned its rollouts out")
    except (EOFError, OSError, zlib.error, ValueError) as error:
        note(
            f"{path} is cut short behind row {count} ({type(error).__name__}); the rest is left out"
        )


def _merged(rows: list[Row]) -> list[Row]:
    by_place: dict[tuple[int, int], Row] = {}
    for row in rows:
        place = (row.get("draw", 0), row.get("sample", 0))
        before = by_place.get(place)
        if before is None or (row.get("trained") is not None and before.get("trained") is None):
            by_place[place] = row
    return [by_place[place] for place in sorted(by_place)]
