"""How judges dress their verdicts: each dialect a row of tests/dialects, beside what is refused."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.genrm.judges.critique import parse_critique, read_line
from assay.genrm.judges.dress import bare
from assay.genrm.judges.parsing import read_direct, read_reasoned

FOLDER = Path(__file__).parent.parent / "dialects"


def rows_of(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))


LINES = rows_of("lines.toml")["rows"]
CRITIQUES = rows_of("critiques.toml")["rows"]
VERDICTS = [
    (kind, table, row) for kind, table in rows_of("verdicts.toml").items() for row in table["rows"]
]
SAYS = {"right": True, "wrong": False, "later": None}


@pytest.mark.parametrize("row", LINES, ids=lambda row: row["line"][:60] or "nothing")
def test_a_line_of_a_critique(row: dict[str, Any]) -> None:
    found = read_line(row["line"])
    if "step" not in row:
        assert found is None
        return
    assert found is not None
    assert (found.number, found.right) == (row["step"], SAYS[row["says"]])


@pytest.mark.parametrize("row", CRITIQUES, ids=lambda row: row["name"])
def test_a_whole_critique(row: dict[str, Any]) -> None:
    found = parse_critique(row["text"], row["steps"])
    if "says" not in row:
        assert found is None
        return
    assert found is not None
    assert "".join("wc"[right] for right in (*found.steps, found.final)) == row["says"]
    assert len(found.notes) == row["steps"]


@pytest.mark.parametrize(
    ("kind", "table", "row"), VERDICTS, ids=[f"{k}: {r['text'][:50]!r}" for k, _, r in VERDICTS]
)
def test_a_verdict(kind: str, table: dict[str, Any], row: dict[str, Any]) -> None:
    options = table["options"]
    if kind == "reasoned":
        found = read_reasoned(row["text"], options)
    else:
        found = read_direct(row["text"], options, table["prefill"])
    assert (None if found is None else options[found].strip()) == row.get("reads")


@given(st.text(max_size=60))
def test_what_is_bare_stays_so(text: str) -> None:
    assert bare(bare(text)) == bare(bare(bare(text)))
    assert "*" not in bare(text)


@given(st.text(alphabet="stepverdict 1:correctwrong*|#>\n`\u2705\u274c", max_size=300))
def test_no_text_has_verdicts_that_no_line_gives(text: str) -> None:
    found = parse_critique(text, 1)
    if found is not None:
        lowered = text.lower()
        assert any(word in lowered for word in ("correct", "right", "valid", "wrong")) or (
            "\u2705" in text or "\u274c" in text
        )


@pytest.mark.parametrize(
    "text",
    [
        "*" * 400_000,
        "| " * 200_000,
        "Step 1" * 60_000,
        "\n".join("[" * 90_000),
        "</think>" * 50_000,
    ],
    ids=["stars", "cells", "steps", "brackets", "ends"],
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    began = time.process_time()
    assert parse_critique(text, 1) is None
    assert read_direct(text, (" A", " B")) is None
    assert read_reasoned(text, ("1", "2")) is None
    once = time.process_time() - began
    began = time.process_time()
    parse_critique(text * 2, 1)
    read_reasoned(text * 2, ("1", "2"))
    assert time.process_time() - began < 10 * once + 1.0
