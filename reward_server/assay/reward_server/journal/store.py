"""The journal's file: entries in SQLite, in the order of their arrival, bounded in size.

Covered: a process that is killed at any moment leaves a file that opens, with all committed batches
(WAL). The file and its write-ahead log together stay below the limit; the oldest entries go for new
ones. The file is for its owner alone (mode 0600): it holds prompts and responses.

Not covered: the last batches after a power cut (`synchronous=NORMAL`: the file is sound, but may
lack what was committed shortly before). Network file systems, whose locks SQLite cannot rely on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from assay.kit.errors import ConfigError
from assay.reward_server.journal.entries import Entry, Row, weight_of
from assay.viewer.journals.reader import APPLICATION_ID, FORMAT, SPAN

_ADDED = {1: ("labels", "parameters", "reference_kind", "cut", "appeal"), 2: ("appeal",)}
"""The columns that an older format lacks, with empty ones in its entries."""
MIN_LIMIT_BYTES = 8 * 2**20
BATCH_ROWS = 512
BATCH_BYTES = 2**20
_LOG_PAGES = 256
_LOG_BYTES = 4 * 2**20
_BUSY_S = 0.2
_CLAIM_S = 5.0
_TYPES = {"float": "REAL", "int": "INTEGER", "bool": "INTEGER", "bytes": "BLOB", "str": "TEXT"}

COLUMNS = tuple(field.name for field in fields(Entry))
_INSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608 - no value is in it


def _schema() -> str:
    columns = [_column(field.name, str(field.type)) for field in fields(Entry)]
    columns += [
        "CHECK ((verdict IS NULL) <> (fault IS NULL))",
        "CHECK ((verdict IS NULL) = (reward IS NULL))",
    ]
    entries = ", ".join(["id INTEGER PRIMARY KEY AUTOINCREMENT", *columns])
    return (
        f"CREATE TABLE entries ({entries});"
        "CREATE TABLE totals (dropped INTEGER NOT NULL, expired INTEGER NOT NULL);"
        "INSERT INTO totals SELECT 0, 0;"
    )


def _column(name: str, kind: str) -> str:
    kind, _, optional = kind.partition(" | ")
    default = " DEFAULT '{}'" if name == "labels" else ""
    return f"{name} {_TYPES[kind]}{'' if optional else f' NOT NULL{default}'}"


class Lost(Exception):
    """The file has gone, or can no longer be written. One line says why."""


class Store:
    """A journal, open for writing. Belongs to the thread that made it; one writer for a file.

    Args:
        path: the file, made where there is none. Beside it lie PATH-wal, PATH-shm and PATH-lock.
        limit_bytes: most bytes of the file and its log together; at least MIN_LIMIT_BYTES.

    Attributes:
        expired: entries that went for new ones, since the store was opened.

    Raises:
        ConfigError: the folder is not there or may not be written, the file is another program's
            data base or of a later format, or another process writes to it.
        sqlite3.Error, OSError: the file is broken, or the disk full.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        if limit_bytes < MIN_LIMIT_BYTES:
            raise ConfigError(f"a journal needs at least {MIN_LIMIT_BYTES // 2**20} MiB")
        self.expired = 0
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._limit_bytes = limit_bytes - _LOG_BYTES
        with contextlib.ExitStack() as undo:
            self._lock = _claim(path)
            undo.callback(os.close, self._lock)
            self._inode = path.stat().st_ino
            self._db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
            undo.callback(self._db.close)
            self._prepare()
            self._page_bytes = self._number("PRAGMA page_size")
            undo.pop_all()

    def append(self, rows: Sequence[Row], dropped: int = 0) -> bool:
        """Keeps a batch, all or nothing; the oldest entries go where there is no room.

        Args:
            rows: entries; at most BATCH_ROWS and about BATCH_BYTES, for the bound to hold.
            dropped: entries that were dropped before they came here; added to the file's total.

        Returns:
            False where nothing was kept: another process holds the file, or a reader holds its log,
                which may not grow.

        Raises:
            Lost: the file has gone.
            sqlite3.Error: it cannot be written.
        """
        self._look()
        try:
            if not (self._log_has_room() and self._make_room(sum(map(weight_of, rows)))):
                return False
            with self._transaction():
                self._db.executemany(_INSERT, rows)
                if dropped:
                    self._db.execute("UPDATE totals SET dropped = dropped + ?", (dropped,))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return False
            raise
        return True

    def close(self) -> None:
        """Writes the log into the file and closes it. May be called more than once."""
        try:
            self._db.close()
        finally:
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    def _prepare(self) -> None:
        found = self._number("PRAGMA application_id"), self._number("PRAGMA user_version")
        if found == (0, 0) and not self._number("SELECT count(*) FROM sqlite_master"):
            self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._db.execute("PRAGMA journal_mode = WAL")
            # One transaction: a process that is killed here leaves a new file or a whole journal.
            self._db.executescript(
                f"BEGIN; {_schema()} PRAGMA application_id = {APPLICATION_ID};"
                f"PRAGMA user_version = {FORMAT}; COMMIT;"
            )
        elif found[0] != APPLICATION_ID:
            raise ConfigError(
                f"--journal {self._path} is another program's data base; choose another file"
            )
        elif found[1] in _ADDED:
            # One transaction, which leaves the entries where they are.
            kinds = {field.name: str(field.type) for field in fields(Entry)}
            added = [f"ADD COLUMN {_column(name, kinds[name])}" for name in _ADDED[found[1]]]
            changes = " ".join(f"ALTER TABLE entries {one};" for one in added)
            self._db.executescript(f"BEGIN; {changes} PRAGMA user_version = {FORMAT}; COMMIT;")
        elif found[1] != FORMAT:
            raise ConfigError(
                f"--journal {self._path} has format {found[1]}, this server writes {FORMAT}; "
                "choose another file"
            )
        for pragma in (
            "journal_mode = WAL",
            "synchronous = NORMAL",
            f"wal_autocheckpoint = {_LOG_PAGES}",
            f"journal_size_limit = {_LOG_BYTES}",
        ):
            self._db.execute(f"PRAGMA {pragma}")

    def _number(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    def _look(self) -> None:
        try:
            same = self._path.stat().st_ino == self._inode
        except OSError as error:
            raise Lost(f"the file is gone: {error.strerror}") from error
        if not same:
            raise Lost("another file took its place")

    def _log_has_room(self) -> bool:
        """Whether one more batch fits into the log; it is emptied if no reader needs it."""
        try:
            size = self._log.stat().st_size
        except FileNotFoundError:
            return True
        if size < _LOG_BYTES // 2:
            return True
        busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def _make_room(self, coming_bytes: int) -> bool:
        """Deletes the oldest entries, a hundredth at a time; False where the log has no room."""
        while self._used_bytes() + 2 * coming_bytes > self._limit_bytes:
            first, last = self._db.execute(SPAN.format("entries")).fetchone()
            if first is None:
                break
            bound = first + max(1, (last - first) // 100)
            with self._transaction():
                gone = self._db.execute("DELETE FROM entries WHERE id < ?", (bound,)).rowcount
                self._db.execute("UPDATE totals SET expired = expired + ?", (gone,))
            self.expired += gone
            if not self._log_has_room():
                return False
        return self._shrink()

    def _shrink(self) -> bool:
        """Gives pages back where the limit is lower than it was when the file grew."""
        while (
            self._number("PRAGMA page_count") * self._page_bytes > self._limit_bytes
            and self._number("PRAGMA freelist_count") > 0
        ):
            self._db.execute(f"PRAGMA incremental_vacuum({_LOG_PAGES})").fetchall()
            if not self._log_has_room():
                return False
        return True

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _used_bytes(self) -> int:
        pages = self._number("PRAGMA page_count") - self._number("PRAGMA freelist_count")
        return pages * self._page_bytes


def _lock(file: int) -> None:
    """Takes the lock, where a server that ends holds it within some seconds.

    Raises:
        BlockingIOError: another server goes on to hold it.
    """
    ends_s = time.monotonic() + _CLAIM_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= ends_s:
                raise
        time.sleep(_BUSY_S)


def _claim(path: Path) -> int:
    """Makes the file if there is none, for its owner alone, and takes the writer's lock."""
    if os.path.isdir(path):  # noqa: PTH112  # a folder that may not be entered raises in Path's
        raise ConfigError(f"--journal {path} is a folder; name a file in it")
    try:
        lock = os.open(f"{path}-lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"--journal {path} cannot be written: {error.strerror}; name a file in a folder that "
            "exists and that this user may write to"
        ) from error
    try:
        _lock(lock)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except BlockingIOError:
        os.close(lock)
        raise ConfigError(
            f"--journal {path}: another server writes to it; give each server a file of its own"
        ) from None
    except OSError as error:
        os.close(lock)
        raise ConfigError(f"--journal {path} cannot be written: {error.strerror}") from error
    return lock
