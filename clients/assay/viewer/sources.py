"""What a path holds: runs and journals, and how far they are."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import sqlite3
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import FOLDER, files_in
from assay.viewer.journals.reader import APPLICATION_ID, SPAN

RUN, JOURNAL = "run", "journal"
_DEEPEST = 3  # folders below the named one
_QUIET_S = 120.0  # a run that has not written for so long, and as long as four of its steps, died
_SLUG = re.compile(r"[^A-Za-z0-9._-]+")
_LEFT_OUT = {"checkpoints", "model", "adapter", "tensorboard", "tokenizer", FOLDER}


@dataclass(frozen=True, slots=True)
class ViewedSource:
    """One run or journal.

    Attributes:
        slug: its name in addresses, the same after a restart and on a copy.
        kind: "run" or "journal".
        path: of the run's folder, or of the journal's file.
        name: to show.
        inside: a run's own journal, whose verdicts the run's rollouts have as well.
    """

    slug: str
    kind: str
    path: Path
    name: str
    inside: bool = False

    @property
    def notes(self) -> Path:
        """Where notes on its items lie."""
        if self.kind == RUN:
            return self.path / "notes.jsonl"
        return self.path.with_name(f"{self.path.name}.notes.jsonl")


def sources_of(paths: Iterable[Path]) -> list[ViewedSource]:
    """The runs and journals that paths hold, each once, in the order of the paths.

    Raises:
        ConfigError: a path is not there, or holds neither.
    """
    found: list[ViewedSource] = []
    seen: set[Path] = set()
    slugs: set[str] = set()
    for path in paths:
        if not path.exists():
            raise ConfigError(f"{path} is not there; name a run's folder, a journal, or a folder")
        those = list(_below(path, path.parent, 0))
        if not those:
            raise ConfigError(
                f"{path} holds no run and no journal; name a run's folder, a journal's file, or a "
                f"folder with some at most {_DEEPEST} levels below"
            )
        for one in those:
            real = one.path.resolve()
            if real not in seen:
                seen.add(real)
                slug = _free(one.slug, slugs)
                slugs.add(slug)
                found.append(replace(one, slug=slug))
    return found


def is_run(path: Path) -> bool:
    """Whether a folder is a run's."""
    if (path / "metrics.jsonl").is_file():
        return True
    return bool(files_in(path / FOLDER)) or (
        (path / "config.toml").is_file() and (path / "run.json").is_file()
    )


def is_journal(path: Path) -> bool:
    """Whether a file is a journal of any format."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except OSError:
        return False
    if head[:15] == b"SQLite format 3" and head[68:72] == APPLICATION_ID.to_bytes(4, "big"):
        return True
    # a young one, whose first page is still in its log
    return path.with_name(f"{path.name}-wal").is_file() and _kind_in_log(path) == APPLICATION_ID


def _kind_in_log(path: Path) -> int:
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as db:
            return int(db.execute("PRAGMA application_id").fetchone()[0])
    except sqlite3.Error:
        return 0


def _below(path: Path, root: Path, depth: int) -> Iterator[ViewedSource]:
    if path.is_file():
        if is_journal(path):
            yield _made(JOURNAL, path, root)
        return
    if is_run(path):
        yield _made(RUN, path, root)
        own = path / "journal.sqlite"
        if is_journal(own):
            yield _made(JOURNAL, own, root, inside=True)
    if depth < _DEEPEST:
        for inner in _listed(path):
            if inner.is_dir() or (inner.name != "journal.sqlite" or not is_run(path)):
                yield from _below(inner, root, depth + 1)


def _listed(path: Path) -> list[Path]:
    try:
        inner = sorted(path.iterdir())
    except OSError:
        return []
    return [
        one
        for one in inner
        if not one.is_symlink()
        and not one.name.startswith(".")
        and (one.name not in _LEFT_OUT if one.is_dir() else one.suffix in (".sqlite", ".db", ""))
    ]


def _made(kind: str, path: Path, root: Path, *, inside: bool = False) -> ViewedSource:
    path = Path(os.path.abspath(path))  # noqa: PTH100  # the name given, not where a link points
    name = path.name
    try:
        below = path.relative_to(os.path.abspath(root)).parts  # noqa: PTH100
        name = "/".join(below[1:]) or path.name
    except ValueError:
        pass
    if inside:
        name = f"{path.parent.name}/{path.name}"
    slug = _SLUG.sub("-", name).strip("-.") or kind
    return ViewedSource(slug[:80], kind, path, name, inside)


def _free(slug: str, taken: set[str]) -> str:
    number, free = 2, slug
    while free in taken:
        free, number = f"{slug}-{number}", number + 1
    return free


def state_of(source: ViewedSource, *, now_s: float | None = None) -> str:
    """Of a source: live, ended, died or unknown; a copy of a run that went on is one that died."""
    if source.kind == JOURNAL:
        return _journal_state(source.path)
    if (source.path / "report.json").is_file():
        return "ended"
    now_s = time.time() if now_s is None else now_s
    times = sorted(_written(source.path))
    if not times:
        return "unknown"
    return "live" if now_s - times[-1] < max(_QUIET_S, 4 * _step_s(source.path)) else "died"


def _written(run: Path) -> Iterator[float]:
    for path in (run / "metrics.jsonl", run / "config.toml", run / "journal.sqlite-wal"):
        try:
            yield path.stat().st_mtime
        except OSError:
            continue
    for one in files_in(run / FOLDER)[-2:]:
        try:
            yield one.path.stat().st_mtime
        except OSError:
            continue


def _step_s(run: Path) -> float:
    rows, _ = read_lines(run / "metrics.jsonl")
    found = [row.get("step_s") for row in rows[-5:]]
    return max((one for one in found if isinstance(one, int | float)), default=0.0)


def _journal_state(path: Path) -> str:
    """Live while a server holds the writer's lock, on this machine."""
    try:
        lock = os.open(f"{path}-lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return "unknown"
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return "live"
    finally:
        os.close(lock)
    return "ended"


def about(source: ViewedSource) -> dict[str, Any]:
    """What a run says of itself: model, preset, data, methods, when it started."""
    if source.kind == JOURNAL:
        return {}
    config = _table(source.path / "config.toml")
    told: dict[str, Any] = {}
    for name, keys in {
        "model": ("model", "name"),
        "preset": ("method", "name"),
        "verifier": ("reward", "verifier"),
        "steps": ("run", "steps"),
        "seed": ("run", "seed"),
    }.items():
        value = config.get(keys[0])
        told[name] = value.get(keys[1]) if isinstance(value, Mapping) else None
    data = config.get("data")
    if isinstance(data, Mapping):
        told["data"] = data.get("path") or data.get("name") or data.get("task")
    method = config.get("method")
    inner = method if isinstance(method, Mapping) else {}
    told["methods"] = [name for name, part in inner.items() if isinstance(part, Mapping)]
    sessions = _json(source.path / "run.json").get("sessions")
    if isinstance(sessions, list) and sessions and isinstance(sessions[0], Mapping):
        told["started"] = sessions[0].get("started")
        told["commit"] = sessions[0].get("commit")
    return {name: value for name, value in told.items() if value not in (None, "", [])}


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The rows of a file of JSON Lines, and how many lines are none; a cut last one is not counted.

    No file: no rows.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return [], 0
    rows, bad = [], 0
    *whole, last = data.split(b"\n")
    for number, line in enumerate([*whole, last]):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            bad += number < len(whole)
            continue
        if isinstance(row, dict):
            rows.append(row)
        else:
            bad += 1
    return rows, bad


def journal_span(path: Path) -> tuple[int, int]:
    """The oldest and the newest entry's id of a journal; (0, -1) where there is none.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    with contextlib.closing(connect(path)) as database:
        first, last = database.execute(SPAN.format("entries")).fetchone()
    return (0, -1) if first is None else (int(first), int(last))


def connect(path: Path) -> sqlite3.Connection:
    """A data base, open for reading, also where its folder cannot be written.

    Raises:
        sqlite3.Error: it is none, or cannot be read.
    """
    database = sqlite3.connect(address(path), uri=True, timeout=5.0, isolation_level=None)
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    return database


def address(path: Path) -> str:
    """SQLite's address of a file that is read; a copy on a read-only disk is taken as it lies."""
    how = "mode=ro"
    if not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists():
        how += "&immutable=1"
    return f"{path.resolve().as_uri()}?{how}"
