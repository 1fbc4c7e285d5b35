"""Scores of self-verification with a model's P(correct)."""

from __future__ import annotations

import math

import pytest

from assay.clients.judging.self_verification import REVISE, VERIFY, Dialogue
from assay.clients.judging.types import Usage
from assay.genrm.domain import ChatMessage
from assay.genrm.engines.base import Answer, Choose, Chosen, Request, TokenCounts
from assay.genrm.self_verification import (
    DialogueItem,
    DialogueSettings,
    attempts_of,
    check_dialogue,
    score_dialogue,
    verification_prompt,
)
from assay.kit.faults import Unjudgeable
from genrm_judging_support import GENERATIVE, QUESTION, WRITER, drive

TURNS = ("So 5.", "Step 1 adds badly.\n\nThe answer is wrong.", "So 4.", "Sum it up: fine")
ITEM = DialogueItem(QUESTION, TURNS, "g")


def chances(*probabilities: float):
    """Answers the verifications in order."""
    left = list(probabilities)

    def answer(request: Request) -> Answer:
        assert isinstance(request, Choose)
        assert request.options == (" correct", " wrong")
        assert not request.keep_ends
        p = left.pop(0)
        pair = (math.log(p) if p else -math.inf, math.log(1 - p) if p < 1 else -math.inf)
        return Chosen(pair, TokenCounts(20, 8))

    return answer


def test_without_a_model_nothing_is_asked() -> None:
    scores, rounds = drive(
        score_dialogue(ITEM, DialogueSettings(shaping_weight=1.0), (False, True)), chances()
    )
    assert rounds == []
    assert [turn.reward for turn in scores.turns] == [0.0, 1.0, 2.0, 0.0]
    assert [turn.correct_probability for turn in scores.turns] == [None] * 4
    assert (scores.revision_due, scores.usage) == (False, Usage())
    assert scores.dialogue == Dialogue(
        (False, True), ("wrong", "unparsed"), (None, None), ("So5.", "So4."), "g"
    )


def test_all_verifications_are_asked_about_at_the_same_time() -> None:
    run = score_dialogue(ITEM, DialogueSettings(), (False, True), GENERATIVE)
    scores, rounds = drive(run, chances(0.25, 1.0))
    assert [len(asked) for asked in rounds] == [2]
    assert [turn.correct_probability for turn in scores.turns] == [None, 0.25, None, 1.0]
    assert scores.usage == Usage(40, 16, 0)
    assert scores.dialogue.correct_probabilities == (0.25, 1.0)


@pytest.mark.parametrize(
    ("turns", "parsing", "due"),
    [
        (("a", "The answer is wrong."), "strict", True),
        (("a", "The answer is correct."), "strict", False),
        (("a", "the answer is wrong"), "strict", False),
        (("a", "the answer is wrong"), "tolerant", True),
        (("a", "The answer is wrong.", "b"), "strict", False),
    ],
)
def test_says_whether_a_revision_is_due(turns: tuple[str, ...], parsing: str, due: bool) -> None:
    item = DialogueItem(QUESTION, turns)
    right = (True,) * len(attempts_of(item))
    scores, _ = drive(score_dialogue(item, DialogueSettings(parsing=parsing), right), chances())
    assert scores.revision_due is due


def test_a_single_attempt_asks_no_model() -> None:
    item = DialogueItem(QUESTION, ("a",))
    scores, rounds = drive(score_dialogue(item, DialogueSettings(), (True,), GENERATIVE), chances())
    assert rounds == []
    assert [turn.reward for turn in scores.turns] == [1.0]


def test_the_model_reads_the_dialogue_up_to_the_closing_sentence() -> None:
    prompt = verification_prompt((ChatMessage("system", "S"), *QUESTION), TURNS)
    assert [(message.role, message.text) for message in prompt.messages] == [
        ("system", "S"),
        ("user", QUESTION[0].content),
        ("assistant", "So 5."),
        ("user", VERIFY),
        ("assistant", TURNS[1]),
        ("user", REVISE),
        ("assistant", "So 4."),
        ("user", VERIFY),
    ]
    assert "".join(piece.text for piece in prompt.lead) == "Sum it up: fine"
    assert prompt.prefill == " The answer is"


def test_only_our_words_are_trusted() -> None:
    prompt = verification_prompt(QUESTION, TURNS)
    ours = [piece.text for one in prompt.messages for piece in one.pieces if piece.trusted]
    assert ours == [VERIFY, REVISE, VERIFY]
    assert not any(piece.trusted for piece in prompt.lead)


@pytest.mark.parametrize(
    ("said", "lead", "prefill"),
    [
        ("The answer is wrong.", "", "The answer is"),
        ("  The answer is wrong.", "", "The answer is"),
        ("No. The answer is wrong.", "No.", " The answer is"),
        ("No.\nThe answer is wrong.", "No.", "\nThe answer is"),
        ("No.\n \n\n\nThe answer is wrong.", "No.", "\n\nThe answer is"),
        ("Hm, so my solution is incorrect.", "Hm, so", " The answer is"),
        ("No verdict\n", "No verdict", "\nThe answer is"),
    ],
)
def test_the_closing_sentence_is_joined_as_it_stood(said: str, lead: str, prefill: str) -> None:
    prompt = verification_prompt(QUESTION, ("a", said))
    assert "".join(piece.text for piece in prompt.lead) == lead
    assert prompt.prefill == prefill


@pytest.mark.parametrize(
    ("turns", "right", "reason", "says"),
    [
        ((), (), "MISSING_RESPONSE", "no turn"),
        (("a",) * 33, (), "INVALID_PARAMETER", "33 turns"),
        (("a", "b", "c"), (True,), "INVALID_PARAMETER", "1 entries for 2 attempts"),
    ],
)
def test_refuses_what_is_no_dialogue(
    turns: tuple[str, ...], right: tuple[bool, ...], reason: str, says: str
) -> None:
    with pytest.raises(Unjudgeable, match=says) as caught:
        check_dialogue(DialogueItem(QUESTION, turns), right)
    assert caught.value.reason == reason


def test_refuses_to_score_without_the_truth_or_without_probabilities() -> None:
    with pytest.raises(Unjudgeable, match="must be known"):
        next(score_dialogue(ITEM, DialogueSettings(), ()))
    with pytest.raises(Unjudgeable, match="gives no probabilities") as caught:
        next(score_dialogue(ITEM, DialogueSettings(), (True, True), WRITER))
    assert caught.value.reason == "INVALID_PARAMETER"


@pytest.mark.parametrize("pair", [(-math.inf, -math.inf), (math.nan, -1.0)])
def test_a_model_that_gives_no_number_is_a_fault(pair: tuple[float, float]) -> None:
    run = score_dialogue(ITEM, DialogueSettings(), (True, True), GENERATIVE)
    with pytest.raises(Unjudgeable) as caught:
        drive(run, lambda request: Chosen(pair, TokenCounts(1)))
    assert caught.value.reason == "SCORE_NOT_FINITE"
