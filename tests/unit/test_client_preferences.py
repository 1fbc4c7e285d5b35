"""Rows of preference pairs and of labelled steps."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.rows.items import RowError
from assay.clients.rows.preferences import (
    Said,
    group_of,
    is_pair,
    is_steps,
    pairs_of,
    read,
    steps_of,
)
from assay.kit.errors import ConfigError

PAIR = {"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}
STEPS = {"problem": "2 + 2?", "steps": ["2 + 2", "= 5"], "labels": [1, 0]}


def test_a_plain_pair() -> None:
    (row,) = pairs_of({**PAIR, "subset": "sums"})
    assert (row.prompt, row.chosen, row.rejected) == ((Said("user", "2 + 2?"),), "4", "5")
    assert (row.subset, row.styles) == ("sums", (0, 0))


def test_a_pair_of_messages() -> None:
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}]
    answers = {
        key: [{"role": "assistant", "content": text}]
        for key, text in (("chosen", "4"), ("rejected", "5"))
    }
    (row,) = pairs_of({"prompt": asked, **answers})
    assert [said.role for said in row.prompt] == ["system", "user"]
    assert (row.chosen, row.rejected) == ("4", "5")


def test_whole_dialogues_share_what_stands_before_the_answer() -> None:
    start = "\n\nHuman: hello\n\nAssistant: hi\n\nHuman: 2 + 2?\n\nAssistant:"
    (row,) = pairs_of({"chosen": start + " 4", "rejected": start + " 5"})
    assert row.prompt == (Said("user", "hello"), Said("assistant", "hi"), Said("user", "2 + 2?"))
    assert (row.chosen, row.rejected) == ("4", "5")
    as_messages = [{"role": said.role, "content": said.content} for said in row.prompt]
    same = {
        key: [*as_messages, {"role": "assistant", "content": text}]
        for key, text in (("chosen", "4"), ("rejected", "5"))
    }
    assert pairs_of(same) == [row]


def test_styles_are_paired_with_their_own_or_with_each() -> None:
    row = {"prompt": "?", "chosen": ["a", "b"], "rejected": ["c", "d"]}
    assert [(p.chosen, p.rejected) for p in pairs_of(row)] == [("a", "c"), ("b", "d")]
    assert [p.styles for p in pairs_of(row, "cross")] == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"prompt": "?", "chosen": "a"}, "'rejected' is missing"),
        ({**PAIR, "chosen": " "}, "'chosen' is empty"),
        ({**PAIR, "chosen": "5"}, "no preference"),
        ({**PAIR, "chosen": 4}, "'chosen' is a number"),
        ({**PAIR, "prompt": ""}, "'prompt' is missing"),
        ({**PAIR, "prompt": 7}, "'prompt' is a number"),
        ({**PAIR, "prompt": [{"role": "judge", "content": "A"}]}, "no message"),
        ({"chosen": "4", "rejected": "5"}, "does not begin with Human:"),
        ({"chosen": "\n\nHuman: hi", "rejected": "\n\nHuman: hi"}, "no dialogue"),
        (
            {"chosen": "\n\nHuman: a\n\nAssistant: x", "rejected": "\n\nHuman: b\n\nAssistant: y"},
            "differ before their last answer",
        ),
        ({"prompt": "?", "chosen": ["a", "b"], "rejected": ["c"]}, "2 styles"),
        ({"prompt": "?", "chosen": [], "rejected": []}, "0 styles"),
    ],
)
def test_what_is_no_pair_is_said(row: dict[str, Any], says: str) -> None:
    with pytest.raises(RowError, match=says):
        pairs_of(row)


def test_binary_labels_are_right_wrong_and_unlabelled() -> None:
    row = steps_of({**STEPS, "steps": ["a", "b", "c", ""], "labels": [1, 0, None, 1]})
    assert row.labels == (1.0, -1.0, None, None)
    assert row.steps == ("a\n", "b\n", "c\n", "")
    assert row.response == "a\nb\nc\n"


def test_signed_labels_know_neutral_lines_of_code() -> None:
    row = steps_of({"prompt": "f?", "code": "# sum\nx = 1\n\nx += 2", "labels": [0, 1, 0, -1]})
    assert row.steps == ("# sum\n", "x = 1\n", "\n", "x += 2")
    assert row.labels == (0.0, 1.0, None, -1.0)
    assert steps_of({**STEPS, "labels": [1, -1]}, "signed").labels == (1.0, -1.0)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"steps": ["a"], "labels": [1]}, "'prompt' is missing"),
        ({**STEPS, "labels": [1]}, "1 'labels' for 2 steps"),
        ({**STEPS, "labels": None}, "no 'labels'; write one for each of the 2"),
        ({**STEPS, "labels": [1, 2]}, "label 2 is none of 1, 0 and null"),
        ({**STEPS, "labels": [1, -1]}, "label -1"),
        ({**STEPS, "labels": [1, float("nan")]}, "label nan"),
        ({**STEPS, "labels": [1, [0]]}, "label"),
        ({**STEPS, "labels": [None, None]}, "no step has a label"),
        ({**STEPS, "steps": "a\nb"}, "'steps' must be a list"),
        ({"prompt": "?", "code": ["x"], "labels": [1]}, "'code' is a list"),
        ({"problem": "?", "steps": [], "labels": []}, "0 'labels' for 0 steps"),
    ],
)
def test_what_is_no_labelled_response_is_said(row: dict[str, Any], says: str) -> None:
    with pytest.raises(RowError, match=says):
        steps_of(row)


def test_kinds_of_rows_are_told_apart() -> None:
    assert is_pair(PAIR)
    assert not is_steps(PAIR)
    assert is_steps(STEPS)
    assert not is_pair(STEPS)


def test_a_group_is_the_first_question_without_space_and_case() -> None:
    asked = (Said("system", "s"), Said("user", " What  is\n2 + 2? "))
    assert group_of(asked) == group_of((Said("user", "what is 2 + 2?"), Said("assistant", "4")))


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_any_two_texts_are_a_pair_or_an_error(prompt: str, chosen: str, rejected: str) -> None:
    try:
        (row,) = pairs_of({"prompt": prompt, "chosen": chosen, "rejected": rejected})
    except RowError:
        assert not chosen.strip() or not rejected.strip() or chosen == rejected
    else:
        assert (row.chosen, row.rejected) == (chosen, rejected)


@given(st.lists(st.tuples(st.text(), st.sampled_from([0, 1, None])), min_size=1))
def test_steps_keep_their_text_and_their_labels(steps: list[tuple[str, int | None]]) -> None:
    row = {"prompt": "?", "steps": [text for text, _ in steps], "labels": [x for _, x in steps]}
    try:
        found = steps_of(row)
    except RowError:
        assert all(label is None or not text.strip() for text, label in steps)
        return
    assert [step.removesuffix("\n") for step in found.steps] == [
        text.removesuffix("\n") for text, _ in steps
    ]
    for (text, label), value in zip(steps, found.labels, strict=True):
        assert value == (None if label is None or not text.strip() else 2 * label - 1)


def test_files_are_read_by_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps(PAIR)}\n\n{json.dumps(STEPS)}\n", encoding="utf-8")
    assert list(read(path)) == [(1, PAIR), (3, STEPS)]
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read(packed)) == [(1, PAIR), (3, STEPS)]


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"{}\n{", ":2: not JSON"), (b"[1]", ":1: a list"), (b"\xff", ":1: not JSON")],
)
def test_a_bad_line_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=says):
        list(read(path))


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not there"):
        list(read(tmp_path / "none.jsonl"))
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(b"{}\n" * 1000)[:-9])
    with pytest.raises(ConfigError, match="not a whole gzip file"):
        list(read(cut))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "rows", "bad"),
    [
        ("rm_bench_no_math", 2394, 0),
        ("llmbar", 419, 0),
        ("judgebench", 619, 1),
        ("autoj_pairwise", 1017, 2),
        ("hh_rlhf_harmless_test", 2303, 9),
        ("prm800k_clean_processes", 1377, 0),
    ],
)
def test_shared_files(shared_data: Path, name: str, rows: int, bad: int) -> None:
    good, wrong = 0, 0
    for _, row in read(shared_data / f"{name}.jsonl.gz"):
        try:
            good += len(pairs_of(row)) if is_pair(row) else len([steps_of(row)])
        except RowError:
            wrong += 1
    assert (good, wrong) == (rows, bad)
