"""Laws of the viewer's questions: a comparison is the plain one, a search is a grep."""

# ruff: noqa: E501

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.kit.runs.rollouts import path_for, write_rollouts
from assay.reward_server.journal.entries import Entry
from assay.viewer.api import ViewerApi
from viewer_sources_support import ask, entry, every, fill, make_run, rollout

JUDGES = [("a", "1"), ("a", "2"), ("b", "1")]
OUTCOMES = [
    ("correct", 1.0, None),
    ("incorrect", 0.0, None),
    ("partial", 0.5, None),
    (None, None, "ITEM_TIMEOUT"),
]
ENTRIES = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(JUDGES), st.sampled_from(OUTCOMES)),
    min_size=1, max_size=25,
)  # fmt: skip
SIDES = st.sampled_from([("a", "b"), ("b", "a"), ("a@1", "a@2"), ("a@2", "b@1")])
LETTERS = st.text(st.sampled_from('aA%_\\"é\u4e2d\n<'), max_size=4)
NEEDLES = st.text(st.sampled_from("aA%_\\é\u4e2d<"), min_size=1, max_size=2)


def judged(number: int, item: int, judge: tuple[str, str], outcome: tuple[Any, Any, Any]) -> Entry:
    verdict, reward, fault = outcome
    return entry(
        number, item_key=item.to_bytes(16, "little"), verifier=judge[0], version=judge[1],
        verdict=verdict, reward=reward, fault=fault, answer=None if fault else "4",
    )  # fmt: skip


def plain(rows: list[Entry], first: str, second: str) -> dict[str, Any]:
    """The comparison, over the whole list."""
    newest: list[dict[Any, Entry]] = [{}, {}]
    for row in rows:
        for name, those in zip((first, second), newest, strict=True):
            if name in (row.verifier, f"{row.verifier}@{row.version}"):
                those[row.item_key] = row
    shared = [(newest[0][key], newest[1][key]) for key in newest[0].keys() & newest[1].keys()]
    both = [pair for pair in shared if pair[0].reward is not None and pair[1].reward is not None]
    return {
        "judged": len(both),
        "faulted": len(shared) - len(both),
        "same": sum(a.reward == b.reward for a, b in both),
        "means": [sum(pair[n].reward or 0 for pair in both) / len(both) for n in (0, 1)] if both else [None, None],
        "verdicts": Counter((a.verdict, b.verdict) for a, b in both),
        "faults": Counter((side, one.fault) for pair in shared for side, one in zip("ab", pair, strict=True) if one.fault),
    }  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(ENTRIES, SIDES)
def test_a_comparison_is_the_plain_one(
    drawn: list[tuple[int, tuple[str, str], tuple[Any, Any, Any]]], sides: tuple[str, str]
) -> None:
    rows = [judged(number, *one) for number, one in enumerate(drawn)]
    with tempfile.TemporaryDirectory() as name:
        path = fill(Path(name, "verdicts.sqlite"), rows)
        with ViewerApi([path], Path(name, "cache"), background=False) as api:
            api.index_all()
            found = ask(api, "compare", a=sides[0], b=sides[1])
            expected = plain(rows, *sides)
            assert {name: found[name] for name in ("judged", "faulted", "same")} == {
                name: expected[name] for name in ("judged", "faulted", "same")
            }
            assert found["means"] == expected["means"]
            assert {(a, b): n for a, b, n in found["verdicts"]} == expected["verdicts"]
            assert {(side, reason): n for side, reason, n in found["faults"]} == expected["faults"]
            assert len(found["examples"]) == expected["judged"] - expected["same"]
            for example in found["examples"]:
                told = [ask(api, "item", id=example[side]["id"])["verdict"] for side in "ab"]
                assert [one["reward"] for one in told] == [example[s]["reward"] for s in "ab"]
                assert told[0]["verifier"] == sides[0].partition("@")[0]
            bounded = ask(api, "compare", a=sides[0], b=sides[1], over="3")
            assert bounded["over"] <= 3
            assert bounded["judged"] + bounded["faulted"] <= 3
            assert bounded["of"] == found["of"]


def lowered(text: str) -> str:
    return text.replace("A", "a")


def grep(value: Any, needle: str) -> bool:
    """Whether a text anywhere in plain data holds a needle."""
    if isinstance(value, str):
        return lowered(needle) in lowered(value)
    parts = (
        value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    )
    return any(grep(part, needle) for part in parts)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(LETTERS, LETTERS, st.none() | LETTERS), min_size=1, max_size=8), NEEDLES)
def test_a_search_is_a_grep(drawn: list[tuple[str, str, str | None]], needle: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = make_run(folder / "all" / "run", steps=())
        texts: list[dict[str, Any]] = [
            {"response": one[0], "question": one[1], "reference": one[2]} for one in drawn
        ]
        rows = [rollout(1, number, **more) for number, more in enumerate(texts)]
        write_rollouts(path_for(run / "rollouts", 1), rows)
        kept = [
            entry(n, response=a, explanation=b, reference=c, answer=None, prompt='[["user","?"]]')
            for n, (a, b, c) in enumerate(drawn)
        ]
        fill(folder / "all" / "verdicts.sqlite", kept)
        with ViewerApi([folder / "all"], folder / "cache", background=False) as api:
            api.index_all()
            first = ask(api, "items", text=needle)
            assert first["searched"] < 1
            api.index_all()
            assert ask(api, "items", text=needle)["searched"] == 1
            found = every(api, text=needle)
            assert {one["draw"] for one in found if one["source"] == "run"} == {
                row["draw"] for row in rows if grep(row, needle)
            }
            assert {
                int(one["id"].rpartition(":")[2]) - 1 for one in found if one["source"] != "run"
            } == {
                number for number, one in enumerate(kept)
                if any(grep(text, needle) for text in (one.response, one.explanation, one.reference))
            }  # fmt: skip
            counted = ask(api, "facets", text=needle)
            assert counted["items"] == len(found)
