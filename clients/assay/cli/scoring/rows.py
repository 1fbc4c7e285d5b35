"""Rows of a JSON Lines file to be scored: reading, checking, output.

The file is read twice: to check every row, then to score it. Memory holds the hash of every id
(about 100 bytes a row), and otherwise one row at a time. `assay.clients.rows.items` reads the keys
of a row.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from assay.api.execution.v1 import execution_pb2
from assay.cli.scoring.files import lines_of
from assay.clients.rows.items import Defaults, Keys, Responder, RowError, id_of, item_of, kind_of
from assay.clients.services import ASKED_SERVICES, absent_library, who_brings
from assay.clients.types import Fault, Item, Result, ServerInfo
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.kit.reasons import Reason

OUTPUT_KEYS = (
    "reward",
    "verdict",
    "answer",
    "components",
    "explanation",
    "suspicions",
    "appeal",
    "fault",
)
"""The keys that `output_row` adds; input keys with these names are kept by `kept_names`."""
_OURS = frozenset(OUTPUT_KEYS)


@dataclass(frozen=True, slots=True)
class RowSource:
    """A file of rows, and how to read them.

    Attributes:
        path: its form is by the end of its name (`assay.cli.scoring.files`).
        name: for errors.
        output_keys: keys that the output adds.
        respond: makes a row's response from its reference. None: the row has it.
        keep_going: a wrong row is one with a fault, and ends nothing.
        repeats: lines whose id stands on an earlier line, by that (`RowSurvey.repeats`).
    """

    path: Path
    name: str
    keys: Keys = field(default_factory=Keys)
    defaults: Defaults = field(default_factory=Defaults)
    output_keys: tuple[str, ...] = OUTPUT_KEYS
    respond: Responder | None = None
    keep_going: bool = False
    repeats: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file.

    Attributes:
        line: its line in the file, from 1.
        raw: the line as read.
        data: its JSON object; empty where it is none.
        id: its own, or its number among the rows, from 1.
        fault: what is wrong with it; then the item is empty.
    """

    line: int
    raw: bytes
    data: dict[str, Any]
    id: str | int
    item: Item
    fault: Fault | None = None


@dataclass(slots=True)
class RowSurvey:
    """The findings of the first reading of a file.

    Attributes:
        sha256: of the file's text.
        routes: each pair of verifier and task, with the first line that asks for it.
        asked: how many rows ask for each of those pairs.
        bare: of those, the first line without a reference, if any.
        tested: a row has tests of a program.
        repeats: with `keep_going`, lines whose id stands on an earlier line, by that.
        kept: keys of the rows that the output adds too, each with its own name there.
    """

    count: int = 0
    sha256: str = ""
    routes: dict[tuple[str, str], int] = field(default_factory=dict)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    bare: dict[tuple[str, str], int] = field(default_factory=dict)
    tested: bool = False
    repeats: dict[int, int] = field(default_factory=dict)
    kept: set[tuple[str, str]] = field(default_factory=set)

    @property
    def asks_sandbox(self) -> bool:
        """Whether a row has tests of a program, or asks for a verifier that the sandbox serves."""
        return self.tested or any(
            ASKED_SERVICES.get(verifier or task) == "sandbox" for verifier, task in self.routes
        )

    def for_verifier(self, name: str) -> RowSurvey:
        """The same rows, all asking for this verifier."""
        route = (name, "")
        if not self.routes:
            return self
        return dataclasses.replace(
            self,
            routes=dict.fromkeys([route], min(self.routes.values())),
            asked=Counter({route: self.asked.total()}),
            bare=dict.fromkeys([route], min(self.bare.values())) if self.bare else {},
        )


def read_rows(source: RowSource) -> Iterator[Row]:
    """The rows of a file, in order, without blank lines.

    Raises:
        ConfigError: The file cannot be read, or, without `keep_going`, a row is wrong; the text
            names file and line.
    """
    number = 0
    for line, raw in lines_of(source.path, source.name):
        if raw.strip():
            number += 1
            yield _parse(source, line, number, raw)


def read_objects(path: Path, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each JSON object of a file with its line, from 1; raises ConfigError for another line."""
    for line, raw in lines_of(path, name):
        if raw.strip():
            try:
                yield line, _object(raw, is_first=line == 1)
            except RowError as error:
                raise ConfigError(f"{name}:{line}: {error}") from error


def survey(source: RowSource) -> RowSurvey:
    """Checks every row.

    Raises:
        ConfigError: The file cannot be read, has no rows or, without `keep_going`, a row is wrong,
            or two rows share an id.
    """
    found = RowSurvey()
    digest = hashlib.sha256()
    line_of_id: dict[bytes, int] = {}
    ours = set(source.output_keys)
    for row in read_rows(source):
        found.count += 1
        digest.update(row.raw)
        if not ours.isdisjoint(row.data):
            found.kept.update(kept_names(row.data, ours).items())
        if row.fault is not None:
            continue
        key = hashlib.blake2b(str(row.id).encode(errors="surrogatepass"), digest_size=12).digest()
        first = line_of_id.setdefault(key, row.line)
        if first != row.line:
            if not source.keep_going:
                _wrong(source, row.line, _repeated(row.id, first))
            found.repeats[row.line] = first
            continue
        route = (row.item.verifier, row.item.task)
        found.routes.setdefault(route, row.line)
        found.asked[route] += 1
        if row.item.reference is None:
            found.bare.setdefault(route, row.line)
        found.tested |= isinstance(row.item.reference, execution_pb2.TestSuite)
    if not found.count:
        raise ConfigError(f"{source.name} holds no rows; write one JSON object on each line")
    found.sha256 = digest.hexdigest()
    return found


def check_routes(
    source: RowSource, found: RowSurvey, info: ServerInfo, *, started_here: bool = False
) -> list[str]:
    """Checks that the server can judge the rows; returns "name version" of each verifier, sorted.

    Of a server that was started here it also checks the libraries that its verifiers need.

    With `keep_going` only the defaults are checked: what the server does not know in a row of its
    own, or misses, it answers with a fault.

    Raises:
        ConfigError: A verifier or task is unknown, or what it needs (a service, a library, the
            rows' references) is absent; the text says how to bring it.
    """
    names = [verifier.name for verifier in info.verifiers]
    tasks = sorted(task for verifier in info.verifiers for task in verifier.tasks)
    default = (source.defaults.verifier, "" if source.defaults.verifier else source.defaults.task)
    used = set()
    for (verifier, task), line in found.routes.items():
        judge = info.find(verifier, task)
        if judge is None and source.keep_going and (verifier, task) != default:
            continue
        service = ASKED_SERVICES.get(verifier or task) if judge is None else None
        if service is not None:
            many = _rows(found.asked[verifier, task])
            _wrong(source, line, f"{many} for {verifier or task!r}{who_brings(verifier or task)}")
        if judge is None and verifier:
            near = did_you_mean(verifier, names)
            said = f"no verifier has the name {verifier!r}{near}"
            _wrong(
                source, line, f"{said}; this server has: {', '.join(names)}{who_brings(verifier)}"
            )
        if judge is None:
            said = f"no verifier judges the task {task!r}{did_you_mean(task, tasks)}"
            _wrong(source, line, f"{said}; this server has: {', '.join(tasks)}{who_brings(task)}")
        absent = absent_library(judge.name) if started_here else ""
        if absent and not source.keep_going:
            many = _rows(found.asked[verifier, task])
            _wrong(source, line, f"{many} for {judge.name!r}, and {absent}")
        used.add(f"{judge.name} {judge.version}")
        bare = found.bare.get((verifier, task))
        if judge.needs_reference and bare is not None and not source.keep_going:
            key = source.keys.reference
            remedy = "add it, or name its key with --reference-key"
            _wrong(source, bare, f"the row has no {key!r}, which {judge.name!r} needs; {remedy}")
    return sorted(used)


def _rows(count: int) -> str:
    return "1 row asks" if count == 1 else f"{count} rows ask"


def output_row(row: Row, result: Result) -> dict[str, Any]:
    """The output for a row: its keys (those that clash by `kept_names`) and its outcome."""
    out = passed_through(row, OUTPUT_KEYS)
    out.update(outcome_columns(result))
    return out


def passed_through(row: Row, ours: tuple[str, ...]) -> dict[str, Any]:
    """The row's own keys, those that clash with ours by `kept_names`, and its id."""
    data = row.data
    if not data.keys().isdisjoint(ours):
        kept = kept_names(data, ours)
        out = {kept.get(key, key): value for key, value in data.items()}
    else:
        out = dict(data)
    out.setdefault("id", row.id)
    return out


def kept_names(data: Mapping[str, Any], ours: Collection[str]) -> dict[str, str]:
    """The output's names for a row's keys that clash with ours: `input_KEY`.

    Where the row has that key as well, scored twice before, another `input_` stands before it.
    """
    names = {}
    for key in data:
        if key in ours:
            names[key] = f"input_{key}"
            while names[key] in data:
                names[key] = f"input_{names[key]}"
    return names


def input_value(line: Mapping[str, Any], key: str) -> Any:
    """The value of an input's key in a line of output; None for none."""
    if key not in _OURS:
        return line.get(key)
    name = f"input_{key}"
    while f"input_{name}" in line:
        name = f"input_{name}"
    return line.get(name)


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
        "appeal": None if judgement.appeal is None else dataclasses.asdict(judgement.appeal),
        "fault": None,
    }


def dump(row: dict[str, Any]) -> bytes:
    """One line of output. Text that UTF-8 cannot encode (half a surrogate pair) is escaped."""
    try:
        return _PLAIN.encode(row).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(row).encode() + b"\n"


_PLAIN = json.JSONEncoder(ensure_ascii=False)


def _wrong(source: RowSource, line: int, problem: str) -> NoReturn:
    raise ConfigError(f"{source.name}:{line}: {problem}")


def _parse(source: RowSource, line: int, number: int, raw: bytes) -> Row:
    data: dict[str, Any] = {}
    row_id: str | int = number
    keys = source.keys
    try:
        data = _object(raw, is_first=line == 1)
        row_id = id_of(keys, data, number)
        if line in source.repeats:
            problem = _repeated(row_id, source.repeats[line])
            raise RowError(problem, Reason.DUPLICATE_ITEM_ID)
        item = item_of(keys, source.defaults, data, str(row_id), source.respond)
        return Row(line, raw, data, row_id, item)
    except RowError as error:
        if not source.keep_going:
            _wrong(source, line, str(error))
        fault = Fault(error.reason, f"{source.name}:{line}: {error}", code="INVALID_ARGUMENT")
        return Row(line, raw, data, row_id, Item(response=""), fault)


def _object(raw: bytes, *, is_first: bool) -> dict[str, Any]:
    try:
        data = _DECODER.decode(raw.decode("utf-8-sig" if is_first else "utf-8"))
    except UnicodeDecodeError as error:
        raise RowError("the line is not UTF-8; convert the file") from error
    except json.JSONDecodeError as error:
        raise RowError(
            f"not valid JSON ({error.msg}, column {error.colno}); one object a line is wanted"
        ) from error
    except (ValueError, RecursionError) as error:
        raise RowError(f"not usable JSON ({error}); write one JSON object on each line") from error
    if not isinstance(data, dict):
        raise RowError(f"the line is {kind_of(data)}; write one JSON object on each line")
    return data


def _repeated(row_id: str | int, first: int) -> str:
    said = f"the id {row_id!r} stands on line {first} too"
    return f"{said}; make ids unique, or leave them out"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
