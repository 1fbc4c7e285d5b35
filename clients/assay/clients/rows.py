"""Rows of a JSON Lines file to be scored: reading, checking, and what is written for each.

The file is read twice: once to check every row before anything is scored, once to score it. Memory
holds the hash of every id (about 100 bytes a row), and otherwise one row at a time.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from assay.clients.types import Item, Judgement, Parameter, Result, ServerInfo
from assay.rpc.errors import ConfigError
from assay.rpc.limits import MAX_ITEM_ID_BYTES

OUTPUT_KEYS = ("reward", "verdict", "answer", "components", "fault")


@dataclass(frozen=True, slots=True)
class Keys:
    """Under which key of a row each thing stands."""

    id: str = "id"
    response: str = "response"
    reference: str = "reference"
    prompt: str = "prompt"
    verifier: str = "verifier"
    task: str = "task"
    params: str = "params"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of rows, and how to read them.

    Attributes:
        path: the file; gzip if its name ends in .gz.
        name: what errors call it.
        keys: where things stand in a row.
        verifier: who judges rows that name nobody.
        task: the task of rows that name none.
    """

    path: Path
    name: str
    keys: Keys = Keys()
    verifier: str = ""
    task: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        line: its line in the file, from 1.
        data: everything that stood there.
        id: its id; its number among the rows, from 1, where it has none.
        item: what is to be scored.
    """

    line: int
    data: dict[str, Any]
    id: str | int
    item: Item


@dataclass(slots=True)
class Survey:
    """What the first reading of a file found.

    Attributes:
        count: how many rows there are.
        sha256: of the file's text.
        routes: each pair of verifier and task, with the first line that asks for it.
        bare: of those, the first line without a reference, where there is one.
        clashes: keys of the rows that the output uses for its own.
    """

    count: int = 0
    sha256: str = ""
    routes: dict[tuple[str, str], int] = field(default_factory=dict)
    bare: dict[tuple[str, str], int] = field(default_factory=dict)
    clashes: set[str] = field(default_factory=set)


def read_rows(source: Source) -> Iterator[Row]:
    """The rows of a file, in order; blank lines are passed over.

    Raises:
        ConfigError: The file cannot be read, or a row is not as it should be; the text names file
            and line.
    """
    number = 0
    for line, text in _lines(source):
        if text.strip():
            number += 1
            yield _parse(source, line, number, text)


def survey(source: Source) -> Survey:
    """Checks every row.

    Raises:
        ConfigError: The file cannot be read, holds no rows, or a row is not as it should be, or two
            rows share an id.
    """
    found = Survey()
    digest = hashlib.sha256()
    line_of_id: dict[bytes, int] = {}
    for row in read_rows(source):
        found.count += 1
        digest.update(json.dumps(row.data).encode())
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
        found.clashes.update(name for name in OUTPUT_KEYS if name in row.data)
    if not found.count:
        raise ConfigError(f"{source.name} holds no rows; write one JSON object on each line")
    found.sha256 = digest.hexdigest()
    return found


def check_routes(source: Source, found: Survey, info: ServerInfo) -> list[str]:
    """Checks that the server judges what the rows ask for.

    Returns:
        "name version" of each verifier that will judge, sorted.

    Raises:
        ConfigError: A verifier or task is unknown, or a reference is absent where one is needed.
    """
    names = ", ".join(verifier.name for verifier in info.verifiers)
    used = set()
    for (verifier, task), line in found.routes.items():
        judge = info.find(verifier, task)
        if judge is None and verifier:
            _wrong(source, line, f"no verifier has the name {verifier!r}; this server has: {names}")
        if judge is None:
            tasks = ", ".join(sorted(t for v in info.verifiers for t in v.tasks))
            _wrong(source, line, f"no verifier judges the task {task!r}; this server has: {tasks}")
        used.add(f"{judge.name} {judge.version}")
        bare = found.bare.get((verifier, task))
        if judge.needs_reference and bare is not None:
            key = source.keys.reference
            remedy = "add it, or name its key with --reference-key"
            _wrong(source, bare, f"the row has no {key!r}, which {judge.name!r} needs; {remedy}")
    return sorted(used)


def output_row(row: Row, result: Result) -> dict[str, Any]:
    """What is written for a row: its keys (those that clash as `input_KEY`) and what came of it."""
    out = {f"input_{key}" if key in OUTPUT_KEYS else key: value for key, value in row.data.items()}
    out.setdefault("id", row.id)
    judgement = result.judgement or Judgement(reward=0.0, verdict="")
    judged = result.fault is None
    out["reward"] = result.reward
    out["verdict"] = judgement.verdict if judged else None
    out["answer"] = judgement.extracted_answer
    out["components"] = [asdict(part) for part in judgement.components] if judged else None
    out["fault"] = (
        None
        if result.fault is None
        else {"reason": result.fault.reason, "message": result.fault.message}
    )
    return out


def dump(row: dict[str, Any]) -> bytes:
    """One line of output. Text that UTF-8 cannot hold (half a surrogate pair) is escaped."""
    try:
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(row).encode() + b"\n"


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    line, path = 0, source.path
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for line, raw in enumerate(file, start=1):
                yield line, raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError:
        _wrong(source, line, "the line is not UTF-8; convert the file")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ConfigError(
            f"{source.name} is not a whole gzip file ({error}); fetch or pack it again"
        ) from error
    except FileNotFoundError as error:
        raise ConfigError(f"{source.name} is not there; correct the path") from error
    except OSError as error:
        raise ConfigError(f"{source.name} cannot be read: {error.strerror or error}") from error


def _wrong(source: Source, line: int, problem: str) -> NoReturn:
    raise ConfigError(f"{source.name}:{line}: {problem}")


def _parse(source: Source, line: int, number: int, text: str) -> Row:
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        _wrong(
            source,
            line,
            f"not valid JSON ({error.msg}, column {error.colno}); one object a line is wanted",
        )
    except (ValueError, RecursionError) as error:
        _wrong(source, line, f"not usable JSON ({error}); write one JSON object on each line")
    if not isinstance(data, dict):
        _wrong(source, line, f"the line is {_kind(data)}; write one JSON object on each line")
    keys = source.keys
    row_id = data.get(keys.id)
    if row_id is None:
        row_id = number
    if isinstance(row_id, bool) or not isinstance(row_id, str | int) or row_id == "":
        _wrong(
            source,
            line,
            f"{keys.id!r} is {_kind(row_id)}; write a text or a whole number, or leave it out",
        )
    if len(str(row_id).encode(errors="surrogatepass")) > MAX_ITEM_ID_BYTES:
        _wrong(source, line, f"{keys.id!r} is longer than {MAX_ITEM_ID_BYTES} bytes; shorten it")
    return Row(line, data, row_id, _item(source, line, data, str(row_id)))


def _item(source: Source, line: int, data: dict[str, Any], row_id: str) -> Item:
    keys = source.keys
    if keys.response not in data:
        _wrong(
            source,
            line,
            f"the row has no {keys.response!r}; add it, or name its key with --response-key",
        )
    response = data[keys.response]
    if not isinstance(response, str):
        _wrong(
            source, line, f"{keys.response!r} is {_kind(response)}; write the response as a text"
        )
    verifier = _text(source, line, data, keys.verifier) or source.verifier
    task = _text(source, line, data, keys.task) or source.task
    if not verifier and not task:
        _wrong(source, line, "the row names neither verifier nor task; pass --verifier or --task")
    return Item(
        response=response,
        reference=_reference(source, line, data),
        verifier=verifier,
        task="" if verifier else task,
        prompt=_prompt(source, line, data),
        id=row_id,
        parameters=_params(source, line, data),
    )


def _text(source: Source, line: int, data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        _wrong(source, line, f"{key!r} is {_kind(value)}; write a text, or leave it out")
    return value or ""


def _reference(source: Source, line: int, data: dict[str, Any]) -> str | list[str] | None:
    key = source.keys.reference
    value = data.get(key)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        return value
    hint = f', such as "{value}"' if isinstance(value, int | float) else ""
    _wrong(source, line, f"{key!r} is {_kind(value)}; write a text or a list of texts{hint}")


def _prompt(source: Source, line: int, data: dict[str, Any]) -> str | list[dict[str, str]]:
    key = source.keys.prompt
    value = data.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    good = isinstance(value, list) and all(
        isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str)
        for m in value
    )
    if not good:
        _wrong(
            source,
            line,
            f"{key!r} is {_kind(value)}; write a text, or messages with 'role' and 'content'",
        )
    return [{"role": message["role"], "content": message["content"]} for message in value]


def _params(source: Source, line: int, data: dict[str, Any]) -> dict[str, Parameter]:
    key = source.keys.params
    value = data.get(key) or {}
    if not isinstance(value, dict):
        _wrong(source, line, f"{key!r} is {_kind(value)}; write an object of names and values")
    for name, part in value.items():
        texts = isinstance(part, list) and all(isinstance(text, str) for text in part)
        if not texts and not isinstance(part, bool | int | float | str):
            _wrong(
                source,
                line,
                f"{key!r} holds {_kind(part)} for {name!r}; write a number, a text, true or false",
            )
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _kind(value: object) -> str:
    """How a person calls the type of a JSON value."""
    names: dict[type, str] = {
        type(None): "null",
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text" if value else "an empty text",
        list: "a list" if value else "an empty list",
        dict: "an object",
    }
    return names[type(value)]
