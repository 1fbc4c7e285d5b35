"""A rollout token by token, and when a run did what."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.pieces import Pieces
from assay.kit.runs.rollouts import FOLDER, TRAIN, VOCABULARY, files_in, read_vocabulary
from assay.viewer.index import narrow
from assay.viewer.index.schema import place_of
from assay.viewer.items import file_rows
from assay.viewer.sources import read_lines

_MOST_SPANS, _MOST_STEPS = 5_000, 40


def of_rollout(row: Mapping[str, Any], words: Pieces | None) -> dict[str, Any]:
    """Columns of equal length, one place a token; None where the row does not say it.

    `starts` is a token's place in the response in code points, where its pieces follow one another
    in it.
    """
    ids = narrow.listed(row.get("ids"))
    count = len(ids)
    pieces = [str(one) for one in ids]
    if words is not None:
        pieces = words.texts(one if isinstance(one, int) else -1 for one in ids)
    trained, own, contexts = [False] * count, [None] * count, [""] * count
    advantages: list[float | None] = [None] * count
    known = isinstance(row.get("trained"), list)
    for start, end, *_ in narrow.stretches(row.get("trained"), 2):
        trained[start:end] = [True] * len(trained[start:end])
        advantages[start:end] = [0.0] * len(advantages[start:end])
    for start, end, value, *_ in narrow.stretches(row.get("advantages"), 3):
        advantages[start:end] = [narrow.real(value)] * len(advantages[start:end])
    for start, end, turn, *rest in narrow.stretches(row.get("own"), 3):
        own[start:end] = [turn] * len(own[start:end])
        context = narrow.name(rest[0]) if rest else ""
        contexts[start:end] = [context] * len(contexts[start:end])
    return {
        "ids": ids,
        "pieces": pieces,
        "starts": _starts(pieces, narrow.text(row.get("response"))) if words else [None] * count,
        "logprobs": _column(row.get("logprobs"), count),
        "old_logprobs": _column(row.get("old_logprobs"), count),
        "entropies": _column(row.get("entropies"), count),
        "advantages": advantages,
        "trained": trained if known else [None] * count,
        "own": own,
        "contexts": contexts,
    }


def _column(value: Any, count: int) -> list[float | None]:
    found = [narrow.real(one) for one in narrow.listed(value)[:count]]
    return found + [None] * (count - len(found))


def _starts(pieces: Sequence[str], text: str) -> list[int | None]:
    found: list[int | None] = []
    place = 0
    for piece in pieces:
        if piece and text.startswith(piece, place):
            found.append(place)
            place += len(piece)
        else:
            found.append(None)
    return found


def vocabulary(folder: Path) -> Pieces | None:
    """What a run's tokens stand for, of its folder of rollouts; None where that is not there."""
    path = folder / VOCABULARY
    try:
        return _vocabulary(path, path.stat().st_mtime_ns)
    except OSError:
        return None


@functools.lru_cache(maxsize=2)
def _vocabulary(path: Path, _time: int) -> Pieces | None:
    try:
        return read_vocabulary(path.parent)
    except (ConfigError, KeyError, TypeError, UnicodeError):  # another program's file, or a cut one
        return None


def timeline(runs: Mapping[str, Path], low: int, high: int) -> dict[str, Any]:
    """Spans of steps from `low` to `high`, the newest of too many; tools of the last of them."""
    spans: list[dict[str, Any]] = []
    tools: list[dict[str, Any]] = []
    for slug, path in runs.items():
        rows = [
            {**{name: row.get(name) for name in ("what", "process", "step", "start", "end")},
             "source": slug}
            for file in (path / FOLDER).glob("timeline*.jsonl")
            for row in read_lines(file)[0]
            if low <= (narrow.whole(row.get("step")) or 0) <= high
            and None not in (narrow.real(row.get("start")), narrow.real(row.get("end")))
        ]  # fmt: skip
        spans += sorted(rows, key=_start)[-_MOST_SPANS:]
        tools += _tools(slug, path, low, high)
    return {"spans": spans, "tools": tools}


def _start(row: Mapping[str, Any]) -> float:
    return narrow.real(row["start"]) or 0.0


def _tools(slug: str, path: Path, low: int, high: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    files = [one for one in files_in(path / FOLDER) if low <= one.step <= high]
    for one in [one for one in files if one.phase == TRAIN][-_MOST_STEPS:]:
        for line, row in file_rows(one.path).items():
            episode = narrow.mapping(narrow.mapping(row).get("episode"))
            began = narrow.real(episode.get("began"))
            place = place_of(one.step, one.phase, one.process, line)
            for step in map(narrow.mapping, narrow.listed(episode.get("steps"))):
                at = narrow.real(step.get("at"))
                if began is None or at is None:
                    continue
                start = began + at
                for call in map(narrow.mapping, narrow.listed(step.get("calls"))):
                    seconds = narrow.real(call.get("seconds")) or 0.0
                    found.append({
                        "item": f"{slug}:{place}", "name": narrow.name(call.get("name")),
                        "start": start, "end": start + seconds,
                    })  # fmt: skip
                    start += seconds
            if len(found) >= _MOST_SPANS:
                return found
    return found
