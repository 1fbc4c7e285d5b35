"""Files of rows in four forms, by the end of their name: lines in, lines out.

    .jsonl.gz    gzip
    .jsonl.zst   zstd, by pyarrow
    .parquet     a row is a line; by pyarrow
    all others   JSON Lines as it is

Parquet has one type in a column. A column of the output whose values no such type holds unchanged
(texts beside lists, objects with different keys) is written as texts of JSON, and the caller is
told which. Read, a date is a text (ISO 8601), bytes are base64, and a decimal number is a text.
"""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import io
import json
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from assay.kit.errors import ConfigError

_CHUNK_ROWS = 2048
_UNFIT = (ValueError, TypeError, OverflowError, NotImplementedError)  # no Arrow type holds it

Pack = Callable[[BinaryIO, Path], list[str]]
"""Writes JSON Lines to a path in its form; gives the names of columns that became texts of JSON."""


def lines_of(path: Path, name: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file of rows, numbered from 1. `name` is for errors.

    Raises:
        ConfigError: It cannot be read, or pyarrow is needed and not installed.
    """
    try:
        with path.open("rb") as file:
            yield from enumerate(_unpacked(path, file), start=1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ConfigError(
            f"{name} is not a whole gzip file ({error}); fetch or pack it again"
        ) from error
    except FileNotFoundError as error:
        raise ConfigError(f"{name} is not there; correct the path") from error
    except OSError as error:
        if path.suffix in _BY_PYARROW and error.errno is None:
            raise _not_whole(path, name, error) from error
        raise ConfigError(f"{name} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        if path.suffix != ".parquet":
            raise
        raise _not_whole(path, name, error) from error


def pack_of(path: Path) -> Pack | None:
    """What packs lines into the form of this path; None: they stay as they are.

    Raises:
        ConfigError: pyarrow is needed and not installed.
    """
    if path.suffix in _BY_PYARROW:
        pyarrow = _pyarrow(path.name)
        pack = _pack_zstd if path.suffix == ".zst" else _pack_parquet
        return partial(pack, pyarrow)
    return _pack_gzip if path.suffix == ".gz" else None


_BY_PYARROW = (".zst", ".parquet")


def _not_whole(path: Path, name: str, error: Exception) -> ConfigError:
    kind = {".zst": "zstd", ".parquet": "Parquet"}[path.suffix]
    return ConfigError(f"{name} is not a whole {kind} file ({error}); fetch or pack it again")


def _pyarrow(name: str) -> Any:
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError as error:
        raise ConfigError(
            f"{name} needs the package pyarrow, which is not installed; run: pip install pyarrow"
        ) from error


def _unpacked(path: Path, file: BinaryIO) -> Iterable[bytes]:
    if path.suffix == ".gz":
        return gzip.GzipFile(fileobj=file)
    if path.suffix == ".zst":
        stream = _pyarrow(path.name).CompressedInputStream(file, "zstd")
        return io.BufferedReader(stream)
    if path.suffix == ".parquet":
        return _rows_of_parquet(_pyarrow(path.name), file)
    return file


def _rows_of_parquet(pyarrow: Any, file: BinaryIO) -> Iterator[bytes]:
    for batch in pyarrow.parquet.ParquetFile(file).iter_batches(_CHUNK_ROWS):
        for row in batch.to_pylist():
            yield as_line(row)


def as_line(row: Mapping[str, Any]) -> bytes:
    """A row of a table as a line of JSON; see above for what JSON has no form of."""
    return json.dumps(row, default=_as_json).encode()


def _as_json(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value if isinstance(value, Decimal | dt.timedelta) else repr(value))


def _pack_gzip(lines: BinaryIO, path: Path) -> list[str]:
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as out:
        shutil.copyfileobj(lines, out)
    return []


def _pack_zstd(pyarrow: Any, lines: BinaryIO, path: Path) -> list[str]:
    with path.open("wb") as raw, pyarrow.CompressedOutputStream(raw, "zstd") as out:
        while block := lines.read(1 << 20):
            out.write(block)
    return []


def _pack_parquet(pyarrow: Any, lines: BinaryIO, path: Path) -> list[str]:
    types = _column_types(pyarrow, lines)
    texts = _unfaithful(pyarrow, lines, types)
    schema = pyarrow.schema(
        [(name, pyarrow.string() if name in texts else kind) for name, kind in types.items()]
    )
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for rows in _chunks(lines):
            columns = [
                pyarrow.array(_column(rows, field.name, as_text=field.name in texts), field.type)
                for field in schema
            ]
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
    return sorted(texts)


def _chunks(lines: BinaryIO) -> Iterator[list[dict[str, Any]]]:
    lines.seek(0)
    while rows := [json.loads(line) for line in islice(lines, _CHUNK_ROWS)]:
        yield rows


def _column(rows: list[dict[str, Any]], name: str, *, as_text: bool) -> list[Any]:
    values = [row.get(name) for row in rows]
    if as_text:
        return [None if value is None else json.dumps(value) for value in values]
    return values


def _column_types(pyarrow: Any, lines: BinaryIO) -> dict[str, Any]:
    """An Arrow type for each column, in the order of the rows' keys; null where none fits."""
    types: dict[str, Any] = {}
    unfit: set[str] = set()
    for rows in _chunks(lines):
        for name in dict.fromkeys(key for row in rows for key in row):
            if name in unfit:
                continue
            try:
                kind = pyarrow.array(_column(rows, name, as_text=False)).type
                types[name] = _merged(pyarrow, types.get(name, kind), kind)
            except _UNFIT:
                types[name] = pyarrow.null()
                unfit.add(name)
    return types


def _merged(pyarrow: Any, first: Any, second: Any) -> Any:
    if first == second:
        return first
    schemas = [pyarrow.schema([("", kind)]) for kind in (first, second)]
    return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type


def _unfaithful(pyarrow: Any, lines: BinaryIO, types: Mapping[str, Any]) -> set[str]:
    """The columns whose values do not come back equal from their type."""
    found: set[str] = set()
    for rows in _chunks(lines):
        for name, kind in types.items():
            if name in found:
                continue
            values = _column(rows, name, as_text=False)
            try:
                same = pyarrow.array(values, kind).to_pylist() == values
            except _UNFIT:
                same = False
            if not same or _holds_empty_struct(pyarrow, kind):
                found.add(name)
    return found


def _holds_empty_struct(pyarrow: Any, kind: Any) -> bool:
    """Parquet has no objects without keys."""
    if pyarrow.types.is_struct(kind):
        fields = [kind.field(index).type for index in range(kind.num_fields)]
        return not fields or any(_holds_empty_struct(pyarrow, part) for part in fields)
    return pyarrow.types.is_list(kind) and _holds_empty_struct(pyarrow, kind.value_type)
