"""The golden check itself: what is wrong in a file must fail."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from golden import cases, checking, reference
from golden.conftest import OWN
from golden.functions import FUNCTIONS, ROADS

GOOD = {"function": "soft_overlong", "spec": "x", "expected": -0.5} | {
    "inputs": {"length": 18432, "max_length": 20480, "cache_length": 4096, "factor": 1.0}
}


def run(repository: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_one_row_is_one_test_and_only_the_wrong_ones_fail(repository: Path, tmp_path: Path) -> None:
    rows = [
        GOOD,
        GOOD | {"expected": -0.5 + 2e-6},
        GOOD | {"function": "no_such_function"},
        GOOD | {"inputs": GOOD["inputs"] | {"colour": 3}},  # type: ignore[operator]
        GOOD | {"expected": [-0.5]},
        GOOD | {"expected": -0.5 + 5e-7},
    ]
    path = tmp_path / "vectors.json"
    path.write_text(json.dumps(rows))
    ended = run(repository, "tests/golden/test_golden.py", "--golden", path)
    assert ended.returncode == 1
    assert "4 failed, 2 passed" in ended.stdout
    failed = re.findall(r"FAILED .*\[vectors-(\d)-", ended.stdout)
    assert sorted(failed) == ["1", "2", "3", "4"]
    assert "unknown function 'no_such_function'; known: a_lol_losses, " in ended.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "holds no rows"),
        ("{", "is not JSON"),
        ('[{"function": "gae", "inputs": {}}]', "row 0: expected missing"),
        ("[3]", "row 0: expected, function, inputs missing"),
        (None, "cannot read"),
    ],
)
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "bad.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=message):
        checking.rows(path)


@pytest.mark.slow
def test_a_file_that_is_not_there_stops_the_run(repository: Path) -> None:
    ended = run(repository, "tests/golden/test_golden.py", "--golden=nowhere.json")
    assert ended.returncode != 0
    assert "cannot read" in ended.stdout + ended.stderr
    assert "passed" not in ended.stdout


@pytest.mark.parametrize(
    ("got", "expected", "place"),
    [
        ([[1.0, 2.0]], [[1.0, 2.1]], r"answer\[0\]\[1\]: 2.0, expected 2.1"),
        ([1.0], [1.0, 2.0], "answer: 1 parts, expected 2"),
        (float("nan"), 1.0, "answer: nan"),
        (1.0, float("nan"), "expected nan"),
        (["policy", 1], ["verifier", 1], r"answer\[0\]: 'policy', expected 'verifier'"),
        (None, 0.0, "answer: None"),
        ([], 0.0, "answer"),
    ],
)
def test_differences_are_found(got: Any, expected: Any, place: str) -> None:
    assert re.search(place, checking.difference(got, expected))


def test_our_own_file_is_the_reference_s_and_covers_every_function() -> None:
    rows = checking.rows(OWN)
    assert {row["function"] for row in rows} == set(FUNCTIONS)
    made = json.loads(json.dumps(cases.own_rows()))
    assert [row | {"expected": None} for row in rows] == [row | {"expected": None} for row in made]
    for row, other in zip(rows, made, strict=True):
        assert checking.difference(row["expected"], other["expected"]) == ""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_our_own_rows_come_through_every_road_of_a_function(name: str) -> None:
    """An adapter that computes by itself what it is to ask the project for is no check."""
    roads = {inspect.unwrap(road).__code__ for road in ROADS[name]}
    assert all({"assay", "trl"} & {*Path(road.co_filename).parts} for road in roads)
    seen = set()
    sys.setprofile(lambda frame, event, _: seen.add(frame.f_code) if event == "call" else None)
    try:
        for row in checking.rows(OWN):
            if row["function"] == name:
                FUNCTIONS[name](**row["inputs"])
    finally:
        sys.setprofile(None)
    assert roads
    assert not roads - seen


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("group_advantage", {"rewards": [1.0, 0.0], "eps": 1e-4, "ddof": 0}, "is 1 in every run"),
        (
            "pre_clip_ratio",
            {"logprobs": [[0.0]], "old_logprobs": [[0.0]], "low": 0.5, "high": 3.0},
            "low \\* high is 1 in every run, not 1.5",
        ),
        (
            "hl_gauss",
            {"targets": [0.0], "low": -1.0, "high": 1.0, "bins": 5, "sigma_ratio": 1.0},
            "sigma_ratio is 0.75 in every run, not 1",
        ),
    ],
)
def test_numbers_that_no_run_has_are_refused(
    name: str, inputs: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        FUNCTIONS[name](**inputs)


def test_the_reference_agrees_with_the_design(repository: Path) -> None:
    path = repository.parent / "shared" / "design" / "golden.json"
    if not path.is_file():
        pytest.skip("golden values are absent: expected them in ../shared/design")
    for row in checking.rows(path):
        answer = getattr(reference, row["function"])(**row["inputs"])
        assert checking.difference(checking.plain(answer), row["expected"]) == "", row["function"]
