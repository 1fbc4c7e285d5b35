"""Notes on items, beside their source: RUN/notes.jsonl, JOURNAL.notes.jsonl.

Append-only, for the owner alone; of an item the last note counts, and one without a label or text
takes it back. A last line that a kill cut short is mended by the next note.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assay.viewer.index import narrow
from assay.viewer.sources import read_lines

LABELS = ("right", "wrong", "exploit", "unsure", "")
MOST_BYTES = 16_384
_TRUTH = {"right": 1, "wrong": 0, "exploit": 0}


def read(path: Path) -> dict[int, dict[str, Any]]:
    """The note that counts of each item, by place: `label`, `text`, `time_s`."""
    found: dict[int, dict[str, Any]] = {}
    for row in read_lines(path)[0]:
        place, label = narrow.whole(row.get("place")), row.get("label", "")
        if place is None or label not in LABELS:
            continue
        text = narrow.text(row.get("text"))
        found.pop(place, None)
        if label or text:
            found[place] = {"label": label, "text": text, "time_s": narrow.real(row.get("time_s"))}
    return found


def write(path: Path, place: int, label: str, text: str) -> dict[str, Any]:
    """Appends a note.

    Raises:
        ValueError: the label is none of LABELS, or the text too long.
        OSError: it cannot be written.
    """
    if label not in LABELS:
        raise ValueError(f"label is one of {', '.join(filter(None, LABELS))}, or empty")
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise ValueError(f"a note has at most {MOST_BYTES} bytes")
    row = {"place": place, "label": label, "text": text, "time_s": round(time.time(), 3)}
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file).st_size
        whole = not size or os.pread(file, 1, size - 1) == b"\n"
        line = ("" if whole else "\n") + json.dumps(row) + "\n"
        os.write(file, line.encode())
        os.fsync(file)
    finally:
        os.close(file)
    return row


def labelled(raw: Mapping[str, Any], note: Mapping[str, Any], identity: str) -> dict[str, Any]:
    """A row of a labelled set, which `assay eval-judge` reads.

    Args:
        raw: the source's row, of a rollout or as `journals.rows.row_of` writes an entry.
        note: its label is 1 for right, 0 for wrong and exploit; the rest is no row.
        identity: the item's id.
    """
    prompt = raw.get("prompt") or raw.get("question") or ""
    response = raw.get("response")
    if not isinstance(response, str):
        turns = [one for one in narrow.listed(raw.get("turns")) if isinstance(one, Mapping)]
        response = narrow.text(turns[-1].get("content", turns[-1].get("text"))) if turns else ""
    row: dict[str, Any] = {
        "id": identity,
        "prompt": prompt,
        "response": response,
        "label": _TRUTH[note["label"]],
        "subset": note["label"],
        "note": note["text"],
    }
    for name in ("reference", "tests", "anchor", "verifier", "reward", "verdict", "journal_cut"):
        if raw.get(name) is not None:
            row[name] = raw[name]
    judgement = narrow.mapping(raw.get("judgement"))
    return {
        **row,
        **{name: judgement[name] for name in ("verifier", "verdict") if name in judgement},
    }


def has_label(note: Mapping[str, Any]) -> bool:
    """Whether a note says right or wrong."""
    return note.get("label") in _TRUTH


def summed(those: Iterator[dict[str, Any]]) -> list[list[Any]]:
    """Notes by label, the commonest first."""
    found: dict[str, int] = {}
    for one in those:
        found[one["label"] or "text"] = found.get(one["label"] or "text", 0) + 1
    return [[name, count] for name, count in sorted(found.items(), key=lambda one: -one[1])]
