"""The judge of synthetic preferences: what a score has and a chance of winning has not."""

from __future__ import annotations

import random

import pytest
from experiments.pairwise import contest as bench
from hypothesis import given
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2

SCORES = st.floats(-30, 30)


@given(SCORES, SCORES, SCORES)
def test_the_place_and_the_offset_cancel_in_a_chance_of_winning(
    one: float, two: float, offset: float
) -> None:
    assert bench.win(one, two) + bench.win(two, one) == pytest.approx(1)
    assert bench.win(one + offset, two + offset) == pytest.approx(bench.win(one, two), abs=1e-9)
    assert (bench.win(one, two) - 0.5) * (one - two) >= 0
    assert bench.win(one, one) == pytest.approx(0.5)


def test_a_letter_more_is_worth_nothing_and_one_less_costs() -> None:
    best = "j" * bench.LENGTH
    assert bench.quality(best) == bench.quality(f"{best}j") == 1
    assert bench.quality(f"{best}a") == 1
    assert bench.quality(best[1:]) == pytest.approx(1 - 1 / bench.LENGTH)
    assert bench.quality("") == bench.quality("a" * bench.LENGTH) == 0
    dice = random.Random(0)
    drawn = [bench.quality(bench.drawn(dice)[1]) for _ in range(4000)]
    assert sum(drawn) / 4000 == pytest.approx(0.5, abs=0.01)


async def judged(judge: bench.Preferences, prompt: str, response: str, anchor: str = "") -> float:
    item = reward_pb2.Item(id="0", response=response)
    item.prompt.add(role="user", content=prompt)
    if anchor:
        item.reference.anchor_response = anchor
    answer = await judge.batch_score(reward_pb2.BatchScoreRequest(items=[item]), timeout_s=1)
    return answer.results[0].judgement.reward


async def test_prompts_shift_scores_and_not_chances() -> None:
    judge, shared = bench.Preferences(4.0), bench.Preferences(4.0, whole=False)
    prompts = ("ABCD", "ABCE", "BBCD")
    scores = [await judged(judge, prompt, "jjjjjj") for prompt in prompts]
    assert len(set(scores)) == 3
    first, second, other = [await judged(shared, prompt, "jjjjjj") for prompt in prompts]
    assert first == second != other
    for prompt in prompts:
        assert await judged(bench.Preferences(0.0), prompt, "jjjjjj") == bench.SHARPNESS
        gain = await judged(judge, prompt, "jjjjjj") - await judged(judge, prompt, "aaaaaa")
        assert gain == pytest.approx(bench.SHARPNESS)
        wins = [await judged(one, prompt, "jjjjjj", "aaaaaa") for one in (judge, shared)]
        assert wins == pytest.approx([bench.win(bench.SHARPNESS, 0.0)] * 2)
