"""The table of `assay score` by task: what is best, what is a problem, pass@k and maj@k."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from assay.cli.scoring.breakdown import Breakdown, LineKeys, best_verdicts
from assay.cli.scoring.scores import ScoreTally
from assay.clients.rows.items import Defaults, Keys
from assay.clients.types import ServerInfo, ServerLimits, VerifierInfo

EXACT = VerifierInfo(
    "exact", "1", "", ("t",), 0.0, 1.0, True, True, True, False,
    parameters=(), verdicts=("correct", "incorrect"), is_profile=False,
)  # fmt: skip
FORM = replace(EXACT, name="form", tasks=("form",), verdicts=("well-formed", "malformed"))
GATED = replace(EXACT, name="gated", tasks=(), verdicts=("malformed",), is_profile=True)
INFO = ServerInfo((EXACT, FORM, GATED), ServerLimits(1, 1, 1, 1.0, 1.0), "1")
JUDGED = {"reward": 0.0, "verdict": "incorrect", "answer": "0", "fault": None}
RIGHT = {**JUDGED, "reward": 1.0, "verdict": "correct", "answer": "1"}
FAULTED = {**dict.fromkeys(JUDGED), "fault": {"reason": "ITEM_TIMEOUT", "message": ""}}


def counted(lines: list[dict[str, Any]], keys: Keys | None = None) -> Breakdown:
    found = Breakdown(LineKeys(keys or Keys(), Defaults("exact"), "group_id"), INFO)
    for line in lines:
        found.add(line)
    return found


def problems(lines: list[dict[str, Any]], keys: Keys | None = None) -> Any:
    (numbers,) = counted(lines, keys).numbers()
    return numbers["problems"]


@pytest.mark.parametrize(
    ("verifier", "task", "best"),
    [
        ("exact", "", ("correct", "better")),
        ("", "form", ("well-formed",)),
        ("gated", "", ("correct", "better")),
        ("unknown", "", ("correct", "better")),
    ],
)
def test_the_best_verdict(verifier: str, task: str, best: tuple[str, ...]) -> None:
    assert best_verdicts(INFO, verifier, task) == best


def test_rows_are_counted_by_task_else_by_verifier() -> None:
    found = counted(
        [
            {**RIGHT, "task": "t"},
            {**JUDGED, "task": "t", "verifier": "exact"},
            {**JUDGED, "verifier": "form", "verdict": "well-formed"},
            {**FAULTED, "verifier": "form"},
            JUDGED,
        ]
    )
    assert {task["task"]: (task["rows"], task["share_best"]) for task in found.numbers()} == {
        "t": (2, 0.5),
        "form": (2, 1.0),
        "exact": (1, 0.0),
    }
    assert found.tasks["form"].faults == {"ITEM_TIMEOUT": 1}


def test_a_problem_is_a_group_or_a_prompt_with_its_reference() -> None:
    assert problems([RIGHT, RIGHT]) is None
    assert problems([{**RIGHT, "prompt": "a"}, {**RIGHT, "prompt": "b"}]) is None
    other = [{**RIGHT, "prompt": "look", "reference": text} for text in "aab"]
    assert problems(other)["count"] == 2
    assert problems([{**line, "group_id": 7} for line in other])["count"] == 1
    messages = [{"role": "user", "content": "a"}]
    assert problems([{**RIGHT, "prompt": messages}] * 2)["pass_at"]["2"]["value"] == 1.0
    # The reference's key is one of the output: it is read under its name there.
    gold = [{**RIGHT, "prompt": "look", "input_answer": text} for text in "aab"]
    assert problems(gold, Keys(reference="answer"))["count"] == 2


def test_a_fault_is_in_no_average_and_no_answer_is_no_vote() -> None:
    lines = [RIGHT, FAULTED, {**JUDGED, "answer": None}, {**JUDGED, "answer": None}]
    found = problems([{**line, "prompt": "p"} for line in lines])
    assert found["responses"] == [3, 3]
    assert set(found["pass_at"]) == {"1", "2"}
    assert found["pass_at"]["1"]["value"] == pytest.approx(1 / 3)
    assert found["maj"]["value"] == 1.0
    mute = problems([{**line, "answer": None, "prompt": "p"} for line in lines])
    assert mute["maj"] is None
    lost = problems([{**FAULTED, "prompt": "p"}] * 2)
    assert (lost["judged"], lost["pass_at"], lost["maj"]) == (0, {}, None)


votes = st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=4)


@given(votes)
def test_pass_at_k_is_the_share_of_draws_with_a_right_one(groups: list[list[bool]]) -> None:
    lines = [
        {**(RIGHT if right else JUDGED), "group_id": name}
        for name, group in enumerate(groups)
        for right in group
    ]
    found = problems(lines)
    if found is None:
        assert all(len(group) == 1 for group in groups)
        return
    for k, estimate in found["pass_at"].items():
        draws = [list(combinations(group, int(k))) for group in groups if len(group) >= int(k)]
        shares = [sum(map(any, drawn)) / len(drawn) for drawn in draws]
        assert estimate["problems"] == len(shares)
        assert estimate["value"] == pytest.approx(sum(shares) / len(shares))
    # Two answers only: the majority is right, wrong, or even.
    even = [(2 * sum(group) > len(group)) + (2 * sum(group) == len(group)) / 2 for group in groups]
    assert found["maj"]["value"] == pytest.approx(sum(even) / len(even))


def test_the_tables_hold_a_line_for_each_task() -> None:
    lines = [{**RIGHT, "group_id": n // 2} for n in range(4)]
    lines += [{**FAULTED, "group_id": 1}, {**RIGHT, "group_id": 9}, {**FAULTED, "verifier": "form"}]
    console = Console(width=100)
    with console.capture() as shown:
        console.print(counted(lines).report())
    text = shown.get()
    assert "form" in text
    assert "pass@2" in text
    [row] = [line for line in text.splitlines() if "pass@2" in line]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells[-4:] == ["pass@2", "100.0 %", "34.2 to 100.0", "2"]


@pytest.mark.parametrize(
    ("verdicts", "accuracy", "f_score"),
    [
        ({"correct": 4, "incorrect": 2, "not-attempted": 4}, 4 / 6, 8 / 16),
        ({"correct": 0, "incorrect": 2, "not-attempted": 1}, 0.0, 0.0),
        ({"not-attempted": 3}, None, 0.0),
        ({"correct": 3, "incorrect": 1}, None, None),
    ],
)
def test_the_figures_of_simple_qa(
    verdicts: dict[str, int], accuracy: float | None, f_score: float | None
) -> None:
    """F is the harmonic mean of accuracy and accuracy given attempted (arXiv 2411.04368)."""
    tally = ScoreTally(counted([]))
    for verdict, count in verdicts.items():
        for _ in range(count):
            tally.add({**JUDGED, "verdict": verdict, "suspicions": [], "components": []})
    found = tally.numbers()["attempts"]
    if f_score is None:
        assert found is None
        return
    assert found == {"accuracy_given_attempted": accuracy, "f_score": pytest.approx(f_score)}
    if accuracy:
        right = verdicts["correct"] / sum(verdicts.values())
        assert f_score == pytest.approx(2 * accuracy * right / (accuracy + right))
    console = Console(record=True, width=120)
    console.print(tally.report())
    assert f"{f_score:.4f}" in console.export_text()


def test_what_models_took_is_added_up_and_shown() -> None:
    tally = ScoreTally(counted([]))
    parts = [
        {"name": "score", "score": 0.5, "weight": 1.0},
        {"name": "judge-tokens", "score": 1200.0, "weight": 0.0},
        {"name": "judge-cost", "score": 0.25, "weight": 0.0},
    ]
    for _ in range(2):
        tally.add({**JUDGED, "suspicions": [], "components": parts})
    assert tally.numbers()["spent"] == {"judge-tokens": 2400.0, "judge-cost": 0.5}
    console = Console(width=80, file=io.StringIO())
    console.print(tally.report())
    shown = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert re.search(r"judge tokens +\S +2,400", shown)
    assert re.search(r"judge cost +\S +0.5", shown)
