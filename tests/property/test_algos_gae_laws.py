"""Laws of generalised advantage estimation and what the methods make of it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from algos_support import Batch, batches, close, law
from assay.trainer.algos.gae import (
    boundary_values,
    decoupled_gae,
    explained_variance,
    gae,
    length_adaptive_lambda,
)
from golden import reference

lambdas = st.sampled_from([0.0, 0.5, 0.95, 1.0])
gammas = st.sampled_from([0.5, 0.99, 1.0])


def run(batch: Batch, **settings_of: Any) -> torch.Tensor:
    return gae(batch.normal(1), batch.normal(2), batch.mask_BT, **settings_of)


def cut_short(
    r_BT: torch.Tensor, v_BT: torch.Tensor, keep_BT: torch.Tensor, *, lam: float, cut: bool = True
) -> torch.Tensor:
    """Advantages of responses none of which is finished, or all of which are."""
    cut_B = torch.full((len(keep_BT),), cut)
    after_B = boundary_values(v_BT, keep_BT, cut_B)
    return decoupled_gae(r_BT, v_BT, keep_BT, lam_actor=lam, bootstrap_B=after_B)[0]


def to_go(x_T: torch.Tensor) -> torch.Tensor:
    return x_T.flip(0).cumsum(0).flip(0)


@law
@given(batches(), lambdas, gammas, st.booleans())
def test_each_row_is_the_reference_s(
    batch: Batch, lam: float, gamma: float, bootstrapped: bool
) -> None:
    after_B = batch.normal(3)[:, 0] if bootstrapped else None
    got = run(batch, lam=lam, gamma=gamma, bootstrap_B=after_B)
    rows = zip(batch.normal(1), batch.normal(2), batch.mask_BT, strict=True)
    for number, (rewards, values, mask) in enumerate(rows):
        expected = reference.turn_independent_gae(
            rewards=rewards.tolist(), values=values.tolist(), mask=mask.tolist(), lam=lam,
            gamma=gamma, bootstrap=0.0 if after_B is None else after_B[number].item(),
        )  # fmt: skip
        assert got[number].tolist() == pytest.approx(expected, abs=1e-9)


@law
@given(batches(inner=False), gammas)
def test_lambda_zero_is_the_temporal_difference(batch: Batch, gamma: float) -> None:
    r_BT, v_BT, keep_BT = batch.normal(1), batch.normal(2), batch.mask_BT
    next_BT = torch.nn.functional.pad((v_BT * keep_BT)[:, 1:], (0, 1))
    expected = torch.where(keep_BT, r_BT + gamma * next_BT - v_BT, 0.0)
    assert close(gae(r_BT, v_BT, keep_BT, gamma=gamma, lam=0.0), expected)


@law
@given(batches(inner=False))
def test_lambda_one_is_the_return_less_the_value(batch: Batch) -> None:
    r_BT, v_BT, keep_BT = batch.normal(1), batch.normal(2), batch.mask_BT
    returns_BT = torch.stack([to_go(row) for row in r_BT * keep_BT])
    expected = torch.where(keep_BT, returns_BT - v_BT, 0.0)
    assert close(gae(r_BT, v_BT, keep_BT, lam=1.0), expected)


@law
@given(batches(), lambdas)
def test_a_monte_carlo_critic_s_targets_are_rewards_to_go_whatever_the_values(
    batch: Batch, lam: float
) -> None:
    r_BT, keep_BT = batch.normal(1), batch.mask_BT
    actor_BT, returns_BT = decoupled_gae(
        r_BT, batch.normal(2), keep_BT, lam_actor=lam, lam_critic=1.0
    )
    _, others_BT = decoupled_gae(r_BT, batch.normal(9), keep_BT, lam_actor=lam, lam_critic=1.0)
    assert close(returns_BT, others_BT)
    assert close(actor_BT, run(batch, lam=lam))
    for rewards_T, mask_T, returns_T in zip(r_BT, keep_BT, returns_BT, strict=True):
        for turn in turns_of(mask_T.tolist()):
            assert close(returns_T[turn], to_go(rewards_T[turn]))
        assert (returns_T[~mask_T] == 0).all()


def turns_of(mask: list[bool]) -> list[slice]:
    edges = [0, *(t for t in range(1, len(mask)) if mask[t] != mask[t - 1]), len(mask)]
    return [slice(a, b) for a, b in pairwise(edges) if mask[a]]


@law
@given(batches(), lambdas)
def test_a_perfect_critic_leaves_no_advantage(batch: Batch, lam: float) -> None:
    zeros = torch.zeros_like(batch.normal())
    _, returns_BT = decoupled_gae(batch.normal(1), zeros, batch.mask_BT, lam_critic=1.0)
    assert close(gae(batch.normal(1), returns_BT, batch.mask_BT, lam=lam), zeros)


@law
@given(batches(), lambdas, st.sampled_from([math.nan, math.inf, 1e30]))
def test_masked_tokens_never_matter(batch: Batch, lam: float, value: float) -> None:
    r_BT, v_BT, keep_BT = batch.normal(1), batch.normal(2), batch.mask_BT
    spoiled = [batch.spoiled(x, value) for x in (r_BT, v_BT)]
    both = decoupled_gae(r_BT, v_BT, keep_BT, lam_actor=lam)
    for one, other in zip(both, decoupled_gae(*spoiled, keep_BT, lam_actor=lam), strict=True):
        assert torch.equal(one, other)
        assert (one[~keep_BT] == 0).all()
    cut_BT = cut_short(r_BT, v_BT, keep_BT, lam=lam)
    assert torch.equal(cut_BT, cut_short(*spoiled, keep_BT, lam=lam))
    assert close(
        explained_variance(v_BT, r_BT, keep_BT).nan_to_num(7.0),
        explained_variance(*spoiled[::-1], keep_BT).nan_to_num(7.0),
    )


@law
@given(batches(inner=False, least=1), lambdas, st.integers(1, 20))
def test_padding_never_matters(batch: Batch, lam: float, more: int) -> None:
    padded = [torch.nn.functional.pad(x, (0, more)) for x in (batch.normal(1), batch.normal(2))]
    mask_BT = torch.nn.functional.pad(batch.mask_BT, (0, more))
    wide = gae(*padded, mask_BT, lam=lam)
    assert close(wide[:, : batch.mask_BT.shape[1]], run(batch, lam=lam))
    left = [torch.nn.functional.pad(x, (more, 0)) for x in (batch.normal(1), batch.normal(2))]
    left_mask = torch.nn.functional.pad(batch.mask_BT, (more, 0))
    assert close(gae(*left, left_mask, lam=lam)[:, more:], run(batch, lam=lam))


@law
@given(batches(), st.data())
def test_rows_do_not_know_of_one_another(batch: Batch, data: st.DataObject) -> None:
    rows = len(batch.mask_BT)
    lam_B = torch.tensor(data.draw(st.lists(st.floats(0, 1), min_size=rows, max_size=rows)))
    together = run(batch, lam=lam_B)
    for number in range(rows):
        one = slice(number, number + 1)
        alone = gae(
            batch.normal(1)[one], batch.normal(2)[one], batch.mask_BT[one],
            lam=float(lam_B[number]),
        )  # fmt: skip
        assert torch.equal(alone, together[one]) or close(alone, together[one], 1e-12)


@law
@given(batches(), lambdas, st.floats(-3, 3))
def test_they_are_linear_in_rewards_and_values(batch: Batch, lam: float, factor: float) -> None:
    scaled = gae(factor * batch.normal(1), factor * batch.normal(2), batch.mask_BT, lam=lam)
    assert close(scaled, factor * run(batch, lam=lam))


@law
@given(batches(inner=False, least=1), lambdas)
def test_the_last_token_of_a_cut_response_has_no_advantage(batch: Batch, lam: float) -> None:
    v_BT, keep_BT = batch.normal(2), batch.mask_BT
    rows = torch.arange(len(keep_BT))
    last_B = keep_BT.sum(dim=1) - 1
    zeros = torch.zeros_like(v_BT)
    cut = cut_short(zeros, v_BT, keep_BT, lam=lam)
    assert close(cut[rows, last_B], torch.zeros(len(rows), dtype=torch.float64))
    value_difference = torch.where(keep_BT, v_BT[rows, last_B].unsqueeze(1) - v_BT, 0.0)
    assert close(cut_short(zeros, v_BT, keep_BT, lam=1.0), value_difference)
    finished = cut_short(batch.normal(1), v_BT, keep_BT, lam=lam, cut=False)
    assert close(finished, run(batch, lam=lam))


@law
@given(st.integers(0, 10**6), st.floats(1e-3, 10), st.floats(0, 1))
def test_an_adaptive_lambda_is_within_its_bounds_and_grows(
    length: int, alpha: float, floor: float
) -> None:
    shorter, longer = length_adaptive_lambda(
        torch.tensor([length, length + 7]), alpha, floor=floor
    ).tolist()
    assert floor <= shorter <= longer <= 1
    if length and shorter > floor:
        assert 1 / (1 - shorter) == pytest.approx(alpha * length, rel=1e-6)


@law
@given(batches())
def test_explained_variance_is_one_for_the_returns_and_zero_for_their_mean(batch: Batch) -> None:
    r_BT, keep_BT = batch.normal(1), batch.mask_BT
    if keep_BT.sum() < 2:
        assert explained_variance(r_BT, r_BT, keep_BT).isnan()
        return
    assert explained_variance(r_BT, r_BT, keep_BT) == pytest.approx(1)
    mean_BT = torch.full_like(r_BT, r_BT[keep_BT].mean().item())
    assert explained_variance(mean_BT, r_BT, keep_BT) == pytest.approx(0, abs=1e-9)
    assert explained_variance(-r_BT, r_BT, keep_BT) == pytest.approx(-3)
    assert explained_variance(r_BT, mean_BT, keep_BT).isnan()


@law
@given(batches(), lambdas)
def test_they_come_back_in_the_precision_they_went_in(batch: Batch, lam: float) -> None:
    exact = run(batch, lam=lam)
    single = [x.float() for x in (batch.normal(1), batch.normal(2))]
    for mask in (batch.mask_BT, batch.mask_BT.long(), batch.mask_BT.float()):
        rough = gae(*single, mask, lam=lam)
        assert rough.dtype == torch.float32
        assert close(rough.double(), exact, 1e-5)


@law
@given(st.integers(1, 400), st.integers(0, 99))
def test_long_rows_are_a_plain_loop_s(length: int, seed: int) -> None:
    source = torch.Generator().manual_seed(seed)
    rewards, values = torch.randn(2, 1, length, generator=source, dtype=torch.float64)
    mask = torch.rand(1, length, generator=source) < 0.98
    expected = reference.turn_independent_gae(
        rewards=rewards[0].tolist(), values=values[0].tolist(), mask=mask[0].tolist(), lam=0.99
    )
    assert gae(rewards, values, mask, lam=0.99)[0].tolist() == pytest.approx(expected, abs=1e-8)


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one shape \(B, T\)"):
        gae(torch.zeros(1, 3), torch.zeros(1, 3), torch.ones(1, 2))
    with pytest.raises(ValueError, match=r"one shape \(B, T\)"):
        decoupled_gae(torch.zeros(3), torch.zeros(3), torch.ones(3))
