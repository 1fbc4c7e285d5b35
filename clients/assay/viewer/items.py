"""A whole item, from its source: a rollout's row or a journal's entry, made readable."""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import FOLDER, path_for
from assay.viewer import programs
from assay.viewer.index import narrow
from assay.viewer.index.lines import lines_of
from assay.viewer.index.schema import place_parts
from assay.viewer.journals.reader import Reader, appeal_of
from assay.viewer.journals.rows import row_of
from assay.viewer.sources import RUN, ViewedSource

_KEPT_FILES = 4


class GoneError(LookupError):
    """The item is no longer in its source; the text says why."""


def raw_of(source: ViewedSource, place: int) -> dict[str, Any]:
    """The source's own row of an item.

    Raises:
        GoneError: it has gone, or its file cannot be read.
    """
    if source.kind == RUN:
        step, phase, process, line = place_parts(place)
        path = path_for(source.path / FOLDER, step, phase, process)
        rows = file_rows(path)
        row = rows.get(line)
        if not isinstance(row, dict):
            raise GoneError(f"{path.name} no longer has it: the run thinned its rollouts out")
        return row
    try:
        with Reader(source.path) as reader:
            record = reader.get(place)
    except (ConfigError, sqlite3.Error, ValueError, RecursionError) as error:
        raise GoneError(f"the journal cannot be read: {error}") from error
    if record is None:
        raise GoneError(f"entry {place} has expired")
    return record


def file_rows(path: Path) -> dict[int, Any]:
    """The rows of a file of rollouts by line, the last few files kept; none where it is gone."""
    try:
        found = path.stat()
    except OSError:
        return {}
    return _rows(path, found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=_KEPT_FILES)
def _rows(path: Path, _size: int, _time: int) -> dict[int, Any]:
    return dict(lines_of(path))


def whole(source: ViewedSource, raw: Mapping[str, Any]) -> dict[str, Any]:
    """What is shown of an item, but for what the index knows."""
    return of_rollout(raw) if source.kind == RUN else of_record(raw)


def of_rollout(row: Mapping[str, Any]) -> dict[str, Any]:
    """A rollout: prompt, turns, verdict, fault, reference, tests, programs. Never raises."""
    episode = narrow.mapping(row.get("episode"))
    steps = [one for one in narrow.listed(episode.get("steps")) if isinstance(one, Mapping)]
    dialogue = [one for one in narrow.listed(row.get("turns")) if isinstance(one, Mapping)]
    prompt = [_message(one) for one in narrow.listed(row.get("prompt"))]
    if steps:
        turns = _episode_turns(steps)
    elif dialogue:
        turns = [_turn("assistant", narrow.text(one.get("text")), told=one) for one in dialogue]
        for turn, one in zip(turns, dialogue, strict=True):
            turn["agent"] = narrow.name(one.get("role"))
            turn |= {name: one.get(name) for name in ("says", "verdict", "fault")}
    else:
        turns = [_turn("assistant", narrow.text(row.get("response")), told=row)]
    verdict = _verdict(narrow.mapping(row.get("judgement")))
    if verdict is not None:
        verdict |= {"queue_s": narrow.real(row.get("queue_s")),
                    "execution_s": narrow.real(row.get("judge_s"))}  # fmt: skip
        _place_spans(turns, verdict["spans"])
    tests = row.get("tests")
    reference = programs.reference_of("", row.get("reference"))
    if tests is not None:
        reference = {"kind": "tests", "text": "", "parts": []}
    elif row.get("anchor"):
        reference = programs.reference_of("anchor", row.get("anchor"))
    return {
        "prompt": prompt,
        "turns": turns,
        "verdict": verdict,
        "fault": _fault(narrow.mapping(row.get("fault"))),
        "reference": reference,
        "tests": [] if tests is None else programs.readable_tests(tests),
        "programs": programs_of(turns, is_code=tests is not None),
        "ending": row.get("ending") or episode.get("ending"),
        "trusted": episode.get("trusted"),
        "trains": episode.get("trains"),
        "shaped_reward": narrow.real(row.get("shaped_reward")),
        "policy_step": narrow.whole(row.get("policy_step")),
        "hint": narrow.real(row.get("hint")),
    }


def of_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of a journal, as the reader gives it."""
    if record["is_dialogue"]:
        turns = [
            _turn(role or "assistant", content, own=bool(own))
            for role, content, own in record["response"] or ()
        ]
    else:
        turns = [_turn("assistant", record["response"] or "")]
    for turn, calls in zip(turns, record["calls"], strict=False):
        turn["calls"] = [{"name": one[0], "arguments": one[1]} for one in calls if len(one) > 1]
    judged = record["fault"] is None
    spans = [
        dict(zip(("start", "end", "reward", "label", "turn_index"), one, strict=False))
        for one in record["spans"]
    ]
    verdict = None
    if judged:
        verdict = {
            "reward": record["reward"],
            "verdict": record["verdict"],
            "components": [
                dict(zip(("name", "score", "weight"), one, strict=False))
                for one in record["components"]
            ],
            "spans": spans,
            "extracted_answer": record["answer"],
            "explanation": record["explanation"],
            "verifier": record["verifier"],
            "version": record["version"],
            "suspicions": record["suspicions"],
            "appeal": record["appeal"],
            "parameters": record["parameters"],
            "from_cache": record["from_cache"],
            "queue_s": record["queue_s"],
            "execution_s": record["execution_s"],
        }
        _place_spans(turns, spans)
    reference, tests = _reference(record)
    return {
        "prompt": [{"role": role, "content": content} for role, content in record["prompt"]],
        "turns": turns,
        "verdict": verdict,
        "fault": None
        if judged
        else {"reason": record["fault"], "message": record["explanation"], "code": None,
              "metadata": {}, "verifier": record["verifier"]},
        "reference": reference,
        "tests": tests,
        "programs": programs_of(turns, is_code=bool(tests)),
        "ending": None,
        "trusted": None,
        "trains": None,
        "cut": record["cut"] or [],
        "task": record["task"],
        "request_id": record["request_id"],
        "item_id": record["item_id"],
        "group_id": record["group_id"],
    }  # fmt: skip


def raw_shown(source: ViewedSource, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The source's row in JSON's values."""
    return raw if source.kind == RUN else row_of(dict(raw))


def _reference(record: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    text, kind = record["reference"], record["reference_kind"] or ""
    if text is None:
        return {"kind": "none", "text": "", "parts": []}, []
    cut = "reference" in (record["cut"] or ())
    if kind not in ("texts", "data", "tests", "") or cut:
        return {"kind": kind or "text", "text": text, "parts": [], "cut": cut}, []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if kind == "tests" or (not kind and isinstance(value, dict) and "tests" in value):
        tests = programs.readable_tests({"suite": value})
        return {"kind": "tests", "text": "", "parts": []}, tests
    if kind in ("texts", "data"):
        return programs.reference_of(kind, value), []
    return {"kind": "text", "text": text, "parts": []}, []


def _message(value: Any) -> dict[str, Any]:
    one = narrow.mapping(value)
    told = {"role": narrow.name(one.get("role")), "content": narrow.text(one.get("content"))}
    return {**told, **({"name": narrow.name(one["name"])} if one.get("name") else {})}


def _turn(
    role: str, text: str, *, own: bool = True, told: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    told = told or {}
    return {
        "role": role,
        "agent": narrow.name(told.get("agent")),
        "context": narrow.name(told.get("context")),
        "text": text,
        "own": own,
        "tokens": narrow.whole(told.get("tokens")),
        "truncated": told.get("truncated") is True,
        "void": told.get("void") is True,
        "at": narrow.real(told.get("at")),
        "seconds": narrow.real(told.get("seconds")),
        "reward": narrow.real(told.get("reward")) if "context" in told else None,
        "calls": [],
        "spans": [],
    }


def _episode_turns(steps: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    turns = []
    for number, step in enumerate(steps):
        for one in narrow.listed(step.get("read")):
            message = _message(one)
            if number or message["role"] not in ("user", "system"):
                turn = _turn(message["role"], message["content"], own=False)
                turn |= {"agent": message.get("name", ""),
                         "context": narrow.name(step.get("context"))}  # fmt: skip
                turns.append(turn)
        turn = _turn("assistant", narrow.text(step.get("text")), told={"context": "", **step})
        turn["calls"] = [
            {
                **{name: call.get(name) for name in (
                    "name", "arguments", "text", "answer", "facts", "reward", "seconds",
                    "refused", "cached", "done",
                )},
                "fault": _call_fault(call),
            }
            for call in map(narrow.mapping, narrow.listed(step.get("calls")))
        ]  # fmt: skip
        turn["calls"] += [
            {"name": call.get("name"), "arguments": call.get("arguments"), "unanswered": True}
            for call in map(narrow.mapping, narrow.listed(step.get("unanswered")))
        ]
        for call in turn["calls"]:
            call["programs"] = _call_programs(narrow.mapping(call.get("arguments")))
        turns.append(turn)
    return turns


def _call_fault(call: Mapping[str, Any]) -> Any:
    return narrow.mapping(call.get("facts")).get("fault")


def _call_programs(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that are programs, by name."""
    languages = {"code": "python", "source": "python", "program": "python", "command": "bash"}
    return {
        name: programs.program(value, languages[name])["pieces"]
        for name, value in arguments.items()
        if name in languages and isinstance(value, str)
    }


def _verdict(judgement: Mapping[str, Any]) -> dict[str, Any] | None:
    if not judgement:
        return None
    named = ("reward", "verdict", "extracted_answer", "explanation", "verifier", "version")
    return {
        **{name: judgement.get(name) for name in named},
        "components": [
            dict(one) for one in map(narrow.mapping, narrow.listed(judgement.get("components")))
        ],
        "spans": [dict(one) for one in map(narrow.mapping, narrow.listed(judgement.get("spans")))],
        "suspicions": [
            one for one in narrow.listed(judgement.get("suspicions")) if isinstance(one, str)
        ],
        "appeal": appeal_of(judgement.get("appeal")),
        "parameters": None,
        "from_cache": None,
    }


def _fault(fault: Mapping[str, Any]) -> dict[str, Any] | None:
    if not fault:
        return None
    return {name: fault.get(name) for name in ("reason", "message", "code", "metadata")}


def _place_spans(turns: list[dict[str, Any]], spans: list[dict[str, Any]]) -> None:
    """Puts each span to its turn: of a dialogue the one it counts, else the policy's."""
    own = [turn for turn in turns if turn["own"]]
    for span in spans:
        number = narrow.whole(span.get("turn_index")) or 0
        those = turns if len(own) == len(turns) or number >= len(own) else own
        if 0 <= number < len(those):
            those[number]["spans"].append(span)


def programs_of(turns: list[dict[str, Any]], *, is_code: bool) -> list[dict[str, Any]]:
    """The programs of the policy's turns; a response to tests without a fence is one."""
    found = [
        {"turn": number, **one}
        for number, turn in enumerate(turns)
        if turn["own"]
        for one in programs.programs_in(turn["text"])
    ]
    if not found and is_code and len(turns) == 1 and turns[0]["text"]:
        found = [{"turn": 0, **programs.program(turns[0]["text"])}]
    return found
