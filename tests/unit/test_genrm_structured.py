"""Judges whose texts are held to a form: what is asked again, what counts, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from assay.genrm.domain import (
    CandidatePair,
    CandidateResponse,
    CandidateSteps,
    ResolvedJudgeSettings,
    ResolvedStepSettings,
)
from assay.genrm.engines.base import (
    Answer,
    Choose,
    Chosen,
    Forms,
    ModelInfo,
    Request,
    TokenCounts,
    Write,
    Written,
)
from assay.genrm.engines.forms import critique_form, one_of
from assay.genrm.judges import judge_pair, judge_response
from assay.genrm.steps import score_steps
from assay.genrm.templates import load_templates
from genrm_judging_support import GENERATIVE, QUESTION, TOKENS, drive, refused, text_of

TEMPLATES = load_templates()
ITEM = CandidateResponse(QUESTION, "Two and two.\n\nThe answer is four.", ground_truth="4")
CRITIQUE = "Check 1: yes\nStep 1: correct\nCheck 2: yes\nStep 2: correct\nVerdict: correct"


def model(forms: Forms) -> ModelInfo:
    return replace(GENERATIVE, forms=forms)


def settings(template: str, **changed: Any) -> ResolvedJudgeSettings:
    return ResolvedJudgeSettings(template, **{"scoring": "votes", "votes": 4, **changed})


def rambling(mass: float, formed: str = " correct") -> Callable[[Request], Answer]:
    """A judge that rambles, and under a form says one thing, with some share of probability."""

    def answer(request: Request) -> Answer:
        assert isinstance(request, Write)
        if request.form is None:
            return Written("Well, let me see", "stop", TOKENS)
        return Written(formed, "stop", TOKENS, mass=mass)

    return answer


def test_votes_that_cannot_be_read_are_written_again_under_their_form() -> None:
    run = judge_response(ITEM, settings("correctness@2"), model("again"), TEMPLATES)
    judgement, rounds = drive(run, rambling(0.9))
    assert (judgement.score, judgement.unparsed_votes) == (1.0, 0)
    assert judgement.verdict_mass == 0.9
    first, second = rounds
    assert [request.form for request in first if isinstance(request, Write)] == [None] * 4
    assert second == tuple(
        replace(request, form=one_of((" correct", " wrong", " Correct", " Wrong")), stop=())
        for request in first
        if isinstance(request, Write)
    )
    assert judgement.usage.completion == 8 * TOKENS.completion, "both are paid for"


def test_another_spelling_is_the_same_verdict() -> None:
    run = judge_response(ITEM, settings("correctness@2"), model("again"), TEMPLATES)
    judgement, _ = drive(run, rambling(0.9, " Wrong"))
    assert judgement.score == 0.0


def test_only_what_cannot_be_read_is_written_again() -> None:
    def answer(request: Request) -> Answer:
        assert isinstance(request, Write)
        if request.form is None and request.seed % 2:
            return Written("wrong", "stop", TOKENS)
        return rambling(0.9)(request)

    run = judge_response(ITEM, settings("correctness@2"), model("again"), TEMPLATES)
    judgement, rounds = drive(run, answer)
    assert [len(asked) for asked in rounds] == [4, 2]
    assert judgement.score == 0.5


@pytest.mark.parametrize("template", ["correctness@2", "correctness-reasoned@1"])
def test_a_verdict_that_the_form_forced_is_none(template: str) -> None:
    said = " correct" if template == "correctness@2" else "correct</answer>"
    for forms in ("again", "always"):
        run = judge_response(ITEM, settings(template), model(forms), TEMPLATES)
        caught = refused(run, rambling(0.3, said))
        assert caught.reason == "JUDGE_UNPARSED", "below the floor it is no vote"
    run = judge_response(ITEM, settings(template, least_mass=0.2), model("again"), TEMPLATES)
    judgement, _ = drive(run, rambling(0.3, said))
    assert (judgement.score, judgement.verdict_mass) == (1.0, 0.3)


def test_always_is_from_the_start_and_never_is_never() -> None:
    run = judge_response(ITEM, settings("correctness@2"), model("always"), TEMPLATES)
    judgement, rounds = drive(run, rambling(0.8))
    assert [len(asked) for asked in rounds] == [4]
    assert judgement.verdict_mass == 0.8
    run = judge_response(ITEM, settings("correctness@2"), model("never"), TEMPLATES)
    assert refused(run, rambling(0.8)).reason == "JUDGE_UNPARSED"


def test_where_the_options_hold_too_little_votes_are_free() -> None:
    """low_mass = "votes": a form would hide that the model would say something else."""

    def answer(request: Request) -> Answer:
        if isinstance(request, Choose):
            return Chosen((-4.0, -5.0, -9.0, -9.0), TOKENS)
        assert isinstance(request, Write)
        assert request.form is None
        return Written("wrong", "stop", TOKENS)

    asked = settings("correctness@2", scoring="auto", low_mass="votes")
    judgement, rounds = drive(judge_response(ITEM, asked, model("always"), TEMPLATES), answer)
    assert judgement.score == 0.0
    assert [len(some) for some in rounds] == [1, 4]


def test_a_verdict_behind_reasons_that_gave_none_is_asked_for_under_a_form() -> None:
    def answer(request: Request) -> Answer:
        assert isinstance(request, Write)
        if request.form is None:
            said = ("It is 4.</think>\nI would say so.", "It is 4, and that is right.")
            return Written(said[request.seed % 2], "stop", TOKENS)
        assert request.form == one_of(("correct", "wrong"), end="</answer>")
        assert text_of(request.prompt).endswith("</think>\n<answer>")
        return Written("correct</answer>", "stop", TOKENS, mass=0.7)

    asked = settings("correctness-reasoned@1", votes=2)
    judgement, rounds = drive(judge_response(ITEM, asked, model("again"), TEMPLATES), answer)
    assert (judgement.score, judgement.unparsed_votes, judgement.verdict_mass) == (1.0, 0, 0.7)
    assert [len(some) for some in rounds] == [2, 2]


def test_critiques_are_written_again_and_their_share_is_told() -> None:
    run = judge_response(ITEM, settings("", scoring="consensus"), model("again"), TEMPLATES)
    judgement, rounds = drive(run, rambling(0.6, CRITIQUE))
    assert (judgement.score, judgement.verdict_mass) == (1.0, 0.6)
    assert [len(some) for some in rounds] == [4, 4]
    assert all(
        isinstance(request, Write) and request.form == critique_form(2) for request in rounds[1]
    )
    run = judge_response(ITEM, settings("", scoring="consensus"), model("again"), TEMPLATES)
    assert refused(run, rambling(0.4, CRITIQUE)).reason == "JUDGE_UNPARSED"


def test_a_refined_critique_is_held_too() -> None:
    asked = settings("", scoring="consensus", meta_critique=True, votes=2)
    run = judge_response(ITEM, asked, model("again"), TEMPLATES)
    judgement, rounds = drive(run, rambling(0.6, CRITIQUE))
    assert judgement.score == 1.0
    assert [len(some) for some in rounds] == [2, 2, 2, 2]


def test_steps_by_critiques_are_held_up_to_64_steps() -> None:
    lines = "one\ntwo"
    found, rounds = drive(
        score_steps(
            CandidateSteps(QUESTION, lines), ResolvedStepSettings(), model("again"), TEMPLATES
        ),
        rambling(0.6, CRITIQUE),
    )
    assert [step.score for step in found.steps] == [1.0, 1.0]
    assert len(rounds) == 2
    long = CandidateSteps(QUESTION, "\n".join(map(str, range(65))))
    run = score_steps(long, ResolvedStepSettings(), model("again"), TEMPLATES)
    assert refused(run, rambling(0.6)).reason == "JUDGE_UNPARSED"


def test_a_pair_by_votes_is_held_in_both_orders() -> None:
    def answer(request: Request) -> Answer:
        assert isinstance(request, Write)
        assert request.form == one_of((" A", " B"))
        return Written(" A", "stop", TokenCounts(1, 0, 1), mass=0.9)

    run = judge_pair(
        CandidatePair(QUESTION, "a", "b"),
        settings("preference@1", votes=2),
        model("always"),
        TEMPLATES,
    )
    judgement, rounds = drive(run, answer)
    assert (judgement.win_probability, judgement.order_gap) == (0.5, 1.0)
    assert judgement.verdict_mass == 0.9
    assert [len(some) for some in rounds] == [4]
