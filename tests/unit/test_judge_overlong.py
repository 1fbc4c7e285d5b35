"""What does not fit, and who is to blame: the response, or what stands around it."""

from __future__ import annotations

from typing import Any

import pytest

from assay.clients.judging import AsyncJudgeClient, StepScore, StepScores
from assay.clients.types import Fault as ClientFault
from assay.reward_server.domain import Candidate, Message, Unjudgeable, VerifierItem
from assay.reward_server.verifiers.judges import asking
from assay.reward_server.verifiers.judges.steps import StepVerifier

VERIFIER = StepVerifier(AsyncJudgeClient("127.0.0.1:1"))
LONG_PROMPT = (Message("user", "Read this: " + "x " * 5_000),)
MANY = StepScores(tuple(StepScore(n, n + 1, 0.5) for n in range(1_201)), 0.5, passed=True)


def item(response: str, **parameters: Any) -> VerifierItem:
    complete = VERIFIER.spec.complete(parameters)
    return VerifierItem(Candidate(response), prompt=LONG_PROMPT, parameters=complete)


def test_too_many_steps_are_the_responses_doing_whatever_the_prompt() -> None:
    judgement = VERIFIER.answer(item("a\n" * 1_201), MANY)
    assert (judgement.reward, judgement.verdict) == (0.0, "overlong")
    with pytest.raises(Unjudgeable, match="step_rewards=none"):
        VERIFIER.answer(item("a\n" * 1_201, overflow="refuse"), MANY)


@pytest.mark.parametrize(
    ("others", "blamed"), [("0", True), ("2048", True), ("2049", False), ("", False), ("x", False)]
)
def test_it_is_the_responses_doing_where_all_else_leaves_half_the_room(
    others: str, blamed: bool
) -> None:
    facts = {"limit_tokens": "4096", "others_tokens": others}
    fault = ClientFault("CONTEXT_TOO_LONG", "too long", metadata=facts)
    short = "a response that is shorter than the prompt"
    assert asking.is_overlong(item(short), fault) is blamed
    assert not asking.is_overlong(item(short, overflow="refuse"), fault)
    assert asking.is_overlong(item("a" * 20_000)), "the longest text"


def test_the_share_of_critiques_is_a_component_that_earns_nothing() -> None:
    found = StepScores((StepScore(0, 1, 1.0),), 1.0, passed=True, verdict_mass=0.75)
    parts = {
        part.name: (part.score, part.weight)
        for part in VERIFIER.answer(item("a"), found).components
    }
    assert parts["verdict-mass"] == (0.75, 0.0)
