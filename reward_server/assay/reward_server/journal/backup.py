"""`assay journal backup`: a copy of a journal, whole and of one moment, while the server writes.

SQLite's own backup, in one step: what is written meanwhile goes to the log and is in none of it. In
several steps it would begin again at each entry that comes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import click

from assay.kit.errors import ConfigError
from assay.viewer.journals.reader import Reader

_FILE = click.Path(path_type=Path, dir_okay=False)
_BUSY_S = 30.0


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What a copy holds.

    Attributes:
        last_id: of the newest entry; 0 for none.
    """

    entries: int
    last_id: int
    size_bytes: int


def back_up(source: Path, target: Path) -> BackedUp:
    """Copies a journal into one new file, for its owner alone (mode 0600), and reads the copy.

    Raises:
        ConfigError: the source is no journal, the target is there already or cannot be written, or
            the copy is not sound. Then there is no target.
    """
    with Reader(source):
        pass
    if os.path.lexists(target):
        raise ConfigError(f"{target} is there already; a backup overwrites nothing")
    partial = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        _copy(source, partial)
        found = _checked(partial)
        _keep(partial, target)
    except sqlite3.Error as error:
        raise ConfigError(f"{source} cannot be copied to {target}: {error}") from error
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}") from error
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            Path(f"{partial}{end}").unlink(missing_ok=True)
    return found


def _copy(source: Path, partial: Path) -> None:
    uri = f"{source.resolve().as_uri()}?mode=ro"
    with (
        contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as live,
        contextlib.closing(sqlite3.connect(partial, isolation_level=None)) as copy,
    ):
        live.backup(copy)
        # One file, which needs no other beside it to be read.
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()


def _checked(copy: Path) -> BackedUp:
    with contextlib.closing(sqlite3.connect(f"{copy.resolve().as_uri()}?mode=ro", uri=True)) as db:
        told = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
    if told != ["ok"]:
        raise ConfigError(f"the copy is not sound: {told[0]}; so is the journal, perhaps")
    with Reader(copy) as reader:
        entries, last_id = reader.summary().entries, reader.last_id()
    return BackedUp(entries, last_id, copy.stat().st_size)


def _keep(partial: Path, target: Path) -> None:
    """Gives the copy its name, if no other file has it by now, when it is on the disk."""
    for path in (partial, partial.parent):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    try:
        os.link(partial, target)
    except FileExistsError:
        raise ConfigError(f"{target} is there already; a backup overwrites nothing") from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise
        partial.rename(target)  # a file system without links


@click.command()
@click.argument("path", type=_FILE)
@click.argument("out", type=_FILE)
def backup(path: Path, out: Path) -> None:
    """Copy a journal to OUT, a new file, while the server writes or afterwards.

    The copy is of one moment, is checked, and holds prompts and responses like the journal itself.
    To restore: stop the server, put the copy in the journal's place, start it.
    """
    found = back_up(path, out)
    click.echo(
        f"{found.entries} entries up to number {found.last_id}, {found.size_bytes} bytes, in {out}"
    )
