"""Rows of an evaluation: what they ask, and what is wrong with those that ask nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.cli.evaluation.rows import kind_of_row, line_of, questions_of
from assay.cli.evaluation.sheet import RowReading, check_names, make_sheet, only_rates
from assay.cli.evaluation.tallies import EvaluationTally
from assay.clients.judging import (
    Fault,
    JudgeItem,
    JudgeModelInfo,
    JudgeRef,
    JudgeServerInfo,
    ModelJudgement,
    PairItem,
    PairJudgement,
    ProcessModelInfo,
    StepItem,
    StepScore,
    StepScores,
    TemplateInfo,
    Usage,
)
from assay.clients.rows.items import RowError
from assay.clients.rows.preferences import read
from assay.kit.errors import ConfigError

PAIR = {"id": "a", "prompt": "p", "chosen": "good", "rejected": "bad", "subset": "s", "answer": "4"}
STEPS = {"problem": "p", "steps": ["x", "y"], "labels": [1, 0], "classification": "c"}
POINT = {"question": "p", "response": "r", "label": True, "gold": 4}
JUDGE = JudgeRef("m", "r", "t@1")
FILE = Path("rows.jsonl")


def numbered(*rows: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(rows, start=1))


def test_the_keys_of_a_row_say_what_it_asks() -> None:
    assert [kind_of_row(row) for row in (PAIR, STEPS, POINT)] == ["pairs", "steps", "points"]


def test_a_pair_is_asked_as_a_pair_or_each_response_by_itself() -> None:
    [pair] = questions_of(PAIR, 7, "pairs")
    prompt = [{"role": "user", "content": "p"}]
    assert pair.items == (PairItem(prompt, "good", "bad"),)
    assert (pair.id, pair.line, pair.subset) == ("a", 7, "s")
    [told] = questions_of(PAIR, 7, "pairs", with_truth=True)
    assert told.items == (PairItem(prompt, "good", "bad", ground_truth="4"),)
    [points] = questions_of(PAIR, 7, "points")
    assert points.items == tuple(
        JudgeItem(prompt, text, ground_truth="4") for text in ("good", "bad")
    )


def test_styles_are_paired_with_their_own_or_with_each() -> None:
    row = {**PAIR, "chosen": ["a", "b", "c"], "rejected": ["d", "e", "f"]}
    assert [q.id for q in questions_of(row, 1, "pairs")] == ["a.0", "a.1", "a.2"]
    crossed = questions_of(row, 1, "pairs", "cross")
    assert [q.subset for q in crossed] == [
        "s normal", "s hard", "s hard", "s easy", "s normal", "s hard", "s easy", "s easy",
        "s normal",
    ]  # fmt: skip


def test_steps_are_sent_as_they_are_cut() -> None:
    [steps] = questions_of(STEPS, 1, "steps")
    [item] = steps.items
    assert isinstance(item, StepItem)
    assert "".join(item.steps) == item.response
    assert (steps.labels, steps.subset, steps.id) == ((1.0, -1.0), "c", "1")


def test_a_point_is_held_against_its_right_answer_unless_it_is_hidden() -> None:
    [point] = questions_of(POINT, 1, "points")
    asked = [{"role": "user", "content": "p"}]
    assert point.items == (JudgeItem(asked, "r", ground_truth="4"),)
    assert point.labels == (1.0,)
    [blind] = questions_of(POINT, 1, "points", with_truth=False)
    assert blind.items == (JudgeItem(asked, "r"),)


@pytest.mark.parametrize(
    ("kind", "row", "says"),
    [
        ("pairs", POINT, "'chosen' is missing"),
        ("steps", PAIR, "'steps' must be a list"),
        ("points", STEPS, "'response' is missing"),
        ("points", {**POINT, "label": 0.5}, "'label' is 0.5; write 1"),
        ("points", {**POINT, "label": None}, "write 1 for a right response"),
        ("points", {"response": "r", "label": 1}, "'prompt' is missing"),
        ("pairs", {**PAIR, "chosen": "bad"}, "no preference"),
    ],
)
def test_rows_that_cannot_be_asked_say_what_to_write(kind: Any, row: Any, says: str) -> None:
    with pytest.raises(RowError, match=says):
        questions_of(row, 1, kind)


def test_a_bad_row_is_named_or_left_out_and_counted() -> None:
    rows = numbered(PAIR, {**PAIR, "rejected": ""}, PAIR)
    with pytest.raises(ConfigError, match=r"rows.jsonl:2: 'rejected' is empty.*--skip-bad"):
        make_sheet(FILE, rows, RowReading())
    sheet = make_sheet(FILE, rows, RowReading(skip_bad=True))
    assert [question.line for question in sheet.questions] == [1, 3]
    assert sheet.skipped.total() == 1
    with pytest.raises(ConfigError, match="no row that asks for steps"):
        make_sheet(FILE, numbered(PAIR), RowReading("steps", skip_bad=True))
    with pytest.raises(ConfigError, match="holds no rows"):
        make_sheet(FILE, [], RowReading())


def test_a_limit_is_spread_over_the_file() -> None:
    rows = numbered(*({**PAIR, "id": str(n)} for n in range(10)))
    sheet = make_sheet(FILE, rows, RowReading(limit=4))
    assert [question.id for question in sheet.questions] == ["0", "2", "5", "7"]
    assert len(make_sheet(FILE, rows, RowReading(limit=99)).questions) == 10
    assert sheet.sha256 != make_sheet(FILE, rows, RowReading(limit=5)).sha256


def test_lines_hold_what_is_counted() -> None:
    [pair] = questions_of(PAIR, 1, "pairs")
    judgement = PairJudgement(0.25, 0.75, 0.0, 0.75, judge=JUDGE, usage=Usage(9, 4, 1, 2.0, 0.5))
    line = line_of(pair, [judgement])
    assert (line["win_probability"], line["order_gap"], line["fault"]) == (0.25, 0.75, None)
    assert line["usage"] == {
        "prompt": 9, "cached": 4, "completion": 1, "engine_s": 2.0, "cost": 0.5
    }  # fmt: skip
    evaluation = EvaluationTally("pairs")
    for _ in range(2):
        evaluation.add(line)
    assert evaluation.numbers()["all"]["cost"] == 1.0
    assert evaluation.numbers()["all"]["engine_seconds"] == 4.0
    [points] = questions_of(PAIR, 1, "points")
    both = [ModelJudgement(2.0, judge=JUDGE), ModelJudgement(-1.0, judge=JUDGE)]
    scores = line_of(points, both)
    assert (scores["score_chosen"], scores["score_rejected"]) == (2.0, -1.0)
    [steps] = questions_of(STEPS, 1, "steps")
    found = StepScores((StepScore(0, 2, 0.9), StepScore(2, 3, 0.1)), 0.1, False, judge=JUDGE)
    assert line_of(steps, [found])["scores"] == [0.9, 0.1]


def test_a_fault_is_neither_right_nor_wrong() -> None:
    [points] = questions_of(PAIR, 1, "points")
    half = line_of(points, [ModelJudgement(2.0, judge=JUDGE), Fault("ENGINE_DIED", "gone")])
    assert half["fault"] == {"reason": "ENGINE_DIED", "message": "gone"}
    assert "score_chosen" not in half
    evaluation = EvaluationTally("points")
    evaluation.add(half)
    numbers = evaluation.numbers()["all"]
    assert (numbers["items"], numbers["judged"], numbers["accuracy"]) == (1, 0, None)


def test_abstentions_count_for_the_orders_and_not_for_the_accuracy() -> None:
    [pair] = questions_of(PAIR, 1, "pairs")
    evaluation = EvaluationTally("pairs", max_order_gap=0.5)
    for forward, reverse in ((0.9, 0.8), (0.9, 0.1), (0.2, 0.1), (0.5, 0.5)):
        judgement = PairJudgement(
            (forward + reverse) / 2, forward, reverse, forward - reverse, judge=JUDGE
        )
        evaluation.add(line_of(pair, [judgement]))
    numbers = evaluation.numbers()["all"]
    assert (numbers["abstained"], numbers["accuracy"]) == (1, 0.5)
    assert numbers["accuracy_chosen_first"] == (1 + 1 + 0 + 0.5) / 4
    assert numbers["accuracy_chosen_second"] == (1 + 0 + 0 + 0.5) / 4
    assert numbers["order_consistency"] == 3 / 4


def test_models_and_templates_are_looked_up_before_anything_is_asked() -> None:
    scalar = JudgeModelInfo("rm", "r", "transformers", ("scalar-head",), 9, True, True)
    writer = JudgeModelInfo("lm", "r", "transformers", ("token-probability",), 9, True, False)
    steps = ProcessModelInfo("prm", "r", "transformers", "line", False, 9)
    prompts = (TemplateInfo("preference@1", "", "pairwise"),)
    info = JudgeServerInfo((scalar, writer), (steps,), prompts, 1, 1, 1, "0")
    assert only_rates(info, "")
    assert not only_rates(info, "lm")
    check_names(info, "pairs", "lm", "preference")
    check_names(info, "steps", "prm", "")
    with pytest.raises(ConfigError, match="no model 'prm' judges at this service; it has: rm, lm"):
        check_names(info, "pairs", "prm", "")
    with pytest.raises(ConfigError, match="it has: prm"):
        check_names(info, "steps", "lm", "")
    with pytest.raises(ConfigError, match="this service has: preference@1"):
        check_names(info, "pairs", "", "prefer")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "kind", "bad"),
    [
        ("judgebench", "pairs", 1),
        ("rm_bench_no_math", "pairs", 0),
        ("llmbar", "pairs", 0),
        ("autoj_pairwise", "pairs", 2),
        ("hh_rlhf_harmless_test", "pairs", 9),
        ("prmbench_steps", "steps", 0),
        ("prm800k_clean_processes", "steps", 0),
        ("gsm8k_model_solutions", "points", 0),
    ],
)
def test_benchmark_files_can_be_asked(shared_data: Path, name: str, kind: str, bad: int) -> None:
    path = shared_data / f"{name}.jsonl.gz"
    sheet = make_sheet(path, list(read(path)), RowReading(skip_bad=True))
    assert (sheet.kind, sheet.skipped.total()) == (kind, bad)
    assert len(sheet.questions) > 300


def line_about(**more: Any) -> dict[str, Any]:
    """A line without a fault."""
    judge = {"model": "m", "revision": "r", "template": "t@1"}
    usage = {"prompt": 1, "cached": 0, "completion": 0}
    return {"id": "1", "subset": "", "fault": None, "judge": judge, "usage": usage, **more}


def steps_line(labels: list[float], first_error: int | None) -> dict[str, Any]:
    scores = [0.1 if index == first_error else 0.9 for index in range(len(labels))]
    return line_about(
        labels=labels,
        scores=scores,
        error_threshold=0.5,
        first_error=first_error,
        passed=first_error is None,
    )


def test_the_f1_of_first_errors_is_that_of_processbench() -> None:
    """Of four wrong responses one first error is found, of two right ones both: 2*.25*1 / 1.25."""
    tally = EvaluationTally("steps")
    for found in (1, 0, None, 2):
        tally.add(steps_line([1.0, -1.0, -1.0], found))
    assert tally.numbers()["all"]["process_f1"] is None, "there is no right one yet"
    tally.add(steps_line([1.0, 1.0], None))
    tally.add(steps_line([1.0], None))
    numbers = tally.numbers()["all"]
    assert (numbers["first_error_of_wrong"], numbers["first_error_of_right"]) == (0.25, 1.0)
    assert numbers["process_f1"] == pytest.approx(0.4)
    assert numbers["first_error_accuracy"] == pytest.approx(0.5)


def test_a_judge_that_finds_no_error_has_an_f1_of_0() -> None:
    tally = EvaluationTally("steps")
    tally.add(steps_line([1.0, -1.0], None))
    tally.add(steps_line([1.0], None))
    assert tally.numbers()["all"]["process_f1"] == 0.0


def pair_line(win: float, longer_better: bool | None) -> dict[str, Any]:
    return line_about(
        win_probability=win,
        forward=win,
        reverse=win,
        order_gap=0.0,
        longer_better=longer_better,
        verdict_mass=win,
        letter_gap=1.0 - win,
    )


def test_the_calibration_and_the_length_of_pairs_are_counted() -> None:
    tally = EvaluationTally("pairs")
    for win, longer in ((0.95, True), (0.85, False), (0.15, True), (0.75, None), (0.5, True)):
        tally.add(pair_line(win, longer))
    numbers = tally.numbers()["all"]
    # Of three unequal pairs that are decided the longer one wins once (0.95); it is better in two.
    assert numbers["longer_preferred"] == pytest.approx(1 / 3)
    assert numbers["longer_better"] == pytest.approx(2 / 3)
    # Sure of 0.95 right, of 0.85 right and wrong, of 0.75 right.
    assert numbers["ece"] == pytest.approx((0.05 + 2 * 0.35 + 0.25) / 4)
    assert [one["count"] for one in numbers["calibration"]] == [1, 2, 1]
    assert numbers["verdict_mass"] == {"median": 0.75, "least": 0.15}
    assert numbers["letter_gap"] == {"mean": pytest.approx(0.36), "greatest": 0.85}


def test_logits_have_no_calibration_and_a_perfect_judge_an_error_of_0() -> None:
    tally = EvaluationTally("points")
    tally.add(line_about(score=3.5, label=1.0))
    assert "ece" not in tally.numbers()["all"]
    tally = EvaluationTally("points")
    for score, label in ((1.0, 1.0), (0.0, 0.0), (1.0, 1.0)):
        tally.add(line_about(score=score, label=label))
    assert tally.numbers()["all"]["ece"] == 0.0
