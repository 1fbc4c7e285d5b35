"""Programs to label: rows in, prefixes, labelled rows out; the search asked step by step."""

from __future__ import annotations

import asyncio
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from assay.clients.rows.items import RowError
from assay.clients.rows.preferences import steps_of
from assay.genrm.labelling.commands import label_all, read_tasks, report
from assay.genrm.labelling.labeller import UnknownLabel
from assay.genrm.labelling.tasks import (
    Cost,
    NoProgramError,
    ask_for_rest,
    labelled,
    lines_in,
    prefix_of,
    task_of,
)
from assay.genrm.steps import prefix_search, search_prefix, split
from assay.kit.errors import ConfigError
from assay.kit.runs.progress import Display
from assay.kit.runs.records import mend, read_rows

CODE = "# adds\n\ndef add(a, b):\n    # both\n    total = a + b\n\n    return total  # done\n"
ROW = {
    "id": "7",
    "prompt": "Write add.",
    "code": CODE,
    "tests": {"asserts": ["assert add(1, 2) == 3"]},
}


def test_a_program_is_cut_into_lines_of_code_and_others() -> None:
    task = task_of(ROW)
    assert task.program == CODE
    assert task.neutral == (True, True, False, True, False, True, False)
    assert (task.code_lines, task.most_calls) == (3, 2)
    assert [lines_in(task, n) for n in range(4)] == [0, 3, 5, 7]
    assert prefix_of(task, 0) == ""
    assert prefix_of(task, 2) == "# adds\n\ndef add(a, b):\n    # both\n    total = a + b\n"
    assert prefix_of(task, 3) == CODE
    assert prefix_of(task_of({**ROW, "code": CODE.rstrip("\n")}), 3) == CODE


def test_labels_are_right_up_to_the_prefix_wrong_behind_it_and_neutral_for_comments() -> None:
    row = labelled(task_of(ROW), 2, passed=False, cost=Cost(2, 40, 31, 900))
    assert row["labels"] == [0, 0, 1, 0, 1, 0, -1]
    assert (row["id"], row["prompt"], row["calls"], row["executions"]) == ("7", "Write add.", 2, 31)
    assert labelled(task_of(ROW), 0, passed=False, cost=Cost())["labels"] == [
        0,
        0,
        -1,
        0,
        -1,
        0,
        -1,
    ]
    bare = labelled(task_of(ROW, comments=True), 2, passed=False, cost=Cost())
    assert bare["labels"] == [1, 0, 1, -1, -1, 0, -1], "without the guard comments count"


@given(st.integers(0, 3))
def test_what_comes_out_is_what_train_rm_reads(feasible: int) -> None:
    row = json.loads(json.dumps(labelled(task_of(ROW), feasible, passed=False, cost=Cost())))
    read = steps_of(row, "signed")
    assert read.response == CODE
    told = [0.0 if label is None else label for label in read.labels]
    assert told == row["labels"]


def test_the_policy_goes_on_within_a_block() -> None:
    prompt = ask_for_rest(task_of(ROW), "def add(a, b):\n")
    assert [(m.role, m.text) for m in prompt.messages] == [("user", "Write add.")]
    [lead] = prompt.lead
    assert (lead.text, lead.trusted) == ("```python\ndef add(a, b):\n", False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"code": "\n \n"}, "'code' must be a program"),
        ({"code": "# nothing\n"}, "nothing but comments"),
        ({"tests": None}, "'tests': "),
        ({"prompt": 3}, "prompt"),
    ],
)
def test_a_row_that_lacks_something_says_so(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RowError, match=message):
        task_of({**ROW, **change})


def test_equal_programs_are_labelled_once_and_a_bad_row_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (ROW, {**ROW, "id": "8"}, ROW)))
    assert len(read_tasks(path, "python")) == 1
    path.write_text(json.dumps(ROW) + "\n" + json.dumps({"prompt": "x", "code": "x"}) + "\n")
    with pytest.raises(ConfigError, match=r"rows\.jsonl:2: 'tests' is missing"):
        read_tasks(path, "python")


@given(st.integers(0, 200), st.data())
def test_the_search_can_be_asked_step_by_step(lines: int, data: st.DataObject) -> None:
    feasible = data.draw(st.integers(0, lines))
    search, asked = prefix_search(lines), []
    try:
        length = next(search)
        while True:
            asked.append(length)
            length = search.send(length <= feasible)
    except StopIteration as end:
        found = end.value
    assert (found, len(asked)) == search_prefix(lines, lambda count: count <= feasible)
    assert found == feasible
    assert len(asked) <= lines.bit_length()


async def test_a_fault_leaves_a_program_without_labels_and_the_others_go_on() -> None:
    tasks = [task_of({**ROW, "code": CODE + f"x = {n}\n"}) for n in range(5)]

    async def label(task: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        if task is tasks[2]:
            raise UnknownLabel("UNREACHABLE", "the sandbox is gone")
        return labelled(task, 1, passed=False, cost=Cost(2, 8, 5, 30))

    kept: list[dict[str, Any]] = []
    console = Console(file=io.StringIO(), width=200)
    outcome = await label_all(
        tasks, label, samples=4, at_once=2, keep=kept.append, display=Display(console)
    )
    assert len(kept) == len(outcome.rows) == 4
    assert outcome.faults == {"UNREACHABLE": 1}
    assert outcome.cost == Cost(8, 32, 20, 120)
    assert outcome.bound == 4 * 3 * 4
    said = " ".join(report(outcome, 65.0))
    assert "4 programs labelled in 1:05" in said
    assert "32 completions (at most 48" in said
    assert "1 programs not labelled (UNREACHABLE x1); the same command tries them again" in said


def test_a_row_cut_by_a_kill_is_taken_off(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    mend(path)
    path.write_text('{"key": "a"}\n{"key": "b"}\n{"ke')
    mend(path)
    assert [row["key"] for row in read_rows(path)] == ["a", "b"]
    assert path.read_text().endswith('"b"}\n')


RESPONSE = "Sure.\n```python\n# adds\ndef add(a, b):\n    return a - b\n```\nDone.\n"
OF_RESPONSE = {**{k: v for k, v in ROW.items() if k != "code"}, "response": RESPONSE}


def test_the_program_of_a_response_is_its_last_block_and_the_rest_is_neutral() -> None:
    task = task_of(OF_RESPONSE)
    assert task.program == "# adds\ndef add(a, b):\n    return a - b\n"
    assert (task.before, task.behind) == (("Sure.\n", "```python\n"), ("```\n", "Done.\n"))
    assert ask_for_rest(task, prefix_of(task, 1)).lead[0].text == RESPONSE.partition("    ret")[0]
    row = labelled(task, 1, passed=False, cost=Cost())
    assert "code" not in row
    assert "".join(row["steps"]) == RESPONSE
    assert row["labels"] == [0, 0, 0, 1, -1, 0, 0]
    assert steps_of(row, "signed").response == RESPONSE


@given(st.text(alphabet="ab#\n`\"' ", max_size=40), st.booleans())
def test_the_lines_of_a_response_are_those_that_a_served_prm_scores(text: str, whole: bool) -> None:
    row = {**OF_RESPONSE, "response": text} | ({"extraction": "whole"} if whole else {})
    spans = split(text, "code-line")
    try:
        task = task_of(row)
    except NoProgramError:
        return
    out = labelled(task, task.code_lines, passed=True, cost=Cost())
    assert out["steps"] == [text[span.start : span.end] for span in spans]
    scored = [not span.neutral for span in spans]
    assert all(there or not label for there, label in zip(scored, out["labels"], strict=True))
    if whole:
        assert [bool(label) for label in out["labels"]] == scored


def test_a_response_without_a_program_is_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [OF_RESPONSE, {**OF_RESPONSE, "response": "I cannot."}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    skipped: Counter[str] = Counter()
    assert len(read_tasks(path, "python", skipped=skipped)) == 1
    assert skipped.total() == 1
    commented = task_of(OF_RESPONSE, comments=True)
    assert commented.key != task_of(OF_RESPONSE).key, "labels of another kind are others"
    assert labelled(commented, 2, passed=False, cost=Cost())["labels"] == [0, 0, 1, 1, -1, 0, 0]
