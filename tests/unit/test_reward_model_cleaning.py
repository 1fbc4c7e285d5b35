"""Which rows a judge does not learn from: each rule on a table of rows, and all are counted."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.rows.points import CritiqueRow, PointRow
from assay.clients.rows.preferences import PairRow, Said
from assay.kit.errors import ConfigError
from assay.trainer.recipes.reward_model import config as configs
from assay.trainer.recipes.reward_model.cleaning import OverlapIndex, ReadRow, cleaned
from assay.trainer.recipes.reward_model.config import CleanConfig, RmConfig
from assay.trainer.recipes.reward_model.data import load_rows

ALL = CleanConfig(duplicates=True, contradictions=True, ties=True, least_chars=3)
LONG = "Tell me at length how the first of the two bridges over the river was built"


def asked(text: str) -> tuple[Said, ...]:
    return (Said("user", text),)


def pair(prompt: str, chosen: str, rejected: str, **more: Any) -> ReadRow[PairRow]:
    return ReadRow(PairRow(asked(prompt), chosen, rejected), **more)


def test_each_rule_counts_what_it_leaves_out() -> None:
    rows = [
        pair("a", "good", "evil"),
        pair("A ", "good", " EVIL"),  # again, but for space and case
        pair("b", "up there", "down"),
        pair("b", "down", "up there"),  # and the other way round
        pair("c", "ok", "evil"),  # two characters
        pair("d", "fine", "poor", scores=(3.0, 3.0)),
        pair("e", "fine", "poor", scores=(3.0, 1.0)),
        pair("f", "same", "other"),
        pair("f", "same", "third"),  # another pair
    ]
    kept, left_out = cleaned(rows, ALL)
    assert [row.prompt[0].content for row in kept] == ["a", "e", "f", "f"]
    assert left_out == Counter(duplicate=1, contradicting=2, short=1, tie=1)
    everything, nothing = cleaned(rows, CleanConfig())
    assert everything == [one.row for one in rows]
    assert not nothing


def test_another_judge_has_to_agree_and_its_fault_says_nothing() -> None:
    """Skywork's rule for WildGuard: the chosen response scores above the rejected one."""
    margins = {"a": 0.3, "b": 0.0, "c": -1.0, "d": None}
    rows = [pair(name, "good", "evil", margin=margin) for name, margin in margins.items()]
    kept, left_out = cleaned(rows, CleanConfig(judged=("x",)))
    assert [row.prompt[0].content for row in kept] == ["a", "d"]
    assert left_out == Counter(judged=2)
    kept, _ = cleaned(rows, CleanConfig(judged=("x",), least_margin=0.5))
    assert [row.prompt[0].content for row in kept] == ["d"]


@pytest.mark.parametrize(
    ("prompt", "holds"),
    [
        (LONG, True),
        (LONG.upper() + "?!", True),
        ("Please. " + LONG, True),
        (LONG + " " + "and then some more words of my own that nobody wrote " * 2, False),
        ("Tell me at length", False),
        ("What is two and two?", True),
        ("what is  two and two", True),
        ("What is two and three?", False),
        ("", False),
    ],
)
def test_a_prompt_of_a_benchmark_is_known_again(prompt: str, holds: bool) -> None:
    index = OverlapIndex([asked(LONG), asked("What is two and two?"), asked("")])
    assert index.holds(asked(prompt)) == holds


def test_points_contradict_and_critiques_do_not() -> None:
    points = [
        ReadRow(PointRow(asked("a"), "text", right, "4")) for right in (True, True, False)
    ] + [ReadRow(PointRow(asked("a"), "another", True, "4"))]
    kept, left_out = cleaned(points, ALL)
    assert [row.response for row in kept] == ["another"]
    assert left_out == Counter(duplicate=1, contradicting=2)
    critiques = [
        ReadRow(CritiqueRow(asked("a"), "text", (), f"Verdict: {word}"))
        for word in ("wrong", "correct")
    ]
    kept_critiques, _ = cleaned(critiques, ALL)
    assert len(kept_critiques) == 2


WORDS = st.sampled_from(["a", "b", "cd", "efgh", "ijkl"])


@given(st.lists(st.tuples(WORDS, WORDS, WORDS).filter(lambda x: x[1] != x[2]), max_size=12))
def test_no_row_is_lost_uncounted_and_twice_is_once(rows: list[tuple[str, str, str]]) -> None:
    drawn = [pair(*texts) for texts in rows]
    kept, left_out = cleaned(drawn, ALL)
    assert len(kept) + left_out.total() == len(rows)
    again, nothing = cleaned([ReadRow(row) for row in kept], ALL)
    assert again == kept
    assert not nothing
    kinds = {(row.prompt, frozenset((row.chosen, row.rejected))) for row in kept}
    assert len(kinds) == len(kept), "one preference for each two responses"


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return str(path)


def made(path: str, **clean: Any) -> RmConfig:
    tree = {"data": {"paths": [path], "clean": clean}, "eval": {"prompts": 0}}
    return configs.build(tree, origin="test")


def test_counts_come_with_the_rows(tmp_path: Path) -> None:
    rows = [{"prompt": f"p {n}", "chosen": "good", "rejected": "evil"} for n in range(6)]
    file = write(
        tmp_path / "pairs.jsonl",
        [*rows, rows[0], {"prompt": LONG, **{k: rows[0][k] for k in ("chosen", "rejected")}}],
    )
    bench = write(tmp_path / "bench.jsonl.gz", [
        {"pair_id": "1", "question": LONG, "response_A": "x", "response_B": "y", "label": "A>B"},
        {"problem": "p 5", "steps": ["a"], "labels": [1]},
        {"chosen": "\n\nHuman: p 4\n\nAssistant: a", "rejected": "\n\nHuman: p 4\n\nAssistant: b"},
    ])  # fmt: skip
    found = load_rows(made(file, duplicates=True, against=[bench]))
    assert len(found.train) == 4
    assert found.left_out == {"contaminated": 3, "duplicate": 1}
    with pytest.raises(
        ConfigError, match=r"no rows to learn from: 0 rows.*8 left out by data.clean"
    ):
        load_rows(made(file, least_chars=99))


def test_what_eval_judge_wrote_is_matched_by_line(tmp_path: Path) -> None:
    styles = {"chosen": ["good", "very good"], "rejected": ["evil", "very evil"]}
    rows = [{"prompt": "a", **styles}, {"prompt": "b", "chosen": "good", "rejected": "evil"}]
    file = write(tmp_path / "pairs.jsonl", rows)
    lines = [
        {"line": 1, "id": "1.0", "fault": None, "win_probability": 0.9},
        {"line": 1, "id": "1.1", "fault": None, "win_probability": 0.4},
        {"line": 2, "id": "2", "fault": {"reason": "X"}},
    ]
    judged = write(tmp_path / "judged.jsonl", lines)
    found = load_rows(made(file, judged=[judged]))
    assert [row.chosen for row in found.train] == ["good", "good"]
    assert found.left_out == {"judged": 1}
    short = write(tmp_path / "short.jsonl", lines[:2])
    with pytest.raises(
        ConfigError, match=r"nothing is said of .*pairs.jsonl:2; evaluate the whole"
    ):
        load_rows(made(file, judged=[short]))
    other = write(tmp_path / "other.jsonl", [{"line": 1, "fault": None, "scores": [1]}])
    with pytest.raises(ConfigError, match="holds no judgements of pairs"):
        load_rows(made(file, judged=[other]))


@pytest.mark.parametrize(
    ("clean", "kind", "says"),
    [
        ({"least_margin": 0.5}, "pairwise", "data.clean.least_margin = 0.5 is read only where"),
        ({"judged": ["a", "b"]}, "pairwise", "names 2 files and data.paths 1"),
        ({"ties": True}, "pointwise", "data.clean.ties = true is read only where method.kind"),
    ],
)
def test_rules_that_cannot_apply_are_told(clean: dict[str, Any], kind: str, says: str) -> None:
    tree = {"data": {"paths": ["x"], "clean": clean}, "method": {"kind": kind}}
    with pytest.raises(ConfigError, match=says):
        configs.build(tree, origin="test")
