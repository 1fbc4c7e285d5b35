"""An entry as a line of JSON, which `assay score` reads as it is. Pure.

The keys of the item (`response`, `reference`, `prompt`, ...) are those of a row of `assay score`,
and the keys of the outcome those that it writes; what else an entry has stands beside them.
`journal_cut` names the parts that the journal does not hold as a whole: such a row is not judged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from assay.viewer.journals.reader import Record

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BESIDE = (
    "time_s",
    "request_id",
    "item_id",
    "group_id",
    "version",
    "spans",
    "queue_s",
    "execution_s",
    "from_cache",
    "response_chars",
    "item_key",
    "labels",
)


def row_of(record: Record) -> dict[str, Any]:
    """The line of an entry: its number is the row's `id`, the caller's id is `item_id`."""
    row: dict[str, Any] = {"id": record["id"]}
    for name in ("verifier", "task"):
        if record[name]:
            row[name] = record[name]
    if record["parameters"]:
        row["params"] = record["parameters"]
    if record["prompt"]:
        row["prompt"] = [{"role": role, "content": content} for role, content in record["prompt"]]
    if record["is_dialogue"]:
        row["turns"] = [
            {"role": role, "content": content, "from_policy": own, **_calls(calls)}
            for (role, content, own), calls in zip(record["response"], record["calls"], strict=True)
        ]
    elif record["response"] is not None:
        row["response"] = record["response"]
        row |= _calls(record["calls"][0] if record["calls"] else [])
    cut = list(_cut(record))
    if record["reference"] is not None:
        row.update(_reference(record, whole="reference" not in cut))
    row |= _outcome(record)
    row |= {name: record[name] for name in _BESIDE}
    if cut:
        row["journal_cut"] = cut
    return row


def _calls(calls: list[list[Any]]) -> dict[str, Any]:
    listed = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"tool_calls": listed} if listed else {}


def printable(text: str) -> str:
    """Text with its control characters replaced, safe for a terminal."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def is_whole(row: Mapping[str, Any]) -> bool:
    """Whether a line holds its item as a whole, so that it can be judged again."""
    return "journal_cut" not in row and ("response" in row or "turns" in row)


def _outcome(record: Record) -> dict[str, Any]:
    fault = record["fault"]
    said = fault is None
    return {
        "reward": record["reward"],
        "verdict": record["verdict"],
        "answer": record["answer"],
        "components": [
            {"name": name, "score": score, "weight": weight}
            for name, score, weight in record["components"]
        ]
        if said
        else None,
        "explanation": record["explanation"] if said else None,
        "suspicions": record["suspicions"] if said else None,
        "appeal": record["appeal"] if said else None,
        "fault": None if said else {"reason": fault, "message": record["explanation"]},
    }


def _cut(record: Record) -> Iterator[str]:
    """The parts that are not there as a whole; of an entry of format 1 those that may not be."""
    if record["cut"] is not None:
        yield from record["cut"]
        return
    response = record["response"]
    turns = response if record["is_dialogue"] else [("", response or "", True)]
    if response is None or sum(len(turn[1]) for turn in turns) < record["response_chars"]:
        yield "response"
    if sum(len(content) for _, content in record["prompt"]) >= _OLD_PROMPT_CHARS:
        yield "prompt"
    reference = record["reference"]
    if reference is not None and (len(reference) >= _OLD_REFERENCE_CHARS or _is_json(reference)):
        yield "reference"


_OLD_PROMPT_CHARS, _OLD_REFERENCE_CHARS = 16_384, 8_192


def _is_json(text: str) -> bool:
    """Whether it may be several answers, data or tests, which format 1 does not tell from text."""
    try:
        return isinstance(json.loads(text), list | dict)
    except (ValueError, RecursionError):
        return text.lstrip()[:1] in ("[", "{")


def _reference(record: Record, *, whole: bool) -> dict[str, Any]:
    text, kind = record["reference"], record["reference_kind"]
    if kind in (None, "text") or not whole:
        return {"reference": text}
    if kind == "anchor":
        return {"anchor": text}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # of another program, or a broken entry
        return {"reference": text}
    if kind == "tests":
        return {"tests": {"suite": value}}
    # A list of texts would be several answers, and a number no reference: verifiers that take data
    # read a text as JSON.
    return {"reference": value if kind == "texts" or isinstance(value, dict) else text}
