"""The index's tables, and where its file lies.

An item's number is its source's number and its place there, so that an item that is read twice
stands once: an entry's id of a journal; step, phase, process and line of a run's rollout.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

FORM = 4
PLACE_BITS = 50
_LINE_BITS, _PROCESS_BITS = 18, 8
_OLD_S = 30 * 86_400.0
PREVIEW = 160
SLOT_S = 60

_SCHEMA = """
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, slug TEXT NOT NULL,
    identity TEXT NOT NULL DEFAULT '', low INTEGER NOT NULL DEFAULT 0,
    high INTEGER NOT NULL DEFAULT -1, done REAL NOT NULL DEFAULT 0, problem TEXT NOT NULL DEFAULT ''
);
CREATE TABLE units (
    source INTEGER NOT NULL, step INTEGER NOT NULL, phase TEXT NOT NULL, mark TEXT NOT NULL,
    bad INTEGER NOT NULL, problem TEXT NOT NULL, PRIMARY KEY (source, step, phase)
) WITHOUT ROWID;
CREATE TABLE names (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE kinds (
    id INTEGER PRIMARY KEY, source INTEGER NOT NULL, phase TEXT NOT NULL, verifier TEXT NOT NULL,
    version TEXT NOT NULL, verdict TEXT NOT NULL, fault TEXT NOT NULL, suspicions TEXT NOT NULL,
    environment TEXT NOT NULL, ending TEXT NOT NULL, truncated INTEGER NOT NULL,
    labels TEXT NOT NULL, appeal TEXT NOT NULL,
    UNIQUE (source, phase, verifier, version, verdict, fault, suspicions, environment, ending,
            truncated, labels, appeal)
);
CREATE TABLE items (
    number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, step INTEGER, time_s REAL, reward REAL,
    length INTEGER, draw INTEGER, sample INTEGER, problem INTEGER, turns INTEGER, calls INTEGER,
    trained REAL, advantage REAL, seconds REAL, item BLOB
);
CREATE INDEX by_kind ON items (kind, step, reward, length, time_s);
CREATE INDEX by_time ON items (time_s, kind);
CREATE TABLE texts (
    number INTEGER PRIMARY KEY, response TEXT NOT NULL, answer TEXT, prompt TEXT NOT NULL,
    labels TEXT NOT NULL
);
CREATE TABLE cells (
    kind INTEGER NOT NULL, step INTEGER NOT NULL, slot INTEGER NOT NULL, items INTEGER NOT NULL,
    judged INTEGER NOT NULL, rewards REAL NOT NULL, lengths INTEGER NOT NULL,
    measured INTEGER NOT NULL,
    trained REAL NOT NULL, learnt INTEGER NOT NULL, seconds REAL NOT NULL, timed INTEGER NOT NULL,
    time_min REAL, time_max REAL, reward_min REAL, reward_max REAL, length_min INTEGER,
    length_max INTEGER, PRIMARY KEY (kind, step, slot)
) WITHOUT ROWID;
CREATE TABLE bars (
    kind INTEGER NOT NULL, measure TEXT NOT NULL, value REAL NOT NULL, items INTEGER NOT NULL,
    PRIMARY KEY (kind, measure, value)
) WITHOUT ROWID;
CREATE TABLE searches (
    id INTEGER PRIMARY KEY, what TEXT NOT NULL UNIQUE, used_s REAL NOT NULL
);
CREATE TABLE searched (
    search INTEGER NOT NULL, source INTEGER NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL,
    PRIMARY KEY (search, source, low)
) WITHOUT ROWID;
CREATE TABLE hits (
    search INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (search, number)
) WITHOUT ROWID;
CREATE TABLE changes (version INTEGER NOT NULL);
INSERT INTO changes VALUES (1);
"""
LATER = (
    "CREATE INDEX IF NOT EXISTS by_item ON items (item, kind, time_s, reward)",
    "CREATE INDEX IF NOT EXISTS by_problem ON items (problem, kind)",
)
"""Made once what was there at the beginning is indexed: sorting all is cheaper than one by one."""
NO_STEP = -1


def place_of(step: int, phase: str, process: int, line: int) -> int:
    """The place of a rollout in its run; `line` of the file, from 0."""
    unit = step * 2 + (phase == "eval")
    return (((unit << _PROCESS_BITS) | process) << _LINE_BITS) | line


def place_parts(place: int) -> tuple[int, str, int, int]:
    """Step, phase, process and line of a rollout's place."""
    line = place & ((1 << _LINE_BITS) - 1)
    process = (place >> _LINE_BITS) & ((1 << _PROCESS_BITS) - 1)
    unit = place >> (_LINE_BITS + _PROCESS_BITS)
    return unit >> 1, "eval" if unit & 1 else "train", process, line


def unit_range(source: int, step: int, phase: str) -> tuple[int, int]:
    """The numbers of a step's rollouts: the first, and one past the last."""
    first = (source << PLACE_BITS) + place_of(step, phase, 0, 0)
    return first, first + (1 << (_LINE_BITS + _PROCESS_BITS))


def source_range(source: int) -> tuple[int, int]:
    """The numbers of a source's items: the first, and one past the last."""
    return source << PLACE_BITS, (source + 1) << PLACE_BITS


MOST_LINES, MOST_PROCESSES = 1 << _LINE_BITS, 1 << _PROCESS_BITS


class IndexFile:
    """The index's file, locked for this process.

    Kept in the user's cache folder; where that cannot be written, or another process indexes the
    same sources, in a temporary folder that goes at the end.

    Args:
        paths: what is viewed.
        cache: folder of indexes; by default $XDG_CACHE_HOME/assay/viewer.

    Attributes:
        path: of the file.
        kept: it stays for the next time.

    Raises:
        OSError: not even a temporary file can be made.
    """

    def __init__(self, paths: Iterable[Path], cache: Path | None = None) -> None:
        names = "\0".join(sorted(str(path.resolve()) for path in paths))
        name = hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()[:24]
        self._lock = -1
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.path = (cache or cache_folder()) / f"{name}.sqlite"
        self.kept = self._take()
        if self.kept:
            try:
                self._prepare()
            except (sqlite3.Error, OSError):
                self.kept = self._anew()
        if not self.kept:
            self._in_temporary()

    def renew(self) -> None:
        """Begins anew: what the file held is broken.

        Raises:
            sqlite3.Error, OSError: it cannot be written.
        """
        self._remove()
        self._prepare()

    def _anew(self) -> bool:
        """Whether an empty file could take the place of one that is broken or of another form."""
        try:
            self.renew()
        except (sqlite3.Error, OSError):  # no room, most likely
            self.close()
            return False
        return True

    def _in_temporary(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="assay-view-")
        self.path = Path(self._folder.name) / "index.sqlite"
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Gives the lock back; a temporary file goes."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _take(self) -> bool:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(f"{self.path}-lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
        self._lock = lock
        with contextlib.suppress(OSError):
            self._forget_old()
        return True

    def _forget_old(self) -> None:
        bound = time.time() - _OLD_S
        for path in self.path.parent.glob("*.sqlite"):
            if path != self.path and path.stat().st_mtime < bound:
                for part in (path, *(Path(f"{path}{end}") for end in ("-wal", "-shm", "-lock"))):
                    part.unlink(missing_ok=True)

    def _remove(self) -> None:
        for end in ("", "-wal", "-shm"):
            Path(f"{self.path}{end}").unlink(missing_ok=True)

    def _prepare(self) -> None:
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        with contextlib.closing(open_index(self.path)) as database:
            database.execute("PRAGMA journal_mode = WAL").fetchone()
            form = database.execute("PRAGMA user_version").fetchone()[0]
            tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if form != FORM and tables:
                raise sqlite3.DatabaseError("an index of another form")
            if not tables:
                database.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {FORM}; COMMIT;")
            database.execute("SELECT version FROM changes").fetchone()


def cache_folder() -> Path:
    """Where indexes are kept."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given.startswith("/") else Path("~/.cache").expanduser()
    return base / "assay" / "viewer"


def is_broken(error: Exception) -> bool:
    """Whether a data base's file holds what none does."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def open_index(path: Path, *, write: bool = True) -> sqlite3.Connection:
    """The index's data base; readers see whole changes only."""
    how = "rw" if write else "ro"
    database = sqlite3.connect(
        f"{path.as_uri()}?mode={how}",
        uri=True,
        timeout=10.0,
        isolation_level=None,
        check_same_thread=False,
    )
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    pragmas = ("synchronous = NORMAL", "cache_size = -32768", "temp_store = MEMORY",
               "journal_size_limit = 16777216")  # fmt: skip
    try:
        for pragma in pragmas:
            database.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        database.close()
        raise
    return database
