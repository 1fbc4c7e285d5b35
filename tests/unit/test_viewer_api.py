"""What the viewer answers beside lists: notes, exports, events, likeness, timelines."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cli.commands.audit import read_audit_rows
from assay.cli.evaluation.rows import kind_of_row, questions_of
from assay.clients.judging import JudgeItem
from assay.clients.rows.items import Defaults, Keys, item_of
from assay.kit.runs.records import JsonLines
from assay.kit.runs.rollouts import path_for, timeline_for, write_rollouts
from assay.viewer import notes
from assay.viewer.api import ViewerApi
from viewer_sources_support import ask, entry, every, fill, make_run, rollout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run and a journal."""
    make_run(tmp_path / "all" / "run")
    fill(tmp_path / "all" / "verdicts.sqlite", map(entry, range(6)))
    return tmp_path / "all"


@pytest.fixture
def api(folder: Path) -> Iterator[ViewerApi]:
    """A viewer of both, indexed."""
    with ViewerApi([folder], folder.parent / "cache", background=False) as made:
        made.index_all()
        yield made


def note(api: ViewerApi, identity: str, label: str, text: str = "") -> None:
    status, found = api.note({"id": identity, "label": label, "text": text})
    assert status == 200, found


def test_the_last_note_counts_and_an_empty_one_takes_it_back(api: ViewerApi, folder: Path) -> None:
    first, second, third = (one["id"] for one in every(api, source="run")[:3])
    note(api, first, "right")
    note(api, first, "exploit", "it prints the answer \ud83d <script>")
    note(api, second, "unsure")
    note(api, third, "wrong")
    note(api, third, "")
    told = {one["id"]: one["note"] for one in every(api, source="run")}
    assert told[first]["label"] == "exploit"
    assert told[second]["label"] == "unsure"
    assert told[third] is None
    assert {one["id"] for one in every(api, note="any")} == {first, second}
    assert {one["id"] for one in every(api, note="exploit")} == {first}
    assert ask(api, "facets")["notes"] == [["exploit", 1], ["unsure", 1]]
    assert stat.S_IMODE((folder / "run" / "notes.jsonl").stat().st_mode) == 0o600
    with ViewerApi([folder], folder.parent / "other", background=False) as again:
        again.index_all()
        assert {one["id"] for one in every(again, note="any")} == {first, second}


def test_a_line_that_a_kill_cut_costs_itself_alone(api: ViewerApi, folder: Path) -> None:
    first, second = (one["id"] for one in every(api, source="verdicts.sqlite")[:2])
    note(api, first, "right")
    note(api, second, "wrong")
    path = folder / "verdicts.sqlite.notes.jsonl"
    whole = path.read_bytes()
    cut = whole.index(b"\n") + 1
    for end in range(cut, len(whole)):
        path.write_bytes(whole[:end])
        assert {one["id"] for one in every(api, note="any")} >= {first}
    note(api, second, "exploit")
    told = {one["id"]: one["note"]["label"] for one in every(api, note="any")}
    assert told == {first: "right", second: "exploit"}


@pytest.mark.parametrize(
    "line",
    ["[]", "7", "null", "{", '{"place": "1"}', '{"place": -4, "label": "right"}',
     '{"place": 1e400, "label": "right"}', '{"place": 99999999999999999999, "label": "right"}',
     '{"place": 1, "label": "hacked"}', '{"place": 1, "label": ["right"]}', "[" * 100_000,
     '{"place": 1, "label": {"a": 1}, "text": "x"}', "\xff\x00"],
)  # fmt: skip
def test_a_hostile_note_is_none(api: ViewerApi, folder: Path, line: str) -> None:
    (folder / "verdicts.sqlite.notes.jsonl").write_bytes(line.encode("latin-1") + b"\n")
    assert every(api, note="any") == []
    assert len(every(api)) == 24
    assert list(api.labelled([])) == []
    assert ask(api, "facets")["notes"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [({"id": "run:1", "label": "bad"}, 400), ({"id": "no:1", "label": "right"}, 400),
     ({"id": "run", "label": "right"}, 400), ({"id": 4, "label": "right"}, 400), ([], 400),
     ({"id": "run:1", "label": "right", "text": "x" * (notes.MOST_BYTES + 1)}, 400)],
)  # fmt: skip
def test_a_note_that_is_refused(api: ViewerApi, body: Any, status: int) -> None:
    assert api.note(body)[0] == status
    assert every(api, note="any") == []


def test_labelled_rows_are_read_by_eval_judge(api: ViewerApi) -> None:
    chosen = [*every(api, source="run")[:2], *every(api, source="verdicts.sqlite")[:2]]
    for one, label in zip(chosen, ("right", "exploit", "wrong", "unsure"), strict=True):
        note(api, one["id"], label, "why")
    rows = json.loads(json.dumps(list(api.labelled([]))))
    by_id = {row["id"]: row for row in rows}
    assert by_id.keys() == {one["id"] for one in chosen[:3]}
    for line, row in enumerate(rows, 1):
        assert kind_of_row(row) == "points"
        (question,) = questions_of(row, line, "points")
        assert question.labels == (float(row["subset"] == "right"),)
        assert isinstance(question.items[0], JudgeItem)
        assert question.items[0].response == row["response"]
        assert question.items[0].ground_truth == row["reference"]
    narrowed = list(api.labelled([("source", "run"), ("note", "right")]))
    assert [row["id"] for row in narrowed] == [chosen[0]["id"]]


def test_labelled_rows_are_asked_by_an_audit(api: ViewerApi, tmp_path: Path) -> None:
    chosen = every(api, source="run")[:2]
    for one, label in zip(chosen, ("right", "exploit"), strict=True):
        note(api, one["id"], label, "why")
    exported = list(api.labelled([]))
    file = tmp_path / "noted.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in exported))
    read, _ = read_audit_rows(str(file))
    said = {row["id"]: row["response"] for row in exported}
    for row in read:
        expected = ((said[row.id],), ()) if row.id == chosen[0]["id"] else ((), (said[row.id],))
        assert (row.right, row.wrong) == expected
    assert len(read) == 2


def test_exported_rows_are_read_by_score(api: ViewerApi) -> None:
    for source, verifier in (("run", "math"), ("verdicts.sqlite", "exact")):
        rows = json.loads(json.dumps(list(api.export([("source", source)]))))
        items = every(api, source=source)
        assert len(rows) == len(items)
        for row in rows:
            item = item_of(Keys(), Defaults(verifier=verifier), row, "1")
            assert item.response == row["response"]
            assert item.reference == row["reference"]
            assert item.verifier == verifier
    some = list(api.export([("source", "run"), ("verdict", "correct"), ("step", "2")]))
    assert {(row["step"], row["judgement"]["verdict"]) for row in some} == {(2, "correct")}
    assert len(some) == 3


def test_events_are_what_came_after(api: ViewerApi, folder: Path) -> None:
    query = [("source", "verdicts.sqlite"), ("verifier", "exact")]
    rows, mark = api.events(query, -1)
    assert rows == []
    fill(
        folder / "verdicts.sqlite",
        (entry(n, verifier="exact" if n % 2 else "math") for n in range(10, 20)),
    )
    api.index_all()
    rows, after = api.events(query, mark)
    assert [row["response"] for row in rows] == [f"response {n}" for n in range(11, 20, 2)]
    assert api.events(query, after) == ([], after)


def test_what_is_alike_is_found(api: ViewerApi, folder: Path) -> None:
    text = "we add {} to both sides of it and then divide all of it by {} so that x is left alone"
    texts = [text.format(n, n + 1) for n in range(3)] + ["something else entirely, said in words"]
    path = path_for(folder / "run" / "rollouts", 9)
    write_rollouts(path, [rollout(9, n, response=one) for n, one in enumerate(texts)])
    api.index_all()
    step = {one["draw"]: one["id"] for one in every(api, step="9")}
    found = ask(api, "similar", id=step[0])
    assert {one["id"] for one in found} == {step[1], step[2]}
    assert all(one["likeness"] == 1.0 for one in found)
    assert ask(api, "similar", id=step[3]) == []


def test_a_timeline_has_spans_and_the_tools_of_episodes(api: ViewerApi, folder: Path) -> None:
    rollouts = folder / "run" / "rollouts"
    file = JsonLines(timeline_for(rollouts, 0))
    for step in (1, 2, 3):
        for what, start in (("collect", 10.0 * step), ("update", 10.0 * step + 4)):
            file.write({"step": step, "process": 0, "what": what, "start": start, "end": start + 2})
    file.write({"step": 2, "what": "torn", "start": None, "end": 5})
    file.close()
    calls = [{"name": "python", "seconds": 1.5}, {"name": "search", "seconds": 0.5}]
    episode = {"began": 20.0, "seconds": 3.0, "steps": [{"at": 0.25, "text": "", "calls": calls}]}
    write_rollouts(path_for(rollouts, 2), [rollout(2, 0, episode=episode)])
    found = ask(api, "timeline", source="run", **{"from": "2", "to": "3"})
    told = [(one["what"], one["step"], one["start"]) for one in found["spans"]]
    assert told == [("collect", 2, 20.0), ("update", 2, 24.0), ("collect", 3, 30.0),
                    ("update", 3, 34.0)]  # fmt: skip
    assert [(one["name"], one["start"], one["end"]) for one in found["tools"]] == [
        ("python", 20.25, 21.75), ("search", 21.75, 22.25)
    ]  # fmt: skip
    api.index_all()
    assert {one["item"] for one in found["tools"]} == {one["id"] for one in every(api, step="2")}


def test_a_problem_is_counted_among_the_newest(api: ViewerApi) -> None:
    found = ask(api, "facets", source="run")
    assert dict(found["problems"]) == {"p0": 6, "p1": 6, "p2": 6}
    assert found["problems_over"] >= 18
