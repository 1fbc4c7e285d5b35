"""Laws of the advantages: what must hold for any rewards and any faults."""

from __future__ import annotations

import math
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.algos.advantages import Scale, group_advantages
from assay.trainer.algos.faults import mask_faults

FAULT = math.nan
scales: st.SearchStrategy[Scale] = st.sampled_from(get_args(Scale))


@st.composite
def groups(draw: st.DrawFn) -> torch.Tensor:
    """P groups of G rewards in hundredths, some of them faults."""
    p, g = draw(st.integers(1, 4)), draw(st.integers(2, 6))
    reward = st.one_of(st.just(FAULT), st.integers(-300, 300).map(lambda n: n / 100))
    rows = draw(st.lists(st.lists(reward, min_size=g, max_size=g), min_size=p, max_size=p))
    return torch.tensor(rows, dtype=torch.float64)


@given(groups(), scales)
def test_they_sum_to_zero_and_faults_have_none(rewards_PG: torch.Tensor, scale: Scale) -> None:
    advantages_PG = group_advantages(rewards_PG, scale=scale)
    judged_PG = ~torch.isnan(rewards_PG)
    assert torch.isfinite(advantages_PG).all()
    assert (advantages_PG[~judged_PG] == 0).all()
    assert torch.allclose(
        advantages_PG.sum(dim=1), torch.zeros(len(rewards_PG), dtype=torch.float64), atol=1e-9
    )
    assert (advantages_PG[judged_PG.sum(dim=1) < 2] == 0).all()


@given(groups(), scales, st.integers(-500, 500))
def test_a_shift_of_all_rewards_changes_nothing(
    rewards_PG: torch.Tensor, scale: Scale, shift: int
) -> None:
    shifted = group_advantages(rewards_PG + shift / 100, scale=scale)
    assert torch.allclose(shifted, group_advantages(rewards_PG, scale=scale), atol=1e-6)


@given(groups(), scales, st.randoms(use_true_random=False))
def test_the_order_within_a_group_is_kept(
    rewards_PG: torch.Tensor, scale: Scale, chance: object
) -> None:
    order = list(range(rewards_PG.shape[1]))
    chance.shuffle(order)  # type: ignore[attr-defined]  # a random.Random, which the strategy does not say
    shuffled = group_advantages(rewards_PG[:, order], scale=scale)
    assert torch.allclose(shuffled, group_advantages(rewards_PG, scale=scale)[:, order], atol=1e-12)


@given(groups())
def test_a_faulted_sample_is_as_if_it_had_never_been(rewards_PG: torch.Tensor) -> None:
    for rewards_G, advantages_G in zip(rewards_PG, group_advantages(rewards_PG), strict=True):
        judged_G = ~torch.isnan(rewards_G)
        if judged_G.sum() >= 2:
            without = group_advantages(rewards_G[judged_G].unsqueeze(0))[0]
            assert torch.allclose(advantages_G[judged_G], without, atol=1e-12)


@given(groups())
def test_better_rewards_never_have_smaller_advantages(rewards_PG: torch.Tensor) -> None:
    for rewards_G, advantages_G in zip(rewards_PG, group_advantages(rewards_PG), strict=True):
        judged_G = ~torch.isnan(rewards_G)
        order = torch.argsort(rewards_G[judged_G])
        assert (torch.diff(advantages_G[judged_G][order]) >= 0).all()


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 5))
def test_masking_counts_the_judged_only(judged: list[bool], length: int) -> None:
    judged_B = torch.tensor(judged)
    mask_BT = torch.ones(len(judged), length, dtype=torch.long)
    batch = {"completion_mask": mask_BT, "advantages": torch.ones(len(judged))}
    masked = mask_faults(batch, judged_B)
    assert masked["num_items_in_batch"] == length * sum(judged)
    assert masked["row_scale"] * sum(judged) == pytest.approx(len(judged) if any(judged) else 0)
    assert (masked["tool_mask"][~judged_B] == 0).all()
    assert masked["completion_mask"] is mask_BT
    assert "tool_mask" not in batch
