"""Verdicts, turn rewards and metrics of a policy that verifies itself (PAG, arXiv 2506.10406)."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

import pytest

from assay.clients.judging.self_verification import (
    ANSWER,
    CLOSING,
    OPTIONS,
    RECONSIDER,
    REVISE,
    VERIFY,
    Dialogue,
    SelfVerificationMetrics,
    TurnScore,
    before_verdict,
    dialogue_messages,
    dialogue_of,
    metrics,
    parse_verdict,
    revision_due,
    score_turns,
    stated_answer,
    turn_rewards,
)

# What a verification says, read strictly and tolerantly, and what stands before its verdict.
VERDICTS = [
    ("All is well. The answer is correct.", "correct", "correct", "All is well. "),
    ("2 + 2 is 4.\nThe answer is wrong.", "wrong", "wrong", "2 + 2 is 4.\n"),
    ("The answer is correct.\n", "correct", "correct", ""),
    ("The answer is correct.\n\n", "unparsed", "correct", ""),
    ("The answer is correct. ", "unparsed", "correct", ""),
    ("The answer is correct", "unparsed", "correct", ""),
    ("the answer is correct.", "unparsed", "correct", ""),
    ("The answer is wrong. The answer is correct.", "unparsed", "correct", "The answer is wrong. "),
    ("The answer is correct. No, wait.", "unparsed", "correct", ""),
    ("The answer is correctly derived.", "unparsed", "unparsed", None),
    ("The answer is correct up to step 3.", "unparsed", "unparsed", None),
    ("The answer is 12.", "unparsed", "unparsed", None),
    ("The answer is not correct.", "unparsed", "wrong", ""),
    ("The answer isn't wrong.", "unparsed", "correct", ""),
    ("The final answer is **wrong**.", "unparsed", "wrong", ""),
    ("So my solution is incorrect because of step 2", "unparsed", "wrong", "So "),
    ("The answer is therefore $\\boxed{\\text{wrong}}$.", "unparsed", "wrong", ""),
    ("The answer: correct.", "unparsed", "correct", ""),
    ("I see that the answer is “wrong”.", "unparsed", "wrong", "I see that "),
    ("Fine.\n**Final verdict: Correct**", "unparsed", "correct", "Fine.\n**"),
    ("Verdict: **not correct**", "unparsed", "wrong", ""),
    ("Steps hold.\n\nCorrect!\n", "unparsed", "correct", "Steps hold.\n\n"),
    ("So\n\\boxed{wrong}", "unparsed", "wrong", "So\n"),
    ("If the answer is correct, fine.", "unparsed", "unparsed", None),
    ("I check whether the answer is wrong.", "unparsed", "unparsed", None),
    ("Is the answer correct?", "unparsed", "unparsed", None),
    ("Step 1 of the solution is correct.", "unparsed", "unparsed", None),
    ("Step 1 is correct.", "unparsed", "unparsed", None),
    ("", "unparsed", "unparsed", None),
]


@pytest.mark.parametrize(("text", "strict", "tolerant", "before"), VERDICTS)
def test_reads_verdicts(text: str, strict: str, tolerant: str, before: str | None) -> None:
    assert parse_verdict(text) == parse_verdict(text, strict=True) == strict
    assert parse_verdict(text, strict=False) == tolerant
    assert before_verdict(text) == (text if before is None else before)


def test_the_strict_verdict_decides_how_a_text_is_read_tolerantly() -> None:
    text = "Verdict: wrong because I say so if The answer is correct."
    assert parse_verdict(text) == parse_verdict(text, strict=False) == "correct"


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    ["the ", "the answer is ", "The answer is correct. ", " \t", "if ", "final ", "\n", "#", "*",
     "verdict: ", "\\boxed{", "{", "The answer is correct"],
)  # fmt: skip
def test_reading_takes_time_in_proportion_to_the_text(part: str) -> None:
    short, long = part * (40_000 // len(part)), part * (400_000 // len(part))
    pairs = [(_cpu_s(short), _cpu_s(long)) for _ in range(5)]
    short_s, long_s = (statistics.median(times) for times in zip(*pairs, strict=True))
    # Ten times the text: about 10 where reading is linear, 100 where it is quadratic.
    assert long_s < 40 * max(short_s, 1e-4)


def _cpu_s(text: str) -> float:
    """CPU seconds of this thread: the load of the machine is not in them."""
    start_s = time.thread_time()
    parse_verdict(text, strict=False)
    stated_answer(text)
    return time.thread_time() - start_s


def test_asks_for_a_revision_where_the_verdict_is_wrong() -> None:
    assert [revision_due(v) for v in ("correct", "wrong", "unparsed")] == [False, True, False]
    in_validation = [revision_due(v, validation=True) for v in ("correct", "wrong", "unparsed")]
    assert in_validation == [False, True, True]


@pytest.mark.parametrize(
    ("accuracies", "verdicts", "shaping", "expected"),
    [
        ([1], [], 1.0, [1]),
        ([0], ["wrong"], 1.0, [0, 1]),
        ([1], ["wrong"], 1.0, [1, 0]),
        ([1, 1], ["unparsed"], 1.0, [1, 0, 1]),
        ([1, 1], ["wrong"], 1.0, [1, 0, 1]),
        ([0, 1], ["wrong"], 1.0, [0, 1, 2]),
        ([1, 0], ["wrong"], 1.0, [1, 0, -1]),
        ([0, 1, 0], ["wrong", "correct", "wrong"], 0.5, [0, 1, 1.5, 1, -0.5, 1]),
        ([0, 1], ["wrong"], 0.0, [0, 1, 1]),
    ],
)
def test_turn_rewards(
    accuracies: list[float], verdicts: list, shaping: float, expected: list[float]
) -> None:
    assert turn_rewards(accuracies, verdicts, shaping) == tuple(map(float, expected))


def test_turn_rewards_agree_with_the_reference(repository: Path) -> None:
    golden = repository.parent / "shared" / "design" / "golden.json"
    if not golden.is_file():
        pytest.skip("../shared/design/golden.json is absent")
    rows = [row for row in json.loads(golden.read_text()) if row["function"] == "pag_turn_rewards"]
    assert rows
    for row in rows:
        given = row["inputs"]
        verdicts = [verdict or "unparsed" for verdict in given["judgements"]]
        rewards = turn_rewards(given["accuracies"], verdicts, given["alpha"])
        assert list(rewards) == [reward for _, reward in row["expected"]]


@pytest.mark.parametrize(("accuracies", "verdicts"), [([], []), ([1], ["wrong"] * 2), ([1, 1], [])])
def test_turns_must_alternate(accuracies: list[float], verdicts: list) -> None:
    with pytest.raises(ValueError, match="alternate"):
        turn_rewards(accuracies, verdicts, 1.0)


TURNS = (
    "So \\boxed{5}.",
    "Step 1 adds badly, the answer is wrong",
    "So \\boxed{4}.",
    "The answer is correct.",
)


def test_scores_turns_by_the_reading_that_counts() -> None:
    strict = score_turns(TURNS, (False, True), shaping=1.0, probabilities=(0.25, 0.75))
    assert strict == (
        TurnScore(0.0, False),
        TurnScore(0.0, None, "unparsed", "wrong", 0.25),
        TurnScore(2.0, True),
        TurnScore(1.0, None, "correct", "correct", 0.75),
    )
    tolerant = score_turns(TURNS, (False, True), parsing="tolerant")
    assert [turn.reward for turn in tolerant] == [0.0, 1.0, 1.0, 1.0]
    assert [turn.correct_probability for turn in tolerant] == [None] * 4


@pytest.mark.parametrize("given", [{"attempts_correct": (True,)}, {"probabilities": (0.5,)}])
def test_scores_need_one_truth_and_one_chance_each(given: dict) -> None:
    arguments = {"attempts_correct": (True, True), "probabilities": (), **given}
    with pytest.raises(ValueError, match="one truth"):
        score_turns(TURNS, arguments.pop("attempts_correct"), **arguments)


def test_a_dialogue_for_the_metrics_holds_what_was_scored() -> None:
    scores = score_turns(TURNS, (False, True), probabilities=(0.25, 0.75))
    assert dialogue_of(TURNS, scores, "tolerant", "g") == Dialogue(
        (False, True), ("wrong", "correct"), (0.25, 0.75), ("5", "4"), "g"
    )
    assert dialogue_of(TURNS, scores, "strict").verdicts == ("unparsed", "correct")


def test_the_dialogue_as_the_policy_saw_it() -> None:
    prompt = [("system", ANSWER), ("user", "2 + 2?")]
    assert dialogue_messages(prompt, TURNS) == [
        *prompt,
        ("assistant", TURNS[0]),
        ("user", VERIFY),
        ("assistant", TURNS[1]),
        ("user", REVISE),
        ("assistant", TURNS[2]),
        ("user", VERIFY),
        ("assistant", TURNS[3]),
    ]
    assert dialogue_messages(prompt, ()) == prompt


def test_the_prompts_name_the_closing_sentences_that_the_parser_reads() -> None:
    for option in OPTIONS:
        assert f'"{CLOSING}{option}."' in VERIFY
        assert parse_verdict(f"Hm. {CLOSING}{option}.") == option.strip()
    assert "\\boxed{}" in ANSWER
    assert "\\boxed{}" in REVISE
    assert "\\boxed{}" in RECONSIDER


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so \\boxed{5}", "5"),
        ("\\boxed{1}, no: \\boxed{ \\frac{1}{2} }.", "\\frac{1}{2}"),
        ("\\boxed{never closed\nso 7", "so7"),
        ("thus\nit is 7 \n\n", "itis7"),
        ("", ""),
    ],
)
def test_reads_what_an_attempt_states(text: str, answer: str) -> None:
    assert stated_answer(text) == answer


def test_metrics_of_nothing_are_unset() -> None:
    assert metrics([]) == SelfVerificationMetrics()


def test_metrics_count_what_they_say() -> None:
    batch = [
        # Right at once and left alone.
        Dialogue((True,), ("correct",), (0.9,), ("4",), "a"),
        # Wrong, found out, mended.
        Dialogue((False, True), ("wrong",), (0.2,), ("5", "4"), "a"),
        # Right, talked out of it, verified again without a verdict.
        Dialogue((True, False), ("wrong", "unparsed"), (0.4, 0.6), ("4", "5"), "b"),
        # Wrong and stubborn: the same answer again.
        Dialogue((False, False), ("wrong", "correct"), (0.3, 0.5), ("5", "5"), "b"),
        # Never verified.
        Dialogue((False,)),
    ]
    assert metrics(batch) == SelfVerificationMetrics(
        first_accuracy=2 / 5,
        final_accuracy=2 / 5,
        answer_change_ratio=2 / 3,
        verifier_accuracy=3 / 6,
        correct_recall=1 / 2,
        wrong_recall=2 / 4,
        incorrect_to_correct_ratio=1 / 3,
        correct_to_incorrect_ratio=1 / 2,
        revision_ratio=3 / 5,
        best_of_n_accuracy=1 / 2,
        # Published denominators: two wrong ones were revised, one mended; the one right one that
        # was revised was spoilt; of all five one each.
        revised_incorrect_to_correct_ratio=1 / 2,
        revised_correct_to_incorrect_ratio=1 / 1,
        gained_ratio=1 / 5,
        lost_ratio=1 / 5,
    )


def test_best_of_n_needs_groups_and_probabilities_and_shares_ties() -> None:
    assert metrics([Dialogue((True,), ("correct",), (0.9,))]).best_of_n_accuracy is None
    assert metrics([Dialogue((True,), ("correct",), (), (), "a")]).best_of_n_accuracy is None
    assert metrics([Dialogue((True,), ("correct",), (None,), (), "a")]).best_of_n_accuracy is None
    tied = [Dialogue((right,), ("correct",), (0.5,), (), "a") for right in (True, False, False)]
    assert metrics(tied).best_of_n_accuracy == pytest.approx(1 / 3)


def test_metrics_show_the_collapses_of_the_paper() -> None:
    """A verifier that always says the same shows in its recalls (section 5.7)."""
    truths = [True, False, True, False]
    always_wrong = [Dialogue((right,), ("wrong",)) for right in truths]
    counted = metrics(always_wrong)
    assert (counted.correct_recall, counted.wrong_recall) == (0.0, 1.0)
    always_correct = [Dialogue((right,), ("correct",)) for right in truths]
    counted = metrics(always_correct)
    assert (counted.correct_recall, counted.wrong_recall) == (1.0, 0.0)


def test_an_answer_changed_where_it_turned_right_though_it_looks_the_same() -> None:
    assert metrics([Dialogue((False, True), ("wrong",))]).answer_change_ratio == 1.0
    assert metrics([Dialogue((False, False), ("wrong",))]).answer_change_ratio == 0.0


def test_metrics_refuse_what_is_no_dialogue() -> None:
    with pytest.raises(ValueError, match="alternate"):
        metrics([Dialogue((), ())])
