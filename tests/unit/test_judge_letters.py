"""Judges' verdicts that move with their letters: a fault, a verdict, or less of the reward."""

from __future__ import annotations

from typing import Any

import pytest

from assay.clients.judging import AsyncJudgeClient
from assay.reward_server.domain import (
    Fault,
    Judgement,
)
from assay.reward_server.verifiers.judges.pairwise import PairwiseVerifier
from assay.reward_server.verifiers.judges.pointwise import JudgeVerifier
from fake_genrm import FakeGenrm, judge, judged, make


@pytest.fixture
def genrm() -> FakeGenrm:
    return FakeGenrm()


@pytest.fixture
def client(genrm: FakeGenrm) -> AsyncJudgeClient:
    return AsyncJudgeClient(transport=genrm)


@pytest.mark.parametrize(("gap", "moves"), [(0.4, False), (0.6, True)])
async def test_a_verdict_that_moves_with_its_letters_is_held_back_as_the_profile_chooses(
    client: AsyncJudgeClient, genrm: FakeGenrm, gap: float, moves: bool
) -> None:
    genrm.letter_gap = gap
    verifier = JudgeVerifier(client)
    bound: dict[str, Any] = {"references": ("42",), "max_letter_gap": 0.5}
    strict, abstained, lowered, low, free = await judge(
        verifier,
        make(verifier, "42", **bound),
        make(verifier, "42", **bound, on_letter_gap="abstain", gap_reward=0.25),
        make(verifier, "42", **bound, on_letter_gap="lower", threshold=0.7),
        make(verifier, "43", **bound, on_letter_gap="lower"),
        make(verifier, "42", references=("42",)),
    )
    told = [request.settings for _, request in genrm.requests]
    assert [one.max_letter_gap for one in told if one.HasField("max_letter_gap")] == [0.5]
    if not moves:
        assert [judged(one) for one in (strict, abstained, lowered, low, free)] == [
            *[(0.9, "correct")] * 3,
            (0.2, "incorrect"),
            (0.9, "correct"),
        ]
        return
    assert isinstance(strict, Fault)
    assert (strict.reason, strict.metadata["letter_gap"]) == ("LETTER_GAP", "0.6")
    assert judged(abstained) == (0.25, "abstained")
    assert judged(lowered) == (pytest.approx(0.6), "incorrect")
    assert judged(low) == (0.0, "incorrect")
    assert judged(free) == (0.9, "correct")
    assert isinstance(lowered, Judgement)
    parts = {part.name: (part.score, part.weight) for part in lowered.components}
    assert parts["letter-gap"] == (0.6, 0.0)
    assert parts["letter-gap-penalty"] == (pytest.approx(-0.3), 1.0)


async def test_a_pair_that_moves_with_its_letters(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    genrm.letter_gap = 0.8
    verifier = PairwiseVerifier(client)
    bound: dict[str, Any] = {"anchor": "41", "max_letter_gap": 0.5}
    strict, abstained, lowered, placed = await judge(
        verifier,
        make(verifier, "42", **bound),
        make(verifier, "42", **bound, on_letter_gap="abstain"),
        make(verifier, "42", **bound, on_letter_gap="lower"),
        make(verifier, "42", **bound, max_order_gap=0.05, on_gap="abstain", on_letter_gap="lower"),
    )
    assert isinstance(strict, Fault)
    assert strict.reason == "LETTER_GAP"
    assert judged(abstained) == (0.5, "abstained")
    assert judged(lowered) == (pytest.approx(0.6), "better")
    assert judged(placed) == (0.5, "abstained")


async def test_a_bound_without_letters_is_no_judgement(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    verifier = JudgeVerifier(client)
    (found,) = await judge(
        verifier,
        make(verifier, "42", references=("42",), max_letter_gap=0.5, on_letter_gap="lower"),
    )
    assert isinstance(found, Fault)
    assert found.reason == "INVALID_PARAMETER"
    assert "no letter gap" in found.message


async def test_no_seed_is_told_unless_the_profile_names_one(
    client: AsyncJudgeClient, genrm: FakeGenrm
) -> None:
    """Letters that follow from a seed that everybody knows can be told ahead."""
    verifier = JudgeVerifier(client)
    await judge(
        verifier,
        make(verifier, "42", references=("42",)),
        make(verifier, "42", references=("42",), seed=7),
    )
    told = [request.settings for _, request in genrm.requests]
    assert [one.seed if one.HasField("seed") else None for one in told] == [None, 7]
