"""Rows that stay on disk, and are read when they are asked for.

In memory are sixteen bytes a row; the rest is mapped. A .gz file is unpacked once into a temporary
file; a .parquet file becomes an Arrow file in the cache of `datasets`.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import mmap
import os
import shutil
import tempfile
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, overload

from assay.kit.errors import ConfigError

Row = Mapping[str, Any]


class DiskRows(Sequence[Row]):
    """Rows of a .jsonl or .jsonl.gz file, without blank lines; any thread may read.

    Raises:
        ConfigError: the file is missing or unreadable; when it is read, a line is no JSON object.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with _opened(path) as file:
                # the map outlives the file, and a temporary one lives as long as the map
                size = os.fstat(file.fileno()).st_size
                self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        except FileNotFoundError:
            raise ConfigError(
                f"data file {path} does not exist; check data.path (a data set of the hub is "
                "data.name)"
            ) from None
        except (OSError, EOFError) as error:
            raise ConfigError(f"data file {path} cannot be read: {error}") from error
        self._starts, self._lines = array("q"), array("q")
        start, number = 0, 0
        while start < len(self._text):
            number += 1
            end = self._text.find(b"\n", start) + 1 or len(self._text)
            if self._text[start:end].strip():
                self._starts.append(start)
                self._lines.append(number)
            start = end

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        end = self._starts[place + 1] if place + 1 < len(self) else len(self._text)
        text = self._text[self._starts[place] : end]
        where = f"{self._path}, line {self._lines[place]}"
        try:
            row = json.loads(text)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{where}: not valid JSON: {error}") from error
        if not isinstance(row, dict):
            raise ConfigError(f"{where}: expected a JSON object, got {type(row).__name__}")
        return row


def _opened(path: Path) -> IO[bytes]:
    if path.suffix != ".gz":
        return path.open("rb")
    with contextlib.ExitStack() as closing:
        whole = closing.enter_context(tempfile.TemporaryFile())
        with gzip.open(path, "rb") as packed:
            shutil.copyfileobj(packed, whole)
        whole.flush()
        closing.pop_all()  # the caller closes it
        return whole


def parquet_rows(path: Path) -> Any:
    """A mapped `datasets.Dataset` of a .parquet file.

    Raises:
        ConfigError: the file is missing or unreadable.
    """
    import datasets  # noqa: PLC0415  # takes a second to import; only this source needs it

    if not path.is_file():
        raise ConfigError(f"data file {path} does not exist; check data.path")
    try:
        return datasets.Dataset.from_parquet(str(path))
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise ConfigError(f"data file {path} cannot be read: {error}") from error
