"""Laws of the viewer's index: filters, counts, pages, pieces, hostile rows."""

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
from assay.viewer.api import ViewerApi
from assay.viewer.index.building import IndexBuilder
from assay.viewer.index.schema import IndexFile, open_index

Row = Mapping[str, Any]
HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=4) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
JUDGED = st.fixed_dictionaries({
    "fault": st.none(),
    "judgement": st.fixed_dictionaries({
        "reward": st.sampled_from([0.0, 0.25, 1.0, -1.5]), "verdict": st.sampled_from(["correct", "wrong"]),
        "verifier": st.sampled_from(["a", "b"]), "version": st.sampled_from(["1", "2"]),
        "suspicions": st.lists(st.sampled_from(["x", "y"]), unique=True),
        "appeal": st.none() | st.fixed_dictionaries(
            dict.fromkeys(("first", "second"), st.sampled_from([{"verdict": "a"}, {"verdict": "b"}]))
        ),
    }),
})  # fmt: skip
FAULTED = st.just({"judgement": None, "fault": {"reason": "ITEM_TIMEOUT", "message": "late"}})
ROWS = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from(["train", "eval"]),
        st.builds(
            lambda one, tokens, cut: {
                **one, "response": "<script>\u202e\ud83d", "tokens": tokens, "truncated": cut,
                "problem": f"p{tokens % 3}",
            },
            JUDGED | FAULTED, st.integers(0, 3000), st.booleans(),
        ),
    ),
    max_size=30,
)  # fmt: skip
ASKED = st.dictionaries(
    st.sampled_from(["phase", "verifier", "version", "verdict", "fault", "suspicion", "truncated", "appeal",
                     "reward_from", "length_to", "step_from", "problem"]),
    st.just(""), max_size=3,
).flatmap(
    lambda names: st.fixed_dictionaries({name: st.sampled_from(VALUES[name]) for name in names})
)  # fmt: skip
VALUES = {
    "phase": ["train", "eval"], "verifier": ["a", "b"], "version": ["1", "9"], "verdict": ["wrong"],
    "fault": ["any", "none", "ITEM_TIMEOUT"], "suspicion": ["x", "any", "none"], "problem": ["p1"],
    "appeal": ["any", "none", "kept", "changed"],
    "truncated": ["0", "1"], "reward_from": ["0.25"], "length_to": ["1500"], "step_from": ["2"],
}  # fmt: skip


def run_of(folder: Path, rows: list[tuple[int, str, Row]]) -> Path:
    run = folder / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text('{"step": 1, "reward": 0.5}\n')
    units: dict[tuple[int, str], list[Row]] = {}
    for step, phase, row in rows:
        those = units.setdefault((step, phase), [])
        those.append({"draw": len(those) // 2, "sample": len(those) % 2, **row})
    for (step, phase), those in units.items():
        write_rollouts(path_for(run / "rollouts", step, phase), those)
    return run


def meets(row: Row, asked: Mapping[str, str]) -> bool:
    """The filter, in Python, over rows of the whole list."""
    several = {
        "suspicion": row["suspicions"],
        **{name: [row[name]] if row[name] else [] for name in ("fault", "appeal")},
    }
    for name, value in asked.items():
        if name in several:
            there = several[name]
            good = (
                bool(there) if value == "any" else not there if value == "none" else value in there
            )
        elif name == "truncated":
            good = row["truncated"] is (value == "1")
        elif name == "reward_from":
            good = row["reward"] is not None and row["reward"] >= float(value)
        elif name == "length_to":
            good = row["length"] <= float(value)
        elif name == "step_from":
            good = row["step"] >= float(value)
        else:
            good = row[name] == value
        if not good:
            return False
    return True


def ask(api: ViewerApi, path: str, *query: tuple[str, str]) -> Any:
    status, found = api.answer(path, query)
    assert status == 200, found
    return found


@settings(max_examples=25, deadline=None)
@given(ROWS, ASKED, st.integers(1, 7), st.sampled_from(["-time", "reward", "-length", "sample"]))
def test_a_filter_is_the_plain_one_pages_partition_and_counts_add_up(
    rows: list[tuple[int, str, Row]], asked: dict[str, str], limit: int, sort: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ViewerApi([run_of(folder, rows)], folder / "cache", background=False) as api:
            api.index_all()
            every = ask(api, "api/items", ("limit", "500"))["items"]
            assert len(every) == len(rows)
            query = list(asked.items())
            expected = {row["id"] for row in every if meets(row, asked)}
            found: list[str] = []
            after: str | None = ""
            while after is not None:
                page = ask(
                    api,
                    "api/items",
                    *query,
                    ("limit", str(limit)),
                    ("sort", sort),
                    ("after", after),
                )
                assert page["total"] == len(expected)
                found += [row["id"] for row in page["items"]]
                after = page["more"]
            assert len(found) == len(set(found))
            assert set(found) == expected
            facets = ask(api, "api/facets", *query)
            assert facets["items"] == len(expected)
            for facet, key in (
                ("phase", "phases"),
                ("verdict", "verdicts"),
                ("fault", "faults"),
                ("appeal", "appeals"),
            ):
                rest = {name: value for name, value in asked.items() if name != facet}
                counted = Counter(row[facet] for row in every if row[facet] and meets(row, rest))
                assert dict(facets[key]) == counted
            chosen = [row for row in every if row["id"] in expected]
            for x in ("step", "time"):
                curve = ask(api, "api/curves", *query, ("x", x), ("y", "reward"))
                assert sum(sum(one["items"]) for one in curve["series"]) == len(chosen)
                for one in curve["series"]:
                    for items, value in zip(one["items"], one["values"], strict=True):
                        assert items or value is None, "nothing was judged: a gap"
            for of in ("reward", "length"):
                bars = ask(api, "api/histogram", *query, ("of", of))
                counted = sum(sum(one["counts"]) for one in bars["series"])
                assert counted == sum(row[of] is not None for row in chosen)
            steps = ask(api, "api/steps")
            assert sum(one["items"] for one in steps) == len(rows)
            assert sum(one["judged"] for one in steps) == sum(
                r["reward"] is not None for r in every
            )


@settings(max_examples=10, deadline=None)
@given(ROWS, st.integers(0, 4))
def test_pieces_with_a_kill_between_them_join(
    rows: list[tuple[int, str, Row]], before: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = run_of(folder, rows)
        dumps = []
        for pieces in (0, before):
            index = IndexFile([run], folder / f"cache-{pieces}-{len(dumps)}")
            builder = IndexBuilder(index.path, [run])
            for _ in range(pieces):
                builder.piece()
            builder.close()
            builder = IndexBuilder(index.path, [run])
            builder.all()
            builder.close()
            database = open_index(index.path, write=False)
            dumps.append(database.execute(
                "SELECT number, phase, verifier, verdict, fault, suspicions, step, time_s, reward, length "
                "FROM items JOIN kinds ON kinds.id = kind ORDER BY number"
            ).fetchall())  # fmt: skip
            database.close()
            index.close()
        assert dumps[0] == dumps[1]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.dictionaries(
    st.sampled_from(["response", "judgement", "fault", "tokens", "draw", "sample", "own", "trained",
                     "advantages", "episode", "turns", "prompt", "question", "tests", "reference"]),
    HOSTILE, max_size=6,
), max_size=5))  # fmt: skip
def test_a_hostile_row_is_shown_or_said(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = run_of(folder, [(1, "train", row) for row in rows])
        with ViewerApi([run], folder / "cache", background=False) as api:
            api.index_all()
            (source,) = ask(api, "api/sources")["sources"]
            items = ask(api, "api/items", ("limit", "500"))["items"]
            said = [text for text in source["problems"] if "could not be read" in text]
            assert said or len(items) + _twice(rows) >= len(rows)
            for item in items:
                ask(api, "api/item", ("id", item["id"]))
                ask(api, "api/tokens", ("id", item["id"]))


def _twice(rows: list[Row]) -> int:
    """Rows that may name another one's place."""
    return sum("draw" in row or "sample" in row for row in rows)
