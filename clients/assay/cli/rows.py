"""Rows of a JSON Lines file to be scored: reading, checking, output.

The file is read twice: to check every row, then to score it. Memory holds the hash of every id
(about 100 bytes a row), and otherwise one row at a time. `assay.clients.rows.items` reads the keys
of a row.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from assay.api.execution.v1 import execution_pb2
from assay.clients.rows.items import Defaults, Keys, Responder, RowError, id_of, item_of, kind_of
from assay.clients.services import who_brings
from assay.clients.types import Item, Result, ServerInfo
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean

OUTPUT_KEYS = (
    "reward",
    "verdict",
    "answer",
    "components",
    "explanation",
    "suspicions",
    "fault",
)
"""The keys that `output_row` adds; input keys with these names are kept as `input_KEY`."""


@dataclass(frozen=True, slots=True)
class RowSource:
    """A file of rows, and how to read them.

    Attributes:
        path: gzip if its name ends in .gz.
        name: for errors.
        output_keys: keys that the output adds.
        respond: makes a row's response from its reference. None: the row has it.
    """

    path: Path
    name: str
    keys: Keys = field(default_factory=Keys)
    defaults: Defaults = field(default_factory=Defaults)
    output_keys: tuple[str, ...] = OUTPUT_KEYS
    respond: Responder | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file.

    Attributes:
        line: its line in the file, from 1.
        raw: the line as read.
        data: its JSON object.
        id: its own, or its number among the rows, from 1.
    """

    line: int
    raw: bytes
    data: dict[str, Any]
    id: str | int
    item: Item


@dataclass(slots=True)
class RowSurvey:
    """The findings of the first reading of a file.

    Attributes:
        sha256: of the file's text.
        routes: each pair of verifier and task, with the first line that asks for it.
        bare: of those, the first line without a reference, if any.
        tested: a row has tests of a program.
        clashes: keys of the rows that the output adds too.
    """

    count: int = 0
    sha256: str = ""
    routes: dict[tuple[str, str], int] = field(default_factory=dict)
    bare: dict[tuple[str, str], int] = field(default_factory=dict)
    tested: bool = False
    clashes: set[str] = field(default_factory=set)

    def for_verifier(self, name: str) -> RowSurvey:
        """The same rows, all asking for this verifier."""
        route = (name, "")
        return dataclasses.replace(
            self,
            routes=dict.fromkeys([route], min(self.routes.values())),
            bare=dict.fromkeys([route], min(self.bare.values())) if self.bare else {},
        )


def read_rows(source: RowSource) -> Iterator[Row]:
    """The rows of a file, in order, without blank lines.

    Raises:
        ConfigError: The file cannot be read, or a row is wrong; the text names file and line.
    """
    number = 0
    for line, raw in _lines(source):
        if raw.strip():
            number += 1
            yield _parse(source, line, number, raw)


def survey(source: RowSource) -> RowSurvey:
    """Checks every row.

    Raises:
        ConfigError: The file cannot be read, has no rows, a row is wrong, or two rows share an id.
    """
    found = RowSurvey()
    digest = hashlib.sha256()
    line_of_id: dict[bytes, int] = {}
    ours = set(source.output_keys)
    for row in read_rows(source):
        found.count += 1
        digest.update(row.raw)
        key = hashlib.blake2b(str(row.id).encode(errors="surrogatepass"), digest_size=12).digest()
        if key in line_of_id:
            first = line_of_id[key]
            _wrong(
                source,
                row.line,
                f"the id {row.id!r} stands on line {first} too; make ids unique, or leave them out",
            )
        line_of_id[key] = row.line
        route = (row.item.verifier, row.item.task)
        found.routes.setdefault(route, row.line)
        if row.item.reference is None:
            found.bare.setdefault(route, row.line)
        found.tested |= isinstance(row.item.reference, execution_pb2.TestSuite)
        found.clashes.update(ours & row.data.keys())
    if not found.count:
        raise ConfigError(f"{source.name} holds no rows; write one JSON object on each line")
    found.sha256 = digest.hexdigest()
    return found


def check_routes(source: RowSource, found: RowSurvey, info: ServerInfo) -> list[str]:
    """Checks that the server can judge the rows; returns "name version" of each verifier, sorted.

    Raises:
        ConfigError: A verifier or task is unknown, or a required reference is absent.
    """
    names = [verifier.name for verifier in info.verifiers]
    tasks = sorted(task for verifier in info.verifiers for task in verifier.tasks)
    used = set()
    for (verifier, task), line in found.routes.items():
        judge = info.find(verifier, task)
        if judge is None and verifier:
            near = did_you_mean(verifier, names)
            said = f"no verifier has the name {verifier!r}{near}"
            _wrong(
                source, line, f"{said}; this server has: {', '.join(names)}{who_brings(verifier)}"
            )
        if judge is None:
            said = f"no verifier judges the task {task!r}{did_you_mean(task, tasks)}"
            _wrong(source, line, f"{said}; this server has: {', '.join(tasks)}{who_brings(task)}")
        used.add(f"{judge.name} {judge.version}")
        bare = found.bare.get((verifier, task))
        if judge.needs_reference and bare is not None:
            key = source.keys.reference
            remedy = "add it, or name its key with --reference-key"
            _wrong(source, bare, f"the row has no {key!r}, which {judge.name!r} needs; {remedy}")
    return sorted(used)


def output_row(row: Row, result: Result) -> dict[str, Any]:
    """The output for a row: its keys (those that clash as `input_KEY`) and its outcome."""
    out = passed_through(row, OUTPUT_KEYS)
    out.update(outcome_columns(result))
    return out


def passed_through(row: Row, ours: tuple[str, ...]) -> dict[str, Any]:
    """The row's own keys, those that clash with ours as `input_KEY`, and its id."""
    data = row.data
    if not data.keys().isdisjoint(ours):
        out = {f"input_{key}" if key in ours else key: value for key, value in data.items()}
    else:
        out = dict(data)
    out.setdefault("id", row.id)
    return out


def outcome_columns(result: Result) -> dict[str, Any]:
    """A result under the names of OUTPUT_KEYS, null where it has no value."""
    judgement, fault = result.judgement, result.fault
    if judgement is None:
        columns: dict[str, Any] = dict.fromkeys(OUTPUT_KEYS)
        if fault is not None:
            columns["fault"] = {"reason": fault.reason, "message": fault.message}
        return columns
    return {
        "reward": judgement.reward,
        "verdict": judgement.verdict,
        "answer": judgement.extracted_answer,
        "components": [
            {"name": part.name, "score": part.score, "weight": part.weight}
            for part in judgement.components
        ],
        "explanation": judgement.explanation,
        "suspicions": list(judgement.suspicions),
        "fault": None,
    }


def dump(row: dict[str, Any]) -> bytes:
    """One line of output. Text that UTF-8 cannot encode (half a surrogate pair) is escaped."""
    try:
        return _PLAIN.encode(row).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(row).encode() + b"\n"


_PLAIN = json.JSONEncoder(ensure_ascii=False)


def _lines(source: RowSource) -> Iterator[tuple[int, bytes]]:
    path = source.path
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield from enumerate(file, start=1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ConfigError(
            f"{source.name} is not a whole gzip file ({error}); fetch or pack it again"
        ) from error
    except FileNotFoundError as error:
        raise ConfigError(f"{source.name} is not there; correct the path") from error
    except OSError as error:
        raise ConfigError(f"{source.name} cannot be read: {error.strerror or error}") from error


def _wrong(source: RowSource, line: int, problem: str) -> NoReturn:
    raise ConfigError(f"{source.name}:{line}: {problem}")


def _parse(source: RowSource, line: int, number: int, raw: bytes) -> Row:
    try:
        data = _DECODER.decode(raw.decode("utf-8-sig" if line == 1 else "utf-8"))
    except UnicodeDecodeError:
        _wrong(source, line, "the line is not UTF-8; convert the file")
    except json.JSONDecodeError as error:
        _wrong(
            source,
            line,
            f"not valid JSON ({error.msg}, column {error.colno}); one object a line is wanted",
        )
    except (ValueError, RecursionError) as error:
        _wrong(source, line, f"not usable JSON ({error}); write one JSON object on each line")
    if not isinstance(data, dict):
        _wrong(source, line, f"the line is {kind_of(data)}; write one JSON object on each line")
    keys = source.keys
    try:
        row_id = id_of(keys, data, number)
        item = item_of(keys, source.defaults, data, str(row_id), source.respond)
        return Row(line, raw, data, row_id, item)
    except RowError as error:
        _wrong(source, line, str(error))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
