"""Scores of published benchmarks: small tables by hand, rows as published, laws.

In a one-off check the official functions gave the same on generated inputs: the score of Ties and
best of four (allenai/reward-bench rewardbench/utils.py), ScalerLab/JudgeBench utils/metrics.py, the
F1 of QwenLM/ProcessBench code/run_eval.py, and ssmisya/PRMBench's evaluate_function, but that the
last gives -1 where an F1 has neither precision nor recall, and this one 0.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.evaluation.agreement import agreement_report
from assay.cli.evaluation.benchmarks import benchmark_report
from assay.cli.evaluation.best import TiedPrompt, found_best, ties_score
from assay.cli.evaluation.measures import LengthBias, PlaceBias, calibrated
from assay.cli.evaluation.rows import line_of, questions_of
from assay.cli.evaluation.sheet import RowReading, make_sheet
from assay.clients.judging import (
    Fault,
    GroupItem,
    GroupRanking,
    JudgeItem,
    JudgeRef,
    ModelJudgement,
)
from assay.clients.rows.items import RowError
from assay.clients.rows.preferences import best_of, pairs_of, read, steps_of
from assay.clients.rows.published import FORMATS, as_plain, format_of
from assay.kit.errors import ConfigError
from assay.kit.runs.stats import wilson

FILE = Path("rows.jsonl")
FAULT = {"reason": "JUDGE_UNPARSED", "message": "none"}
PUBLISHED: dict[str, dict[str, Any]] = {
    "rewardbench-2": {
        "id": "7", "prompt": "q", "chosen": ["good"], "rejected": ["b", "c", "d"], "num_correct": 1,
        "num_incorrect": 3, "total_completions": 4, "models": ["m"], "subset": "Math",
        "additional_metadata": {},
    },
    "judgebench": {
        "pair_id": "p", "original_id": "1", "source": "mmlu-pro-law", "question": "q",
        "response_model": "m", "response_A": "bad", "response_B": "good", "label": "B>A",
    },
    "llmbar": {"input": "q", "output_1": "good", "output_2": "bad", "label": 1},
    "auto-j": {
        "scenario": "s", "label": 1, "prompt": "q", "response 1": "bad", "response 2": "good",
    },
    "processbench": {
        "id": "gsm8k-3", "generator": "m", "problem": "q", "steps": ["a", "b", "c"], "label": 1,
        "final_answer_correct": False,
    },
    "prmbench": {
        "idx": "circular_0", "question": "q0", "modified_question": "q", "original_process": ["a"],
        "modified_process": ["a", "b", "c"], "modified_steps": [2], "error_steps": [2, 3],
        "reason": "r", "classification": "circular",
    },
}  # fmt: skip


def line(subset: str = "", fault: bool = False, **more: Any) -> dict[str, Any]:
    judge = {"model": "m", "revision": "r", "template": "t@1"}
    own = {"id": "1", "line": 1, "subset": subset, "kind": "pairs", "judge": judge}
    return {**own, "fault": FAULT if fault else None, **more}


@pytest.mark.parametrize("name", PUBLISHED)
def test_rows_are_read_as_they_are_published(name: str) -> None:
    row = PUBLISHED[name]
    assert format_of(row) == name
    sheet = make_sheet(FILE, [(1, row)], RowReading())
    assert sheet.form == name
    [question] = sheet.questions
    plain = as_plain(row, name)  # type: ignore[arg-type]
    if sheet.kind == "pairs":
        [pair] = pairs_of(plain)
        assert (pair.chosen, pair.rejected) == ("good", "bad")
    if name == "processbench":
        assert steps_of(plain).labels == (1.0, -1.0, None)
        assert question.subset == "gsm8k"
    if name == "prmbench":
        assert steps_of(plain).labels == (1.0, -1.0, -1.0)
        assert question.subset == "circular"
    if name == "rewardbench-2":
        assert [item.response for item in question.items] == ["good", "b", "c", "d"]  # type: ignore[union-attr]
        assert best_of(plain).correct == 1


def test_every_format_is_known_by_its_own_keys_alone() -> None:
    assert set(PUBLISHED) == set(FORMATS) - {"plain"}
    for name, row in PUBLISHED.items():
        for other in PUBLISHED:
            if other != name:
                with pytest.raises(RowError, match=f"its keys are those of {name}"):
                    as_plain(row, other)  # type: ignore[arg-type]
    plain = {"prompt": "q", "chosen": "a", "rejected": "b"}
    assert as_plain(plain, "judgebench") is plain


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("rewardbench-2", {"num_correct": 2}, "'num_correct' is 2 and 'chosen' has 1"),
        ("rewardbench-2", {"rejected": "x"}, "'rejected' is a text; write a list"),
        ("rewardbench-2", {"rejected": []}, "at least one must be right, and one wrong"),
        ("judgebench", {"label": "A=B"}, "'A=B'; write 'A>B' or 'B>A'"),
        ("llmbar", {"label": True}, "write 1 or 2"),
        ("auto-j", {"label": 2}, "a tie, which is no preference"),
        ("processbench", {"label": 3}, "'label' is 3 of 3 steps"),
        ("processbench", {"label": -2}, "or -1 for none"),
        ("processbench", {"label": True}, "'label' is True"),
        ("prmbench", {"error_steps": [0]}, "write their numbers, from 1"),
        ("prmbench", {"error_steps": None}, "'error_steps' is None"),
    ],
)
def test_a_wrong_row_says_what_to_write(name: str, change: dict[str, Any], says: str) -> None:
    rows = [(3, {**PUBLISHED[name], **change})]
    with pytest.raises(ConfigError, match=says) as caught:
        make_sheet(FILE, rows, RowReading())
    assert "rows.jsonl:3: " in str(caught.value)


def test_a_right_solution_of_processbench_has_no_error() -> None:
    row = {**PUBLISHED["processbench"], "label": -1}
    assert steps_of(as_plain(row, "processbench")).labels == (1.0, 1.0, 1.0)


def test_several_responses_are_rated_or_ranked() -> None:
    row = as_plain(PUBLISHED["rewardbench-2"], "rewardbench-2")
    [rated] = questions_of(row, 1, "best")
    assert [type(item) for item in rated.items] == [JudgeItem] * 4
    [ranked] = questions_of(row, 1, "best", best_by="ranking")
    [group] = ranked.items
    assert isinstance(group, GroupItem)
    assert tuple(group.responses) == ("good", "b", "c", "d")
    judge = JudgeRef("m", "r", "t@1")
    by_rating = line_of(rated, [ModelJudgement(score, judge=judge) for score in (0.9, 0.1, 0.2, 0)])
    by_ranking = line_of(ranked, [GroupRanking((0.9, 0.1, 0.2, 0.0), (0.0,) * 4, judge=judge)])
    assert by_rating["scores"] == by_ranking["scores"] == [0.9, 0.1, 0.2, 0]
    assert by_rating["correct"] == 1
    half = line_of(rated, [ModelJudgement(0.9, judge=judge), Fault("X", "y")] * 2)
    assert half["fault"]["reason"] == "X"
    assert "scores" not in half


def test_the_best_shares_the_point_with_its_ties() -> None:
    assert found_best([0.9, 0.1, 0.2, 0.3], 1) == 1
    assert found_best([0.9, 0.9, 0.2, 0.9], 1) == pytest.approx(1 / 3)
    assert found_best([0.1, 0.9, 0.2, 0.3], 1) == 0
    assert found_best([0.8, 0.7, 0.6], 2) == 1
    assert found_best([0.8, 0.6, 0.6], 2) == 0


def test_the_score_of_ties_by_hand() -> None:
    """Two prompts. First: all hold, spread 1, distances 2 and 3. Second: the right ones differ by 2
    and are 1 above, the variant with one right response is lost by 1."""
    first = TiedPrompt((5.0, 2.0), (4.0, 3.0, 1.0), 2)
    second = TiedPrompt((1.0, 2.0), (5.0, 3.0, 2.0), 2)
    found = ties_score([first, second])
    assert found is not None
    assert (found.tied_accuracy, found.reference_accuracy) == (1.0, 0.5)
    assert (found.preferred, found.preferred_hard) == (0.5, 0.5)
    margin = (math.tanh(2 / 1 - 1) + math.tanh(-1 / 2 - 1)) / 2
    assert found.margin == pytest.approx(margin)
    expected = 0.3 * 1 + 0.3 * 0.5 + 0.2 * 0.5 + 0.2 * 0.5 + 0.01 * margin
    assert found.score == pytest.approx(expected)
    assert ties_score([TiedPrompt((1.0, 2.0), None), TiedPrompt(None, (1.0, 1.0, 0.0), 2)]) is None
    same = ties_score([TiedPrompt((1.0, 0.0), (1.0, 1.0, 0.0), 2)])
    assert same is not None
    assert same.margin == 1.0, "right ones that do not differ: the limit"


SCORES = st.lists(st.integers(-9, 9).map(float), min_size=3, max_size=6)


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=5), st.floats(0.5, 4))
def test_ties_do_not_depend_on_the_scale_of_the_scores(
    rows: list[tuple[list[float], list[float]]], scale: float
) -> None:
    prompts = [TiedPrompt(one, many, 2) for one, many in rows]
    scaled = [
        TiedPrompt([x * scale + 3 for x in one], [x * scale + 3 for x in many], 2)
        for one, many in rows
    ]
    one, other = ties_score(prompts), ties_score(scaled)
    assert one is not None
    assert other is not None
    assert -0.01 <= one.score <= 1.01
    assert one.tied_accuracy == other.tied_accuracy


def test_rewardbench_2_is_the_mean_of_its_domains() -> None:
    lines = [
        line("Math", scores=[0.9, 0.1, 0.1, 0.1], correct=1, id="0"),
        line("Math", scores=[0.1, 0.9, 0.1, 0.1], correct=1, id="1"),
        line("Focus", scores=[0.5, 0.5, 0.1, 0.1], correct=1, id="2"),
        line("Ties", scores=[5.0, 2.0], correct=1, id="ref:0"),
        line("Ties", scores=[4.0, 3.0, 1.0], correct=2, id="tied:0"),
        line("Focus", fault=True, correct=1, id="3"),
    ]
    found = benchmark_report("rewardbench-2", "best", lines)
    assert found is not None
    ties = 1.0 + 0.01 * math.tanh(1)
    assert found["parts"]["Ties"]["score"] == pytest.approx(ties)
    assert found["parts"]["Ties"]["rows"] == 1, "a prompt with its variants"
    assert found["score"] == pytest.approx((0.5 + 0.5 + ties) / 3)
    # The official code gives what cannot be read a quarter of the point: Focus (0.5 + 0.25) / 2.
    assert found["score_with_faults"] == pytest.approx((0.5 + 0.375 + ties) / 3)
    assert found["parts"]["Focus"]["faults"] == 1
    low, high = found["interval"]
    assert low <= found["score"] <= high


def test_judgebench_wants_more_votes_for_the_better_response() -> None:
    """Right twice; right and a tie; right and wrong; two ties; a fault."""
    orders = [(0.9, 0.9), (0.9, 0.5), (0.9, 0.1), (0.5, 0.5)]
    lines = [line("mmlu-pro-law", forward=f, reverse=r) for f, r in orders]
    lines += [line("livecodebench", fault=True), line("livecodebench", forward=0.6, reverse=0.6)]
    found = benchmark_report("judgebench", "pairs", lines)
    assert found is not None
    assert found["parts"]["knowledge"]["score"] == 0.5
    assert found["parts"]["coding"]["score"] == 1.0
    assert found["score"] == pytest.approx(3 / 5)
    assert found["score_with_faults"] == pytest.approx(3 / 6)
    scalar = [line("livebench-math", score_chosen=c, score_rejected=1.0) for c in (2.0, 1.0)]
    rated = benchmark_report("judgebench", "points", scalar)
    assert rated is not None
    assert rated["score"] == 0.5


def steps(labels: list[float | None], scores: list[float], **more: Any) -> dict[str, Any]:
    first = next((i for i, score in enumerate(scores) if score < 0.5), None)
    own = {"kind": "steps", "labels": labels, "scores": scores, "error_threshold": 0.5}
    return line(first_error=first, passed=first is None, **own, **more)


def test_nothing_right_of_a_few_is_no_certainty() -> None:
    """0 of 7 is not 0.0 to 0.0, which a bootstrap would say."""
    lines = [line("livecodebench", forward=0.1, reverse=0.1) for _ in range(7)]
    found = benchmark_report("judgebench", "pairs", lines)
    assert found is not None
    assert found["score"] == 0.0
    assert found["interval"] == found["parts"]["coding"]["interval"] == list(wilson(0, 7))
    best = [line("Math", scores=[0.1, 0.9, 0.1, 0.1], correct=1, id=f"{n}") for n in range(7)]
    rated = benchmark_report("rewardbench-2", "best", best)
    assert rated is not None
    assert rated["parts"]["Math"]["interval"] == list(wilson(0, 7))
    blind = [steps([1.0, -1.0], [0.9, 0.9], subset="s")] * 3 + [steps([1.0], [0.9], subset="s")] * 3
    of_steps = benchmark_report("processbench", "steps", blind)
    assert of_steps is not None
    low, high = of_steps["parts"]["s"]["interval"]
    assert of_steps["score"] == 0.0
    assert low == pytest.approx(0.0, abs=1e-9)
    assert 0.4 < high < 1.0


def test_processbench_is_the_mean_of_the_f1_of_its_subsets() -> None:
    wrong, right = [1.0, -1.0, None], [1.0, 1.0]
    lines = [
        steps(wrong, [0.9, 0.1, 0.9], subset="gsm8k"),
        steps(wrong, [0.1, 0.1, 0.9], subset="gsm8k"),
        steps(right, [0.9, 0.9], subset="gsm8k"),
        steps(wrong, [0.9, 0.1, 0.1], subset="math"),
        steps(right, [0.9, 0.9], subset="math"),
        {**line("math", fault=True), "kind": "steps", "labels": right},
    ]
    found = benchmark_report("processbench", "steps", lines)
    assert found is not None
    of_gsm8k = 2 * 0.5 * 1 / 1.5
    assert found["parts"]["gsm8k"]["score"] == pytest.approx(of_gsm8k)
    assert found["score"] == pytest.approx((of_gsm8k + 1) / 2)
    with_fault = 2 * 1 * 0.5 / 1.5
    assert found["score_with_faults"] == pytest.approx((of_gsm8k + with_fault) / 2)


def test_prmscore_by_hand() -> None:
    """Of circular: 2 right steps kept, 1 called wrong, 1 wrong step found, 1 missed.

    F1 of right: 2*2 / (4 + 2) = 2/3; of wrong: 2*1 / (2 + 2) = 1/2; PRMScore 7/12. Of
    multi_solutions, right steps only: 3 kept, 1 called wrong: F1 6/7. Together: right 10/13, wrong
    2/5.
    """
    lines = [
        steps([1.0, 1.0, 1.0, -1.0, -1.0], [0.9, 0.9, 0.1, 0.1, 0.9], subset="circular"),
        steps([1.0] * 4, [0.9, 0.9, 0.9, 0.1], subset="multi_solutions"),
    ]
    found = benchmark_report("prmbench", "steps", lines)
    assert found is not None
    assert found["parts"]["circular"]["score"] == pytest.approx(7 / 12)
    assert found["parts"]["multi_solutions"]["score"] == pytest.approx(6 / 7)
    assert found["score"] == pytest.approx((10 / 13 + 2 / 5) / 2)
    assert found["categories"] == {}, "no category has all its classes"
    assert found["score_with_faults"] is None


def test_a_category_of_prmbench_is_the_mean_of_its_classes() -> None:
    lines = [
        steps([1.0, -1.0], [0.9, 0.1], subset="circular"),
        steps([1.0, -1.0], [0.9, 0.9], subset="redundency"),
    ]
    found = benchmark_report("prmbench", "steps", lines)
    assert found is not None
    assert found["categories"] == {"simplicity": pytest.approx((1 + (2 / 3 + 0) / 2) / 2)}


def test_plain_rows_have_no_score_of_their_own() -> None:
    assert benchmark_report("plain", "pairs", [line(forward=0.9, reverse=0.9)]) is None
    assert benchmark_report("llmbar", "pairs", [line(forward=0.9, reverse=0.9)]) is None


def test_a_judge_that_goes_by_the_place_picks_the_first() -> None:
    bias = PlaceBias()
    for _ in range(20):
        bias.add(0.9, 0.1)
    measured = bias.measures()
    assert measured["first_picked"] == 1.0
    assert measured["first_picked_interval"][0] > 0.8
    fair = PlaceBias()
    for win in (0.9, 0.1, 0.5):
        fair.add(win, win)
    assert fair.measures()["first_picked"] == 0.5


def test_the_bias_of_length_is_what_the_longer_wins_too_often() -> None:
    """Four pairs, longer better in two; the judge always takes the longer one."""
    bias = LengthBias()
    for longer_better in (True, True, False, False):
        bias.add(longer_better, longer_better)
    bias.add(None, True)
    measured = bias.measures()
    assert (measured["longer_preferred"], measured["longer_better"]) == (1.0, 0.5)
    assert measured["length_bias"] == 0.5
    assert measured["accuracy_longer_better"] == 1.0
    assert measured["accuracy_shorter_better"] == 0.0
    assert LengthBias().measures()["length_bias"] is None


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_the_shares_of_lengths_account_for_the_accuracy(pairs: list[tuple[bool, bool]]) -> None:
    bias = LengthBias()
    for longer_better, right in pairs:
        bias.add(longer_better, right)
    measured = bias.measures()
    preferred = sum(longer == right for longer, right in pairs) / len(pairs)
    assert measured["longer_preferred"] == pytest.approx(preferred)
    assert measured["length_bias"] == pytest.approx(preferred - measured["longer_better"])
    longer = sum(longer for longer, _ in pairs)
    right = longer * (measured["accuracy_longer_better"] or 0) + (len(pairs) - longer) * (
        measured["accuracy_shorter_better"] or 0
    )
    assert right == pytest.approx(sum(right for _, right in pairs))
    low, high = measured["length_bias_interval"]
    assert low <= measured["length_bias"] + 1e-9
    assert measured["length_bias"] - 1e-9 <= high


def test_bins_have_their_upper_end() -> None:
    """As in arXiv 1706.04599: 0.5 is in (0.4, 0.5], so it is judged with 0.45 and not with 0.55."""
    found = calibrated([(0.45, False), (0.5, True), (0.55, True), (0.7, True)])
    assert [one["count"] for one in found["calibration"]] == [2, 1, 1]
    assert found["ece"] == pytest.approx((2 * abs(0.5 - 0.475) + 0.45 + 0.3) / 4)
    assert found["brier"] == pytest.approx((0.45**2 + 0.25 + 0.45**2 + 0.09) / 4)
    assert found["overconfidence"] == pytest.approx(0.55 - 0.75)


def test_a_calibrated_judge_is_as_far_off_as_chance_alone() -> None:
    scored = [(x / 100, (x * 37) % 100 < x) for x in range(100)] * 5
    found = calibrated(scored)
    assert found["ece"] < found["ece_if_true"] + 0.05
    sure = calibrated([(1.0, x % 2 == 0) for x in range(100)])
    assert sure["ece"] == pytest.approx(0.5)
    assert sure["ece_if_true"] == 0.0
    assert sure["overconfidence"] == pytest.approx(0.5)


def win(number: int, chance: float) -> dict[str, Any]:
    return {**line(win_probability=chance, forward=chance, reverse=chance), "line": number}


def test_judges_agree_and_disagree() -> None:
    """Wins of 8 pairs: both 5, only one 1 + 1, none 1; kappa = (6/8 - 40/64) / (1 - 40/64)."""
    one = [win(n, 0.9 if n < 6 else 0.1) for n in range(8)]
    other = [win(n, 0.9 if n < 5 or n == 6 else 0.1) for n in range(8)]
    report = agreement_report({"one": one, "other": other})
    [pair] = report["pairs"]
    assert pair["agree"] == 0.75
    assert pair["kappa"] == pytest.approx((0.75 - 40 / 64) / (1 - 40 / 64))
    assert (pair["only_first"], pair["only_second"], pair["p"]) == (1, 1, 1.0)
    assert report["items"] == 8
    same = agreement_report({"one": one, "again": one})
    assert same["alpha"] == same["alpha_scores"] == 1.0
    assert same["pairs"][0]["kappa"] == 1.0


def test_a_fault_is_silence_for_the_agreement() -> None:
    one = [win(0, 0.9), win(1, 0.1), {**line(fault=True), "line": 2}]
    report = agreement_report({"one": one, "other": [win(n, 0.9) for n in range(3)]})
    assert report["pairs"][0]["both"] == 2
    with pytest.raises(ConfigError, match="no row in common; compare evaluations of one file"):
        agreement_report({"one": one[:1], "other": [win(7, 0.9)]})


def test_steps_and_points_and_several_responses_have_verdicts() -> None:
    a, b = ({**steps([1.0, -1.0], scores), "line": 1} for scores in ([0.9, 0.1], [0.9, 0.9]))
    [pair] = agreement_report({"a": [a], "b": [b]})["pairs"]
    assert (pair["both"], pair["agree"], pair["only_first"]) == (2, 0.5, 1)
    points = [
        {**line(score=s, label=1.0), "kind": "points", "line": n} for n, s in ((1, 0.9), (2, 0.2))
    ]
    [pair] = agreement_report({"a": points, "b": points})["pairs"]
    assert (pair["agree"], pair["kappa"]) == (1.0, 1.0)
    best = {**line(scores=[0.9, 0.1], correct=1), "kind": "best"}
    [pair] = agreement_report({"a": [best], "b": [{**best, "scores": [0.1, 0.9]}]})["pairs"]
    assert (pair["agree"], pair["only_first"]) == (0.0, 1)


def test_reports_are_plain_data() -> None:
    lines = [steps([1.0, -1.0], [0.9, 0.1], subset="circular")]
    json.dumps(benchmark_report("prmbench", "steps", lines), allow_nan=False)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "form", "parts"),
    [("judgebench", "judgebench", 4), ("prmbench_steps", "prmbench", 9)],
)
def test_a_perfect_judge_has_a_perfect_score(
    shared_data: Path, name: str, form: str, parts: int
) -> None:
    path = shared_data / f"{name}.jsonl.gz"
    sheet = make_sheet(path, list(read(path)), RowReading(form=form, limit=600, skip_bad=True))  # type: ignore[arg-type]
    lines = []
    for question in sheet.questions:
        own = line(question.subset, forward=0.9, reverse=0.9)
        if question.kind == "steps":
            own = steps(list(question.labels), [float((x or 0) > 0) for x in question.labels])
            own["subset"] = question.subset
        lines.append(own)
    found = benchmark_report(sheet.form, sheet.kind, lines)
    assert found is not None
    assert found["score"] == 1.0
    assert len(found["parts"]) == parts
