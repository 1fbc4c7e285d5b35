"""Law of the export: the row of a whole entry is the item that was judged; a cut one is none."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.clients import Anchor, Data, Item, ToolCall, Turn
from assay.clients.convert import item_to_proto
from assay.clients.rows.items import Defaults, Keys, RowError, item_of
from assay.clients.rows.tests import read_tests
from assay.reward_server import convert
from assay.reward_server.domain import ParameterSpec, VerifierItem, VerifierSpec
from assay.reward_server.journal import entries
from assay.reward_server.pending import PendingScore, Served
from assay.viewer.journals.reader import Reader
from assay.viewer.journals.rows import is_whole, row_of
from journal_support import REGISTRY, filled, judgement

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
SUITES = st.sampled_from([
    [{"stdin": "1\n", "stdout": "\u4e2d\n"}],
    {"tests": [{"args": [1, 2.5, None], "expected": {"a": [1]}}], "function": "add"},
    {"asserts": ["assert add(1, 2) == 3"], "setup": "import math"},
]).map(read_tests)  # fmt: skip
ITEMS = st.builds(
    Item,
    response=TEXTS,
    reference=st.none() | TEXTS | st.lists(TEXTS, min_size=2, max_size=3)
    | SUITES | st.builds(Anchor, TEXTS) | st.builds(Data, JSON.filter(lambda v: v is not None)),
    verifier=st.just("any"),
    task=TEXTS,
    prompt=st.lists(st.fixed_dictionaries({"role": TEXTS, "content": TEXTS}), max_size=2),
    parameters=st.fixed_dictionaries({}, optional={
        "places": st.integers(0, 9), "words": st.lists(TEXTS, max_size=2), "strict": st.booleans(),
    }),
    labels=st.dictionaries(st.sampled_from(["run", "step"]), TEXTS, max_size=2),
)  # fmt: skip
CALLS = st.lists(
    st.builds(ToolCall, TEXTS, TEXTS | st.dictionaries(TEXTS, JSON, max_size=2)), max_size=2
)
TALKS = st.lists(st.builds(Turn, TEXTS, TEXTS, st.booleans(), CALLS), min_size=1, max_size=3)
SPEC = VerifierSpec(
    "any", "1", "For tests.", (), 0.0, 1.0, ("correct",), needs_reference=False, takes_any=True,
    parameters=(
        ParameterSpec("places", "int", 3, "Places."),
        ParameterSpec("words", "string-list", ("a",), "Words."),
        ParameterSpec("strict", "bool", False, "Strict."),
    ),
)  # fmt: skip


def judged(item: Item) -> VerifierItem:
    """The item as its verifier gets it."""
    return convert.item_from_proto(item_to_proto(item, "x"), SPEC)


def exported(items: Sequence[Item]) -> list[dict[str, Any]]:
    """The lines of a journal of these items."""
    offered = []
    for item in items:
        pending = PendingScore(item.id, time.monotonic(), item=judged(item))
        found = REGISTRY.get("exact")
        assert found is not None
        pending.served = replace(Served.of(found), spec=SPEC)
        pending.labels = dict(item.labels)
        pending.settle(judgement())
        offered.append(pending)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        asyncio.run(filled(path, [offered]))
        with Reader(path) as reader:
            return [json.loads(json.dumps(row_of(record))) for record in reader.each()]


def again(row: dict[str, Any]) -> Item:
    return item_of(Keys(), Defaults(), row, str(row["id"]))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.builds(replace, ITEMS, tool_calls=CALLS)
        | st.builds(replace, ITEMS, response=st.none(), turns=TALKS),
        max_size=5,
    )
)
def test_a_row_is_the_item_that_was_judged(items: list[Item]) -> None:
    rows = exported(items)
    assert len(rows) == len(items)
    for item, row in zip(items, rows, strict=True):
        assert is_whole(row)
        assert row["reward"] == 1.0
        read = again(row)
        assert dict(read.labels) == dict(item.labels)
        assert (read.verifier, read.task) == ("any", ""), "the verifier goes before the task"
        before, after = replace(judged(item), task=""), judged(read)
        if before.data is not None and before.references != after.references:
            assert after.document() == before.data, "a verifier of data reads it in the text"
            before, after = replace(before, data=None), replace(after, references=())
        assert after == before


@pytest.mark.parametrize(
    ("item", "part"),
    [
        (Item("x" * (entries.MAX_RESPONSE_CHARS + 1), verifier="any"), "response"),
        (Item("x", prompt="x" * (entries.MAX_PROMPT_CHARS + 1), verifier="any"), "prompt"),
        (Item("x", "x" * (entries.MAX_REFERENCE_CHARS + 1), verifier="any"), "reference"),
        (Item("x", ["x" * 5000] * 2, verifier="any"), "reference"),
        (Item("x", Data({"x": "x" * 9000}), verifier="any"), "reference"),
        (Item("x", read_tests([{"stdin": "x" * 9000, "stdout": ""}]), verifier="any"), "reference"),
        (Item("x", parameters={"words": ["x" * 5000]}, verifier="any"), "parameters"),
        (Item(turns=[Turn("user", "x" * 20_000)] * 2, verifier="any"), "response"),
        (Item(turns=[Turn("user", "")] * 300, verifier="any"), "response"),
        (Item("x", tool_calls=[ToolCall("f", "x" * 40_000)], verifier="any"), "response"),
    ],
)
def test_a_cut_item_is_no_row(item: Item, part: str) -> None:
    [row] = exported([item])
    assert row["journal_cut"] == [part]
    assert not is_whole(row)
    with pytest.raises(RowError, match="the journal kept only the beginning"):
        again(row)


def test_what_just_fits_is_whole() -> None:
    item = Item(
        "x" * entries.MAX_RESPONSE_CHARS,
        "x" * entries.MAX_REFERENCE_CHARS,
        prompt="x" * entries.MAX_PROMPT_CHARS,
        verifier="any",
    )
    [row] = exported([item])
    assert judged(again(row)) == judged(item)


@pytest.mark.parametrize(
    "labels", ["a text", ["a"], {"run": 3}, {"a b": "x"}, {"run": "x" * 300}, 5, None, {}]
)
def test_a_column_that_is_no_label_stays_with_the_row(labels: object) -> None:
    row = {"id": 1, "response": "x", "verifier": "any", "labels": labels}
    assert again(row).labels == {}


@pytest.mark.parametrize("turns", [[1], [{"role": "user"}], [{"role": "a", "content": "b",
                                                               "from_policy": 1}]])  # fmt: skip
def test_a_wrong_dialogue_is_said(turns: object) -> None:
    with pytest.raises(RowError, match="turns"):
        again({"id": 1, "turns": turns, "verifier": "any"})
    with_response = {"id": 1, "turns": turns, "verifier": "any", "response": "x"}
    assert again(with_response).response == "x", "a column of the caller's own"
