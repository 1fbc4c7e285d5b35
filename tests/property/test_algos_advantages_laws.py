"""Laws of baselines, of whitening by key, and of the sigma filter."""

from __future__ import annotations

import math
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from algos_support import Batch, batches, close, law
from assay.trainer.algos.advantages import (
    Scale,
    group_advantages,
    rloo_advantages,
    standardise,
    within_sigmas,
)
from assay.trainer.algos.dense import dense_group_advantages

FAULT = math.nan
scales: st.SearchStrategy[Scale] = st.sampled_from(get_args(Scale))
SPOILS = st.sampled_from([math.nan, math.inf, -1e30])


@st.composite
def groups(draw: st.DrawFn) -> torch.Tensor:
    """P groups of G rewards in hundredths, some of them faults."""
    p, g = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    reward = st.one_of(st.just(FAULT), st.integers(-300, 300).map(lambda n: n / 100))
    rows = draw(st.lists(st.lists(reward, min_size=g, max_size=g), min_size=p, max_size=p))
    return torch.tensor(rows, dtype=torch.float64)


@law
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


@law
@given(groups(), scales, st.integers(-500, 500))
def test_a_shift_of_all_rewards_changes_nothing(
    rewards_PG: torch.Tensor, scale: Scale, shift: int
) -> None:
    shifted = group_advantages(rewards_PG + shift / 100, scale=scale)
    assert torch.allclose(shifted, group_advantages(rewards_PG, scale=scale), atol=1e-6)


@law
@given(groups(), scales, st.randoms(use_true_random=False))
def test_the_order_within_a_group_is_kept(
    rewards_PG: torch.Tensor, scale: Scale, chance: object
) -> None:
    order = list(range(rewards_PG.shape[1]))
    chance.shuffle(order)  # type: ignore[attr-defined]  # a random.Random, which the strategy does not say
    shuffled = group_advantages(rewards_PG[:, order], scale=scale)
    assert torch.allclose(shuffled, group_advantages(rewards_PG, scale=scale)[:, order], atol=1e-12)


@law
@given(groups())
def test_a_faulted_sample_is_as_if_it_had_never_been(rewards_PG: torch.Tensor) -> None:
    for rewards_G, advantages_G in zip(rewards_PG, group_advantages(rewards_PG), strict=True):
        judged_G = ~torch.isnan(rewards_G)
        if judged_G.sum() >= 2:
            without = group_advantages(rewards_G[judged_G].unsqueeze(0))[0]
            assert torch.allclose(advantages_G[judged_G], without, atol=1e-12)


@law
@given(groups())
def test_better_rewards_never_have_smaller_advantages(rewards_PG: torch.Tensor) -> None:
    for rewards_G, advantages_G in zip(rewards_PG, group_advantages(rewards_PG), strict=True):
        judged_G = ~torch.isnan(rewards_G)
        order = torch.argsort(rewards_G[judged_G])
        assert (torch.diff(advantages_G[judged_G][order]) >= 0).all()


@law
@given(groups())
def test_leave_one_out_is_the_group_s_mean_stretched(rewards_PG: torch.Tensor) -> None:
    judged_P1 = (~rewards_PG.isnan()).double().sum(dim=1, keepdim=True)
    stretch_P1 = judged_P1 / (judged_P1 - 1).clamp(min=1)
    expected = group_advantages(rewards_PG, scale="none") * stretch_P1
    assert close(rloo_advantages(rewards_PG), expected)


@law
@given(groups())
def test_leave_one_out_says_what_its_name_says(rewards_PG: torch.Tensor) -> None:
    for rewards_G, advantages_G in zip(rewards_PG, rloo_advantages(rewards_PG), strict=True):
        for place, reward in enumerate(rewards_G.tolist()):
            others = torch.cat([rewards_G[:place], rewards_G[place + 1 :]])
            others = others[~others.isnan()]
            alone = math.isnan(reward) or not len(others)
            expected = 0.0 if alone else reward - others.mean().item()
            assert advantages_G[place].item() == pytest.approx(expected, abs=1e-9)


@law
@given(groups(), st.integers(-500, 500))
def test_leave_one_out_sums_to_zero_and_knows_no_shift_and_no_faults(
    rewards_PG: torch.Tensor, shift: int
) -> None:
    advantages_PG = rloo_advantages(rewards_PG)
    assert torch.isfinite(advantages_PG).all()
    assert advantages_PG.sum(dim=1).abs().max() < 1e-9
    assert close(rloo_advantages(rewards_PG + shift / 100), advantages_PG, 1e-8)
    for rewards_G, own_G in zip(rewards_PG, advantages_PG, strict=True):
        judged_G = ~rewards_G.isnan()
        without = rloo_advantages(rewards_G[judged_G].unsqueeze(0))[0]
        assert close(own_G[judged_G], without, 1e-12)


@law
@given(batches(), st.data())
def test_whitening_gives_each_key_mean_zero_and_variance_one(
    batch: Batch, data: st.DataObject
) -> None:
    rows = len(batch.mask_BT)
    keys = data.draw(st.lists(st.integers(-2, 2), min_size=rows, max_size=rows))
    keys_BT = torch.tensor(keys).unsqueeze(1).expand(batch.mask_BT.shape)
    white_BT = standardise(batch.normal(1, 5.0) + 3, batch.mask_BT, keys_BT=keys_BT)
    assert (white_BT[~batch.mask_BT] == 0).all()
    for key in set(keys):
        own = white_BT[batch.mask_BT & (keys_BT == key)]
        if len(own) > 1:
            assert own.mean().abs() < 1e-6
            assert own.var().item() == pytest.approx(1, abs=1e-6)
        else:
            assert (own == 0).all()


@law
@given(batches(), st.floats(0.1, 9), st.floats(-9, 9))
def test_whitening_undoes_scale_and_shift(batch: Batch, scale: float, shift: float) -> None:
    a_BT = batch.normal(1)
    once = standardise(a_BT, batch.mask_BT, eps=0.0)
    assert close(standardise(scale * a_BT + shift, batch.mask_BT, eps=0.0), once, 1e-6)


@law
@given(batches(), SPOILS)
def test_masked_tokens_never_matter(batch: Batch, value: float) -> None:
    a_BT, keep_BT = batch.normal(1), batch.mask_BT
    spoiled = batch.spoiled(a_BT, value)
    roles_BT = torch.arange(keep_BT.shape[1]).expand(keep_BT.shape) % 2
    assert torch.equal(
        standardise(a_BT, keep_BT, keys_BT=roles_BT),
        standardise(spoiled, keep_BT, keys_BT=roles_BT),
    )
    assert torch.equal(within_sigmas(a_BT, keep_BT, 1.0), within_sigmas(spoiled, keep_BT, 1.0))
    groups_B = torch.zeros(len(keep_BT), dtype=torch.long)
    assert torch.equal(
        dense_group_advantages(a_BT, keep_BT, groups_B),
        dense_group_advantages(spoiled, keep_BT, groups_B),
    )


@law
@given(batches(), st.floats(0.3, 4))
def test_the_sigma_filter_takes_the_far_ones_only(batch: Batch, sigmas: float) -> None:
    a_BT, keep_BT = batch.normal(1), batch.mask_BT
    kept_BT = within_sigmas(a_BT, keep_BT, sigmas)
    own = a_BT[keep_BT]
    if len(own) < 2:
        assert close(kept_BT, torch.where(keep_BT, a_BT, 0.0))
        return
    far_BT = ((a_BT - own.mean()) / own.std()).abs() > sigmas
    assert close(kept_BT, torch.where(keep_BT & ~far_BT, a_BT, 0.0))


def test_equal_advantages_are_all_near() -> None:
    a_BT = torch.full((3, 7), 0.1)
    assert torch.equal(within_sigmas(a_BT, torch.ones(3, 7), 3.0), a_BT)


@law
@given(batches(max_rows=6), st.data())
def test_step_advantages_are_sums_of_what_comes_and_faults_leave_no_trace(
    batch: Batch, data: st.DataObject
) -> None:
    r_BT, steps_BT = batch.normal(1), batch.mask_BT
    rows = len(r_BT)
    group = st.lists(st.integers(0, 2), min_size=rows, max_size=rows)
    groups_B = torch.tensor(data.draw(group))
    advantages_BT = dense_group_advantages(r_BT, steps_BT, groups_B)
    drops_BT = advantages_BT - torch.nn.functional.pad(advantages_BT[:, 1:], (0, 1))
    assert drops_BT[~steps_BT].abs().sum() < 1e-9
    for number in groups_B.unique():
        own = drops_BT[groups_B == number][steps_BT[groups_B == number]]
        assert abs(own.sum().item()) < 1e-6
    fault_BT = torch.cat([steps_BT, torch.zeros_like(steps_BT[:1])])
    with_fault = dense_group_advantages(
        torch.cat([r_BT, r_BT[:1] * FAULT]), fault_BT, torch.cat([groups_B, groups_B[:1]])
    )
    assert torch.equal(with_fault[:-1], advantages_BT)
    assert (with_fault[-1] == 0).all()
