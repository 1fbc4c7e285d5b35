"""Judges by tables: what they ask, what they make of it, and what they refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.clients.judging.types import Usage
from assay.genrm.domain import (
    CandidateGroup,
    CandidatePair,
    CandidateResponse,
    ResolvedJudgeSettings,
)
from assay.genrm.engines.base import Answer, Choose, Chosen, Rated, Request, Write, Written
from assay.genrm.judges import judge_group, judge_pair, judge_response
from assay.genrm.judges.numbers import sigmoid, vote_error
from assay.genrm.templates import load_templates
from assay.kit.faults import Unjudgeable
from genrm_judging_support import (
    EVEN,
    GENERATIVE,
    QUESTION,
    SCALAR,
    TOKENS,
    WRITER,
    choosing,
    drive,
    model,
    rating,
    refused,
    text_of,
    writing,
)

TEMPLATES = load_templates()
AUTO = ResolvedJudgeSettings()
PAIR = CandidatePair(QUESTION, "four", "five")
ALONE = CandidateResponse(QUESTION, "four")


def by_place(first: float, second: float) -> Callable[[Request], Answer]:
    """A judge that goes by the place alone: logits of A and B."""
    return choosing(lambda text: (first, second))


# --- pairs ---


def test_pure_position_bias_is_parity_with_a_gap() -> None:
    """Papers 6.2: logits (2, 0) in both orders give 0.5, and a gap of 0.76."""
    judgement, rounds = drive(judge_pair(PAIR, AUTO, GENERATIVE, TEMPLATES), by_place(2, 0))
    assert judgement.win_probability == pytest.approx(0.5, abs=1e-15)
    assert judgement.order_gap == pytest.approx(0.7615941559557649)
    assert (judgement.forward, judgement.judge.template) == (
        pytest.approx(sigmoid(2)),
        "preference@2",
    )
    assert [len(asked) for asked in rounds] == [4]
    assert judgement.usage == Usage(40, 16, 8)
    assert judgement.standard_error is None


@pytest.mark.parametrize(
    ("forward", "reverse", "win", "gap"),
    [
        ((0.0679, 0.0275), (-1.4292, 0.9391), 0.7122382430480751, 0.40427923311712677),
        ((0.2882, 1.5642), (0.2692, 0.5258), 0.39101609744058835, 0.3455684322821961),
    ],
)
def test_both_orders_by_the_golden_numbers(
    forward: tuple[float, float], reverse: tuple[float, float], win: float, gap: float
) -> None:
    def logits(text: str) -> tuple[float, ...]:
        return forward if text.index("four") < text.index("five") else reverse

    judgement, _ = drive(judge_pair(PAIR, AUTO, GENERATIVE, TEMPLATES), choosing(logits))
    assert judgement.win_probability == pytest.approx(win, abs=1e-12)
    assert judgement.order_gap == pytest.approx(gap, abs=1e-12)


def test_all_golden_pairs(repository: Path) -> None:
    path = repository.parent / "shared" / "design" / "golden.json"
    if not path.exists():
        pytest.skip("golden.json is absent")
    document = json.loads(path.read_text())
    cases = document["cases"] if isinstance(document, dict) else document
    cases = [case for case in cases if case["function"] == "debiased_win_probability"]
    assert cases
    for case in cases:
        z = case["inputs"]
        test_both_orders_by_the_golden_numbers(
            (z["logit_a_forward"], z["logit_b_forward"]),
            (z["logit_a_reverse"], z["logit_b_reverse"]),
            *case["expected"],
        )


def test_a_gap_beyond_the_allowed_is_a_fault_with_both_orders() -> None:
    fault = refused(judge_pair(PAIR, AUTO, GENERATIVE, TEMPLATES, 0.5), by_place(2, 0))
    assert fault.reason == "ORDER_GAP"
    assert float(fault.metadata["order_gap"]) == pytest.approx(0.7615941559557649)
    assert set(fault.metadata) == {"order_gap", "forward_probability", "reverse_probability"}
    drive(judge_pair(PAIR, AUTO, GENERATIVE, TEMPLATES, 0.77), by_place(2, 0))


def test_a_scalar_head_on_a_pair() -> None:
    answer = rating({"four": 2.0, "five": 0.5}.__getitem__)
    judgement, rounds = drive(judge_pair(PAIR, AUTO, SCALAR, TEMPLATES, 0.0), answer)
    assert judgement.win_probability == pytest.approx(sigmoid(1.5), abs=1e-15)
    assert (judgement.order_gap, judgement.judge.template, len(rounds[0])) == (0.0, "", 2)
    message = rounds[0][0].prompt.messages
    assert [(one.role, one.pieces[0].trusted) for one in message] == [
        ("user", False),
        ("assistant", False),
    ]


def test_votes_of_both_orders() -> None:
    settings = ResolvedJudgeSettings("preference@1", "votes", votes=4, seed=7)

    def says(request: Write) -> str:
        first = text_of(request.prompt)
        better = "A" if first.index("four") < first.index("five") else "B"
        return {7: "?!", 8: " A"}.get(request.seed, f" {better}.")

    judgement, rounds = drive(judge_pair(PAIR, settings, WRITER, TEMPLATES), writing(says))
    assert [request.seed for request in rounds[0]] == [*range(7, 15)]
    assert judgement.unparsed_votes == 1
    assert sorted((judgement.forward, judgement.reverse)) == pytest.approx([2 / 3, 1.0])
    assert judgement.standard_error is not None
    assert judgement.win_probability == pytest.approx(5 / 6)


def test_a_reasoned_pair_by_votes_keeps_both_reasons() -> None:
    settings = ResolvedJudgeSettings("preference-reasoned@1", "votes", votes=1)
    answer = writing(lambda request: "one is right</think>\n<answer>1</answer>")
    judgement, rounds = drive(judge_pair(PAIR, settings, WRITER, TEMPLATES), answer)
    assert (judgement.win_probability, judgement.order_gap) == (0.5, 1.0)
    assert judgement.rationale == "one is right\n\none is right"
    request = rounds[0][0]
    assert isinstance(request, Write)
    assert (request.max_tokens, request.stop, request.prompt.prefill) == (2048, (), "<think>")


def test_a_reasoned_pair_by_probability_asks_after_the_reasons() -> None:
    settings = ResolvedJudgeSettings("preference-reasoned@1", votes=2)

    def answer(request: Request) -> Answer:
        if isinstance(request, Write):
            return Written(f"reason {request.seed}</think> so <answer>9", "length", TOKENS)
        assert isinstance(request, Choose)
        assert request.options == ("1", "2")
        assert text_of(request.prompt).endswith("</think>\n<answer>")
        assert [piece.trusted for piece in request.prompt.lead] == [True, False, True]
        return Chosen((math.log(0.9), math.log(0.1)), TOKENS)

    judgement, rounds = drive(judge_pair(PAIR, settings, GENERATIVE, TEMPLATES), answer)
    assert [len(asked) for asked in rounds] == [4, 4]
    assert judgement.forward == pytest.approx(0.9)
    assert judgement.win_probability == pytest.approx(0.5)
    assert judgement.usage == Usage(80, 32, 16)


# --- single responses ---


@pytest.mark.parametrize(
    ("item", "template"),
    [
        (ALONE, "quality@3"),
        (CandidateResponse(QUESTION, "four", ground_truth="4"), "correctness@3"),
        (CandidateResponse(QUESTION, "four", rubric="is brief"), "rubric@1"),
        (CandidateResponse(QUESTION, "four", anchor="five"), "preference@2"),
    ],
)
def test_what_it_is_held_against_chooses_the_template(
    item: CandidateResponse, template: str
) -> None:
    judgement, rounds = drive(judge_response(item, AUTO, GENERATIVE, TEMPLATES), EVEN)
    assert (judgement.judge.template, judgement.score) == (template, pytest.approx(0.5))
    assert judgement.standard_error is None
    text = text_of(rounds[0][0].prompt)
    for reference in (item.ground_truth, item.rubric, item.anchor):
        assert reference is None or reference in text


def test_grades_are_weighed() -> None:
    item = CandidateResponse(QUESTION, "four", rubric="is brief")
    logits = choosing(lambda text: (0.0, 0.0, 0.0, 5.0, 5.0))
    judgement, _ = drive(judge_response(item, AUTO, GENERATIVE, TEMPLATES), logits)
    weights = [1, 1, 1, math.exp(5), math.exp(5)]
    grades = [0, 0.25, 0.5, 0.75, 1]
    mean = sum(w * g for w, g in zip(weights, grades, strict=True)) / sum(weights)
    assert judgement.score == pytest.approx(mean)


def test_votes_are_counted_and_the_unread_told() -> None:
    settings = ResolvedJudgeSettings("quality@2", "votes", votes=5, seed=3)
    said = {3: " yes", 4: "no.", 5: "Verdict: yes", 6: "I cannot say", 7: "yes"}
    answer = writing(lambda request: said[request.seed])
    judgement, rounds = drive(judge_response(ALONE, settings, GENERATIVE, TEMPLATES), answer)
    assert judgement.score == pytest.approx(3 / 4)
    assert [(vote.value, vote.text) for vote in judgement.votes] == [
        (1.0, " yes"),
        (0.0, "no."),
        (1.0, "Verdict: yes"),
        (1.0, "yes"),
    ]
    assert judgement.unparsed_votes == 1
    assert judgement.standard_error == pytest.approx(vote_error([1, 0, 1, 1]))
    assert rounds[0][0] == Write(rounds[0][0].prompt, 8, 1.0, seed=3, stop=("\n",))


def test_fewer_than_half_readable_votes_are_no_judgement() -> None:
    settings = ResolvedJudgeSettings("quality@2", "votes", votes=5)
    nonsense = "as an AI " * 400
    answer = writing(lambda request: "yes" if request.seed < 2 else nonsense)
    fault = refused(judge_response(ALONE, settings, GENERATIVE, TEMPLATES), answer)
    assert fault.reason == "JUDGE_UNPARSED"
    assert fault.metadata["raw_text"] == nonsense[:2000]
    assert "3 of the judge's 5 texts" in fault.message


def test_greedy_votes_would_be_equal_so_one_is_drawn() -> None:
    settings = ResolvedJudgeSettings("quality@2", "votes", votes=64, temperature=0.0)
    judgement, rounds = drive(
        judge_response(ALONE, settings, WRITER, TEMPLATES), writing(lambda request: "yes")
    )
    assert len(rounds[0]) == 1
    assert judgement.standard_error == pytest.approx(vote_error([1.0]))


def test_a_scalar_head_gives_its_logit() -> None:
    judgement, _ = drive(judge_response(ALONE, AUTO, SCALAR, TEMPLATES), rating(lambda text: -7.5))
    assert (judgement.score, judgement.judge.template, judgement.votes) == (-7.5, "", ())


def test_a_scalar_head_against_an_anchor() -> None:
    answer = rating({"four": 1.0, "five": 2.0}.__getitem__)
    item = CandidateResponse(QUESTION, "four", anchor="five")
    judgement, _ = drive(judge_response(item, AUTO, SCALAR, TEMPLATES), answer)
    assert judgement.score == pytest.approx(sigmoid(-1.0))


def test_p_correct_of_a_policy_that_verifies_itself() -> None:
    settings = ResolvedJudgeSettings("self-verification")
    answer = choosing(lambda text: (1.0, 0.0))
    judgement, rounds = drive(judge_response(ALONE, settings, GENERATIVE, TEMPLATES), answer)
    assert judgement.score == pytest.approx(sigmoid(1.0))
    assert text_of(rounds[0][0].prompt).endswith("The answer is")


def test_cutting_is_passed_on_and_told() -> None:
    def answer(request: Request) -> Answer:
        assert isinstance(request, Choose)
        assert request.keep_ends
        return Chosen((-1.0,) * len(request.options), TOKENS, cut=True)

    settings = ResolvedJudgeSettings(overflow="keep-ends")
    assert drive(judge_response(ALONE, settings, GENERATIVE, TEMPLATES), answer)[0].truncated
    assert drive(judge_pair(PAIR, settings, GENERATIVE, TEMPLATES), answer)[0].truncated


# --- consensus ---


def critique(*steps: bool, final: bool) -> str:
    word = {True: "correct", False: "wrong"}
    lines = [f"I looked.\nStep {k}: {word[right]}" for k, right in enumerate(steps, start=1)]
    return "\n".join([*lines, f"Verdict: {word[final]}"])


TWO_STEPS = CandidateResponse(QUESTION, "First.\n\nSecond.", ground_truth="4")


def test_the_majority_of_each_step_then_of_the_whole() -> None:
    settings = ResolvedJudgeSettings(scoring="consensus", votes=4)
    said = [
        critique(True, True, final=True),
        critique(True, False, final=False),
        critique(False, True, final=True),
        "no form at all",
    ]
    answer = writing(lambda request: said[request.seed])
    judgement, rounds = drive(judge_response(TWO_STEPS, settings, WRITER, TEMPLATES), answer)
    assert judgement.score == pytest.approx(2 / 3)
    assert [vote.value for vote in judgement.votes] == [1.0, 0.0, 1.0]
    assert (judgement.unparsed_votes, judgement.judge.template) == (1, "critique@1")
    assert judgement.rationale == said[0]
    text = text_of(rounds[0][0].prompt)
    assert "[Step 2 " in text
    assert "[Step 3 " not in text
    assert "[REFERENCE ANSWER " in text


def test_a_meta_critique_refines_before_it_counts() -> None:
    settings = ResolvedJudgeSettings(scoring="consensus", votes=3, meta_critique=True)
    good, bad = critique(True, True, final=True), critique(False, False, final=False)

    def says(request: Write) -> str:
        if "[CRITIQUE " in text_of(request.prompt):
            return good
        return "?" if request.seed == 1 else bad

    judgement, rounds = drive(judge_response(TWO_STEPS, settings, WRITER, TEMPLATES), writing(says))
    assert [len(asked) for asked in rounds] == [3, 2]
    assert (judgement.score, judgement.unparsed_votes) == (1.0, 1)
    assert judgement.usage == Usage(50, 20, 10)


def test_unreadable_critiques_are_no_judgement() -> None:
    settings = ResolvedJudgeSettings(scoring="consensus", votes=3)
    answer = writing(lambda request: critique(True, final=True))
    fault = refused(judge_response(TWO_STEPS, settings, WRITER, TEMPLATES), answer)
    assert (fault.reason, fault.metadata["raw_text"]) == (
        "JUDGE_UNPARSED",
        critique(True, final=True),
    )


# --- groups ---


def test_a_group_is_asked_about_at_once() -> None:
    item = CandidateGroup(QUESTION, ("a1", "b2", "c3"))
    order = "c3", "a1", "b2"

    def logits(text: str) -> tuple[float, ...]:
        shown = sorted((text.find(f"\n{name}\n"), name) for name in order)
        ranks = [order.index(name) for place, name in shown if place >= 0]
        return (9.0, 0.0) if ranks[0] < ranks[1] else (0.0, 9.0)

    ranking, rounds = drive(judge_group(item, AUTO, GENERATIVE, TEMPLATES), choosing(logits))
    assert [len(asked) for asked in rounds] == [12]
    assert [round(score, 3) for score in ranking.scores] == [0.5, 0.0, 1.0]
    assert ranking.order_gaps == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    assert ranking.letter_gaps == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    assert ranking.usage == Usage(120, 48, 24)


def test_a_group_by_a_scalar_head_rates_each_text_once() -> None:
    item = CandidateGroup(QUESTION, ("1", "2", "3"), anchor="0")
    ranking, rounds = drive(judge_group(item, AUTO, SCALAR, TEMPLATES), rating(float))
    assert len(rounds[0]) == 4
    assert ranking.scores == pytest.approx((sigmoid(1), sigmoid(2), sigmoid(3)))
    robin, rounds = drive(judge_group(item, AUTO, SCALAR, TEMPLATES, "round-robin"), rating(float))
    assert len(rounds[0]) == 3
    assert sum(robin.scores) == pytest.approx(1.5)


def test_comparisons_beyond_the_gap_do_not_count() -> None:
    item = CandidateGroup(QUESTION, ("a1", "b2", "c3"))

    def logits(text: str) -> tuple[float, ...]:
        if "\na1\n" in text and "\nb2\n" in text:
            return (9.0, 0.0)  # goes by the place
        return (0.0, 0.0)

    def ranked(gap: float) -> object:
        run = judge_group(item, AUTO, GENERATIVE, TEMPLATES, max_order_gap=gap)
        return drive(run, choosing(logits))[0].order_gaps

    assert ranked(0.5) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    assert ranked(1.0) == pytest.approx((0.4999, 0.4999, 0.0), abs=1e-3)
    run = judge_group(item, AUTO, GENERATIVE, TEMPLATES, "auto", max_order_gap=0.5)
    assert refused(run, by_place(9, 0)).reason == "ORDER_GAP"


# --- refusals ---


@pytest.mark.parametrize(
    ("item", "settings", "able", "reason", "message"),
    [
        (CandidateResponse(QUESTION, " \n"), AUTO, GENERATIVE, "MISSING_RESPONSE", "is empty"),
        (
            CandidateResponse(QUESTION, "x", anchor=""),
            AUTO,
            GENERATIVE,
            "MISSING_REFERENCE",
            "anchor",
        ),
        (
            CandidateResponse(QUESTION, "x", ground_truth=" "),
            AUTO,
            SCALAR,
            "MISSING_REFERENCE",
            "truth",
        ),
        (
            ALONE,
            ResolvedJudgeSettings("correctness"),
            GENERATIVE,
            "MISSING_REFERENCE",
            "needs a ground",
        ),
        (
            ALONE,
            ResolvedJudgeSettings("nobody"),
            GENERATIVE,
            "UNKNOWN_TEMPLATE",
            "'nobody' is not known",
        ),
        (
            ALONE,
            ResolvedJudgeSettings("preference"),
            GENERATIVE,
            "UNKNOWN_TEMPLATE",
            "pairwise template",
        ),
        (ALONE, AUTO, model("rate-steps"), "INVALID_PARAMETER", "cannot judge: it answers rate-"),
        (
            ALONE,
            ResolvedJudgeSettings(scoring="votes"),
            SCALAR,
            "INVALID_PARAMETER",
            "scored by votes",
        ),
        (
            ALONE,
            ResolvedJudgeSettings(scoring="scalar-head"),
            WRITER,
            "INVALID_PARAMETER",
            "'rate'",
        ),
        (ALONE, ResolvedJudgeSettings("quality"), SCALAR, "INVALID_PARAMETER", "reads no template"),
        (
            CandidateResponse(QUESTION, "x", ground_truth="4"),
            AUTO,
            SCALAR,
            "INVALID_PARAMETER",
            "reads no ground truth",
        ),
        (
            CandidateResponse(QUESTION, "x", anchor="y", rubric="z"),
            AUTO,
            GENERATIVE,
            "INVALID_PARAMETER",
            "leave out all but the anchor",
        ),
        (
            CandidateResponse(QUESTION, "x", anchor="y"),
            ResolvedJudgeSettings(scoring="consensus"),
            WRITER,
            "INVALID_PARAMETER",
            "leave out anchor and rubric",
        ),
        (
            CandidateResponse(QUESTION, "x", ground_truth="y"),
            ResolvedJudgeSettings("quality"),
            GENERATIVE,
            "INVALID_PARAMETER",
            "no place for a ground truth",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused_before_anything_is_asked(
    item: CandidateResponse,
    settings: ResolvedJudgeSettings,
    able: object,
    reason: str,
    message: str,
) -> None:
    with pytest.raises(Unjudgeable) as caught:
        next(judge_response(item, settings, able, TEMPLATES))
    assert caught.value.reason == reason
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("item", "ranking", "reason"),
    [
        (CandidateGroup(QUESTION, ()), "auto", "MISSING_RESPONSE"),
        (CandidateGroup(QUESTION, ("a", " ")), "auto", "MISSING_RESPONSE"),
        (CandidateGroup(QUESTION, ("a",)), "auto", "INVALID_PARAMETER"),
        (CandidateGroup(QUESTION, ("a",), "x"), "round-robin", "INVALID_PARAMETER"),
        (CandidateGroup(QUESTION, ("a", "b")), "anchor", "MISSING_REFERENCE"),
    ],
)
def test_groups_that_cannot_be_ranked(item: CandidateGroup, ranking: str, reason: str) -> None:
    assert refused(judge_group(item, AUTO, GENERATIVE, TEMPLATES, ranking)).reason == reason


def test_pairs_that_cannot_be_judged() -> None:
    blank = CandidatePair(QUESTION, "a", "\t")
    assert refused(judge_pair(blank, AUTO, GENERATIVE, TEMPLATES)).reason == "MISSING_RESPONSE"
    consensus = ResolvedJudgeSettings(scoring="consensus")
    fault = refused(judge_pair(PAIR, consensus, WRITER, TEMPLATES))
    assert (fault.reason, "single responses" in fault.message) == ("INVALID_PARAMETER", True)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_numbers_that_are_none_are_faults(bad: float) -> None:
    broken = refused(judge_response(ALONE, AUTO, SCALAR, TEMPLATES), rating(lambda text: bad))
    assert broken.reason == "SCORE_NOT_FINITE"
    nowhere = refused(
        judge_pair(PAIR, AUTO, GENERATIVE, TEMPLATES),
        lambda request: Chosen((-math.inf, -math.inf), TOKENS),
    )
    assert nowhere.reason == "SCORE_NOT_FINITE"
    mixed = refused(
        judge_pair(PAIR, AUTO, GENERATIVE, TEMPLATES), lambda request: Chosen((0.0, bad), TOKENS)
    )
    assert mixed.reason == "SCORE_NOT_FINITE"


def test_a_head_of_several_labels_is_no_scalar_reward_model() -> None:
    fault = refused(
        judge_response(ALONE, AUTO, SCALAR, TEMPLATES),
        lambda request: Rated((1.0, 2.0), TOKENS),
    )
    assert (fault.reason, "2 labels" in fault.message) == ("INVALID_PARAMETER", True)


def test_an_engine_that_answers_something_else_is_a_defect() -> None:
    with pytest.raises(TypeError, match="answered Rated, not Chosen"):
        drive(judge_response(ALONE, AUTO, GENERATIVE, TEMPLATES), lambda r: Rated((1.0,), TOKENS))
