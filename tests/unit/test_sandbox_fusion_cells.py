"""SandboxFusion's notebooks: a request to a session, and what came of its cells to the response."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.session.v1 import session_pb2
from assay.compat.sandbox_fusion.jupyter import Notebook, answer_run_jupyter, read_run_jupyter
from assay.compat.sessions import Cell

NOTEBOOK = {"cells": ["1"], "files": {}, "total_timeout": 1, "cell_timeout": 1, "kernel": "python3"}


def cell(end: str = "COMPLETED", *shown: dict[str, bytes], seconds: int = 0, **said: Any) -> Cell:
    """A cell that ended so."""
    result = session_pb2.CellResult(end=f"CELL_END_{end}", **said)
    result.usage.wall_time.seconds = seconds
    return Cell(result, [session_pb2.DisplayValue(data=data) for data in shown])


def test_a_notebook_is_one_session_with_its_limits() -> None:
    most = session_pb2.SessionLimits()
    most.cpu_time.seconds, most.cell_cpu_time.seconds = 600, 30
    given = {"files": {"/mnt/a": "eA=="}, "memory_limit_MB": 64, "total_timeout": 20}
    wanted = read_run_jupyter({"cells": ["1"], "cell_timeout": 2, **given})
    session = wanted.session(most)
    assert [(file.path, file.content) for file in session.files] == [("a", b"x")]
    limits = session.limits
    assert (limits.cell_wall_time.seconds, limits.memory_bytes) == (2, 64 * 2**20)
    assert (limits.cpu_time.seconds, limits.cell_cpu_time.seconds) == (80, 30)
    assert read_run_jupyter({"cells": []}).session(most).limits.cell_wall_time.seconds == 45


def test_what_a_cell_showed_is_a_bundle_of_jupyters() -> None:
    book = Notebook(read_run_jupyter({**NOTEBOOK, "fetch_files": ["./o"]}))
    picture = {"text/plain": b"<Figure>", "image/png": b"\x89PNG", "application/json": b'{"a": 1}'}
    value = session_pb2.DisplayValue(data={"text/plain": b"7", "application/json": b"[1e999"})
    book.add(cell("COMPLETED", picture, value=value, stdout={"data": b"\xff"}))
    book.files = [session_pb2.SessionFile(path="o", content=b"x")]
    answer = answer_run_jupyter(book)
    assert (answer["status"], answer["files"]) == ("Success", {"./o": "eA=="})
    assert answer["cells"] == [
        {
            "stdout": "\ufffd",
            "stderr": "",
            "display": [
                {"application/json": {"a": 1}, "image/png": "iVBORw==", "text/plain": "<Figure>"},
                {"application/json": "[1e999", "text/plain": "7"},
            ],
            "error": [],
        }
    ]


@given(st.binary(max_size=60), st.sampled_from(["application/json", "text/html", "image/png", "x"]))
def test_no_value_of_a_cell_breaks_the_answer(data: bytes, mime: str) -> None:
    book = Notebook(read_run_jupyter(NOTEBOOK))
    for each in (data, b"[1e999, NaN]", b"[" * 100_000):
        book.add(cell("COMPLETED", {mime: each}))
    json.dumps(answer_run_jupyter(book), allow_nan=False)


@pytest.mark.parametrize(("end", "name"), [
    ("RAISED", "ValueError"), ("EXITED", "SystemExit"), ("INTERRUPTED", "KeyboardInterrupt"),
    ("WALL_TIME_LIMIT", "TimeoutError"), ("CPU_TIME_LIMIT", "TimeoutError"),
])  # fmt: skip
def test_a_cell_that_does_not_complete_says_why_and_the_next_one_runs(end: str, name: str) -> None:
    book = Notebook(read_run_jupyter({**NOTEBOOK, "cells": ["a", "b"], "cell_timeout": 0.5}))
    book.add(cell(end, error={"name": "ValueError", "message": "no", "traceback": "T\nE: no\n"}))
    assert book.next_cell() == "b"
    answer: Any = answer_run_jupyter(book)
    [error] = answer["cells"][0]["error"]
    assert (answer["status"], error["ename"]) == ("Success", name)
    assert error["traceback"][:2] == ["T\n", "E: no\n"]


def test_a_notebook_that_runs_out_of_time_has_no_results() -> None:
    body = {**NOTEBOOK, "cells": ["a", "b", "c"], "total_timeout": 5, "cell_timeout": 3}
    book = Notebook(read_run_jupyter(body))
    book.add(cell("WALL_TIME_LIMIT", seconds=3))
    assert (book.next_cell(), book.allowed_s) == ("b", 2)
    book.add(cell("WALL_TIME_LIMIT", seconds=2))
    assert book.next_cell() is None
    answer: Any = answer_run_jupyter(book)
    assert (answer["status"], answer["cells"]) == ("Failed", [])
    assert answer["driver"]["status"] == "TimeLimitExceeded"


@pytest.mark.parametrize(("end", "said", "code"), [
    ("MEMORY_LIMIT", {}, -9), ("SECURITY_VIOLATION", {}, -31), ("DIED", {"signal": 11}, -11),
    ("DIED", {"exit_code": 3}, 3), ("BUDGET_SPENT", {}, -9),
])  # fmt: skip
def test_a_program_that_ends_its_session_fails_with_the_cells_until_then(
    end: str, said: dict[str, int], code: int
) -> None:
    book = Notebook(read_run_jupyter({**NOTEBOOK, "cells": ["a", "b", "c"]}))
    book.add(cell())
    book.add(cell(end, session_over=True, **said))
    assert book.next_cell() is None
    answer: Any = answer_run_jupyter(book)
    assert (answer["status"], len(answer["cells"])) == ("Failed", 2)
    assert answer["message"] == end.lower().replace("_", "-")
    assert (answer["driver"]["status"], answer["driver"]["return_code"]) == ("Finished", code)
