"""The pairs by class: no unequal pair is accepted but the known ones, and recall does not fall.

The figures that are held lie beside the pairs; `python -m bench.math_pairs write` raises them.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from bench import math_pairs
from bench.math_pairs import Figures
from bench.math_rows import PAIRS, Row, pairs

CLASSES = 22
OF_A_CLASS = 150


@pytest.fixture(scope="module")
def judged() -> tuple[list[Row], list[bool]]:
    return math_pairs.measured()


@pytest.mark.parametrize("part", math_pairs.PARTS)
def test_each_class_has_as_many_equal_as_unequal_pairs(part: str) -> None:
    rows = pairs(part)
    assert Counter(row.kind for row in rows) == dict.fromkeys(
        {row.kind for row in rows}, OF_A_CLASS
    )
    assert len({row.kind for row in rows}) == CLASSES
    assert sum(row.right for row in rows) == len(rows) // 2
    assert not any(row.hard and not row.right for row in rows)


def test_no_pair_is_there_twice() -> None:
    rows = [row for part in math_pairs.PARTS for row in pairs(part)]
    assert len({row.name for row in rows}) == len(rows)
    assert len({(row.gold, row.response, row.question) for row in rows}) == len(rows)


def test_only_known_pairs_are_wrongly_accepted(judged: tuple[list[Row], list[bool]]) -> None:
    rows, _ = judged
    known = set(math_pairs.floors()[1])
    new = set(math_pairs.wrongly_accepted(*judged)) - known
    texts = {row.name: (row.gold, row.response) for row in rows if "-o" in row.name}
    assert not new, [(name, texts.get(name, "sealed")) for name in sorted(new)]


def test_recall_does_not_fall(judged: tuple[list[Row], list[bool]]) -> None:
    held, _ = math_pairs.floors()
    found = math_pairs.by_class(*judged)
    fallen = {
        kind: (found[kind].recall, floor)
        for kind, floor in held.items()
        if found[kind].recall < floor - 1e-4
    }
    assert set(held) == set(found)
    assert not fallen


def test_figures_of_a_set() -> None:
    rows = [
        Row("1", "1", right=True),
        Row("2", "2", right=True, hard=True),
        Row("3", "4", right=False),
        Row("5", "6", right=False),
    ]
    assert Figures.of(rows, [True, False, True, False]) == Figures(0.5, 0.5, 0.0, 1)
    assert Figures.of(rows[2:], [False, False]) == Figures(1.0, 1.0, 1.0, 0)


def test_the_floors_only_rise_unless_they_are_lowered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(math_pairs, "FLOORS", tmp_path / "floors.json")
    rows = [Row("1", "1", right=True, kind="a", name="a-o0"), Row("1", "2", False, kind="a")]
    rows += [Row("3", "3", right=True, kind="a"), Row("4", "5", False, kind="a", name="a-s1")]
    math_pairs.write(rows, [True, False, False, True], lower=False)
    assert math_pairs.floors() == ({"a": 0.5, "all": 0.5}, ["a-s1"])
    math_pairs.write(rows, [False, True, False, False], lower=False)
    assert math_pairs.floors() == ({"a": 0.5, "all": 0.5}, [])
    math_pairs.write(rows, [False, False, False, True], lower=True)
    assert math_pairs.floors() == ({"a": 0.0, "all": 0.0}, ["a-s1"])


def test_the_readme_names_every_class() -> None:
    text = (PAIRS / "README.md").read_text()
    assert all(f"`{row.kind}`" in text for row in pairs("open"))


def test_the_files_are_reproducible() -> None:
    """Packed without a time of day, one object a line."""
    for part in math_pairs.PARTS:
        packed = (PAIRS / f"{part}.jsonl.gz").read_bytes()
        assert packed[4:8] == bytes(4)
        assert all(json.loads(line) for line in gzip.decompress(packed).decode().split("\n")[:-1])
