"""What the shipped profiles of DAPO's rewards say of one another."""

from __future__ import annotations

import pytest

from assay.reward_server import border
from assay.reward_server.domain import Fault, Judgement, Outcome
from assay.reward_server.profiles import Profile, Subtask
from assay.reward_server.registry import load_registry
from profiles_support import an_item, drive

REGISTRY = load_registry(profiles=())


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
