"""An output file that appears only when it is complete, and whose writing can be resumed.

Rows go to `OUT.partial`, and their origin to `OUT.partial.json`. At the end the first replaces OUT
and the second is removed; a file of another form than JSON Lines is packed from the first. A run
with the same input and options continues after the last complete row.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from assay.cli.scoring.files import Pack
from assay.kit.errors import ConfigError


class PartialFile:
    """Writes one output file at `path`.

    `made_from` is the rows' origin, as plain data; rows of another origin are discarded. `on_kept`
    gets each row that an interrupted run left, in order.

    Attributes:
        kept: how many rows an interrupted run left.
        discarded: rows of another origin were discarded.
        partial: where the rows are until the file is complete.

    Raises:
        ConfigError: The folder does not exist, the path is a folder, or another run is writing the
            same file.
    """

    def __init__(
        self,
        path: Path,
        made_from: Mapping[str, Any],
        on_kept: Callable[[dict[str, Any]], None],
    ) -> None:
        if path.is_dir():
            raise ConfigError(f"the output {path} is a folder; name a file")
        if not path.parent.is_dir():
            raise ConfigError(
                f"the folder of the output {path} is not there; make it, or correct the path"
            )
        self._path = path
        self.partial = path.with_name(path.name + ".partial")
        self._origin = path.with_name(path.name + ".partial.json")
        self._made_from = json.dumps(made_from, sort_keys=True)
        self.discarded = False
        self.kept = 0
        self._file = self._open()
        try:
            self._resume(on_kept)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> PartialFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        empty = self._file.tell() == 0
        self._file.close()
        if error is not None and empty:
            self.partial.unlink(missing_ok=True)
            self._origin.unlink(missing_ok=True)

    def write(self, line: bytes) -> None:
        """Adds a row, with its line break."""
        self._file.write(line)

    def flush(self) -> None:
        """Hands the written rows to the system."""
        self._file.flush()

    def finish(
        self,
        select: Callable[[dict[str, Any]], bool] | None = None,
        pack: Pack | None = None,
    ) -> list[str]:
        """Puts the file in its place, with the rows that `select` accepts (None: all).

        Returns:
            What `pack`, which gives the file its form, returns; empty without it.
        """
        if select is not None:
            self._thin_out(select)
        self._file.flush()
        os.fsync(self._file.fileno())
        changed = self._put(pack)
        self._origin.unlink(missing_ok=True)
        return changed

    def _put(self, pack: Pack | None) -> list[str]:
        if pack is None:
            self.partial.replace(self._path)
            return []
        packed = self._path.with_name(self._path.name + ".packing")
        try:
            self._file.seek(0)
            changed = pack(self._file, packed)
            with packed.open("rb") as written:
                os.fsync(written.fileno())
            packed.replace(self._path)
        finally:
            packed.unlink(missing_ok=True)
        self.partial.unlink()
        return changed

    def _thin_out(self, select: Callable[[dict[str, Any]], bool]) -> None:
        """Leaves the selected rows only. An interruption after this starts anew."""
        self._origin.unlink(missing_ok=True)
        self._file.seek(0)
        with tempfile.TemporaryFile(dir=self._path.parent) as chosen:
            chosen.writelines(line for line in self._file if select(json.loads(line)))
            chosen.seek(0)
            self._file.truncate(0)
            shutil.copyfileobj(chosen, self._file)

    def _open(self) -> BinaryIO:
        try:
            file = self.partial.open("a+b")
        except OSError as error:
            raise ConfigError(
                f"the output {self._path} cannot be written: {error.strerror}"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise ConfigError(
                f"another run is writing {self.partial}; wait for it, or stop it"
            ) from error
        return file

    def _resume(self, on_kept: Callable[[dict[str, Any]], None]) -> None:
        """Keeps the complete rows of an interrupted run of the same origin."""
        same = (
            self._origin.is_file() and self._origin.read_text(encoding="utf-8") == self._made_from
        )
        self._file.seek(0)
        if same:
            for row in _whole_rows(self._file):
                on_kept(row)
                self.kept += 1
        else:
            self.discarded = bool(self._file.read(1))
            self._file.truncate(0)
            self._origin.write_text(self._made_from, encoding="utf-8")
        self._file.seek(0, os.SEEK_END)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Writes an indented JSON file, which appears whole.

    Raises:
        ConfigError: The system refuses.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


def _whole_rows(file: BinaryIO) -> Iterator[dict[str, Any]]:
    """The rows up to the first torn one; the file is cut behind them."""
    end = 0
    for line in file:
        try:
            row = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            row = None
        if not isinstance(row, dict):
            break
        end += len(line)
        yield row
    file.truncate(end)
