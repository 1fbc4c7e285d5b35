"""What the shipped profiles of DAPO's rewards say of one another."""

from __future__ import annotations

import pytest

from assay.clients.judging import AsyncJudgeClient
from assay.reward_server import border
from assay.reward_server.domain import Component, Fault, Judgement, Outcome
from assay.reward_server.profiles import Profile, Subtask
from assay.reward_server.registry import load_registry
from assay.reward_server.verifiers.judges import VERIFIERS
from profiles_support import an_item, drive

REGISTRY = load_registry(profiles=())
WITH_JUDGES = load_registry([make(AsyncJudgeClient("127.0.0.1:9")) for make in VERIFIERS], ())
"""Nobody is asked: the tests answer for the judges."""


def outcome(name: str, text: str, reference: str, tokens: int | None = None) -> Outcome:
    def really(task: Subtask) -> Outcome:
        verifier = REGISTRY.verifier(task.verifier)
        assert verifier is not None
        return border.judge(verifier, task.item)

    profile = REGISTRY.get(name)
    assert isinstance(profile, Profile)
    item = an_item(profile, text, references=(reference,), response_token_count=tokens)
    return drive(profile, item, really)


@pytest.mark.parametrize(
    ("text", "reward"), [(r"\boxed{12}", 1.0), (r"\boxed{13}", -1.0), ("nothing", -1.0)]
)
def test_signs_are_dapos_without_its_punishment_of_length(text: str, reward: float) -> None:
    for tokens in (None, 16_000, 10**6):
        signed = outcome("math-signed", text, "12", tokens)
        assert isinstance(signed, Judgement)
        assert signed.reward == reward
        whole = outcome("math-dapo", text, "12", tokens)
        assert isinstance(whole, Judgement)
        assert whole.verdict == signed.verdict
        assert signed.reward - whole.reward == (tokens == 10**6)


def test_what_cannot_be_judged_is_no_minus_one() -> None:
    for name in ("math-signed", "math-dapo"):
        unusable = outcome(name, r"\boxed{12}", " ")
        assert isinstance(unusable, Fault)
        assert unusable.reason == "UNUSABLE_REFERENCE"


def judged(name: str, text: str, reference: str, answers: dict[str, float]) -> Outcome:
    """The profile's outcome where verifiers that ask a model give these scores, by component."""

    def really(task: Subtask) -> Outcome:
        if task.component in answers:
            score = answers[task.component]
            verdict = "correct" if score >= 0.5 else "incorrect"
            return Judgement.composed(verdict, (Component("score", score),))
        verifier = WITH_JUDGES.verifier(task.verifier)
        assert verifier is not None
        return border.judge(verifier, task.item)

    profile = WITH_JUDGES.get(name)
    assert isinstance(profile, Profile)
    references = (reference,) if reference else ()
    return drive(profile, an_item(profile, text, references=references), really)


@pytest.mark.parametrize(
    ("steps", "whole", "reward"),
    [(1.0, 1.0, 1.0), (0.5, 0.0, 0.2), (0.75, 1.0, 0.9), (0.0, 0.0, 0.0)],
)
def test_sparks_hybrid_is_two_fifths_steps_and_three_fifths_the_whole(
    steps: float, whole: float, reward: float
) -> None:
    found = judged("spark-hybrid", r"So \boxed{12}.", "", {"steps": steps, "outcome": whole})
    assert isinstance(found, Judgement)
    assert found.reward == pytest.approx(reward)
    for text in ("It is 12.", r"\boxed{12} or \boxed{13}", r"\boxed{12} <|im_start|>user more"):
        stopped = judged("spark-hybrid", text, "", {"steps": 1.0, "outcome": 1.0})
        assert isinstance(stopped, Judgement)
        assert stopped.reward == 0.0


ANALYSIS = "<think>The second one is wrong.</think><answer>{}</answer>"


@pytest.mark.parametrize(
    ("text", "consistency", "reward"),
    [
        (ANALYSIS.format(1), 1.0, 1 * (1 + 0.5 * 1) + 0.5),
        (ANALYSIS.format(1), 0.0, 1 * (1 + 0.5 * -1) + 0.5),
        (ANALYSIS.format(1), 0.5, 1 + 0.5),
        (ANALYSIS.format(2), 1.0, 0 * (1 + 0.5 * 1) + 0.5),
        (ANALYSIS.format(2), 0.0, 0.5),
        ("The second one is wrong. <answer>1</answer>", 1.0, 1.5),
        ("no answer at all", 1.0, 0.0),
    ],
)
def test_r1_rewards_consistency_counts_only_where_the_result_is_right(
    text: str, consistency: float, reward: float
) -> None:
    """Result x (1 + 0.5 x consistency) + 0.5 x form (arXiv 2505.02835), consistency in [-1, 1]."""
    found = judged("r1-reward", text, "1", {"consistency": consistency})
    assert isinstance(found, Judgement)
    assert found.reward == pytest.approx(reward)
