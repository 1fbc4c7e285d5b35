"""Runs and journals for the viewer's tests, and what a plain reading of them holds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import astuple
from pathlib import Path
from typing import Any

from assay.kit.runs.rollouts import files_in, path_for, read_rollouts, write_rollouts
from assay.reward_server.journal.entries import Entry
from assay.reward_server.journal.store import MIN_LIMIT_BYTES, Store
from assay.viewer.api import ViewerApi

Told = tuple[Any, ...]


def rollout(step: int, draw: int, sample: int = 0, **more: Any) -> dict[str, Any]:
    """A judged rollout, or a fault where `fault` says so."""
    good = (draw + sample) % 2
    judged: dict[str, Any] = {"reward": float(good), "verdict": "correct" if good else "incorrect",
                              "verifier": "math", "version": "1", "suspicions": []}  # fmt: skip
    return {
        "version": 1, "step": step, "phase": "train", "process": 0, "draw": draw, "sample": sample,
        "problem": f"p{draw}", "question": f"What is {draw}?", "reference": str(draw),
        "response": f"step {step} draw {draw} sample {sample}", "tokens": 10 + draw,
        "truncated": False, "judgement": judged, "fault": None, **more,
    }  # fmt: skip


def make_run(folder: Path, steps: Iterable[int] = range(1, 4), draws: int = 3) -> Path:
    """A run of a few steps, two samples a draw."""
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text('{"step": 1, "reward": 0.5}\n')
    for step in steps:
        write_step(folder, step, draws)
    return folder


def write_step(run: Path, step: int, draws: int = 3) -> Path:
    """One step's file."""
    path = path_for(run / "rollouts", step)
    write_rollouts(path, [rollout(step, draw, own) for draw in range(draws) for own in (0, 1)])
    return path


def entry(number: int, **more: Any) -> Entry:
    """A judgement of an item of its own, or a fault."""
    given: dict[str, Any] = {
        "time_s": 1e9 + number, "request_id": f"r{number // 4}", "item_id": str(number),
        "group_id": f"g{number % 5}", "task": "", "verifier": "exact", "version": "1",
        "verdict": "correct", "reward": 1.0, "fault": None, "explanation": "", "answer": "4",
        "components": "[]", "spans": "[]", "suspicions": "[]", "queue_s": 0.0, "execution_s": 0.1,
        "from_cache": False, "prompt": json.dumps([["user", f"What is {number}?"]]),
        "response": f"response {number}", "is_dialogue": False, "response_chars": 10,
        "reference": str(number), "item_key": number.to_bytes(16, "little"), "labels": "{}",
        "parameters": "{}", "reference_kind": "text", "cut": "[]",
    }  # fmt: skip
    return Entry(**{**given, **more})


def fill(path: Path, entries: Iterable[Entry]) -> Path:
    """A journal with further entries."""
    with closing(Store(path, MIN_LIMIT_BYTES)) as store:
        assert store.append([astuple(one) for one in entries])
    return path


def ask(api: ViewerApi, path: str, **query: str) -> Any:
    """The answer, which is one."""
    status, found = api.answer(f"api/{path}", list(query.items()))
    assert status == 200, found
    return found


def every(api: ViewerApi, **query: str) -> list[dict[str, Any]]:
    """All items of a filter, page by page."""
    found: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        page = ask(api, "items", limit="100", after=after, **query)
        found, after = found + page["items"], page["more"]
    assert page["total"] == len(found)
    return found


def shown(api: ViewerApi, **query: str) -> list[Told]:
    """What the viewer tells of each item, sorted."""
    return sorted((_told(one) for one in every(api, **query)), key=repr)


def _told(one: Mapping[str, Any]) -> Told:
    return (one["step"], one["phase"], one["draw"], one["sample"], one["reward"], one["verdict"],
            one["fault"], one["length"], one["preview"], one["verifier"])  # fmt: skip


def plain_run(run: Path) -> list[Told]:
    """What the run's reader finds, in the viewer's words."""
    rows = read_rollouts(run) if files_in(run / "rollouts") else ()
    return sorted((_told(_of_rollout(row)) for row in rows), key=repr)


def _of_rollout(row: Mapping[str, Any]) -> dict[str, Any]:
    judged, fault = row["judgement"] or {}, row["fault"] or {}
    return {
        **row, **{name: judged.get(name) for name in ("reward", "verdict")},
        "fault": fault.get("reason"), "length": row["tokens"], "preview": row["response"],
        "verifier": judged.get("verifier", ""),
    }  # fmt: skip


def plain_journal(path: Path) -> list[Told]:
    """What the table holds, in the viewer's words."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT NULL, '', NULL, NULL, reward, verdict, fault, response_chars, response, "
            "verifier FROM entries"
        ).fetchall()
    return sorted(rows, key=repr)


def problems(api: ViewerApi) -> str:
    """All that the viewer says of its sources."""
    return "\n".join(text for one in ask(api, "sources")["sources"] for text in one["problems"])
