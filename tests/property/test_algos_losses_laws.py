"""Laws of ratios, policy losses, their aggregation and what is added to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from algos_support import Batch, batches, close, gradient, law
from assay.trainer.algos.aggregation import (
    Aggregation,
    aggregate,
    row_count,
    token_count,
)
from assay.trainer.algos.auxiliary import positive_lm_loss, positive_mask
from assay.trainer.algos.kl import kl_token_losses
from assay.trainer.algos.policy_losses import (
    TokenLosses,
    cispo_token_losses,
    decoupled_ppo_token_losses,
    ppo_token_losses,
)
from assay.trainer.algos.ratios import (
    log_ratio,
    pre_clip_log_ratio,
    sequence_log_ratio,
    truncated_importance_weights,
)

MODES = get_args(Aggregation)
modes: st.SearchStrategy[Aggregation] = st.sampled_from(MODES)
clips = st.tuples(st.floats(0.01, 0.9), st.floats(0.01, 3.0))
Objective = Callable[[torch.Tensor, Batch], torch.Tensor]


def ppo(logps_BT: torch.Tensor, batch: Batch) -> torch.Tensor:
    ratio_BT = log_ratio(logps_BT, batch.logps(8))
    advantages_BT = batch.normal(9)
    return ppo_token_losses(
        ratio_BT, advantages_BT, clip_low=0.2, clip_high=0.28, dual_clip=3.0
    ).losses_BT


def gspo(logps_BT: torch.Tensor, batch: Batch) -> torch.Tensor:
    ratio_BT = sequence_log_ratio(log_ratio(logps_BT, batch.logps(8)), batch.mask_BT)
    advantages_BT = batch.normal(9)
    return ppo_token_losses(ratio_BT, advantages_BT, clip_low=0.2, clip_high=0.28).losses_BT


def cispo(logps_BT: torch.Tensor, batch: Batch) -> torch.Tensor:
    ratio_BT = log_ratio(logps_BT, batch.logps(8))
    return cispo_token_losses(
        logps_BT, ratio_BT, batch.normal(9), clip_low=0.5, clip_high=1.0
    ).losses_BT


def decoupled(logps_BT: torch.Tensor, batch: Batch) -> torch.Tensor:
    return decoupled_ppo_token_losses(
        logps_BT, batch.logps(8), batch.logps(7), batch.normal(9), clip_low=0.2, clip_high=0.2
    ).losses_BT


def kl3(logps_BT: torch.Tensor, batch: Batch) -> torch.Tensor:
    return kl_token_losses(logps_BT, batch.logps(8), "k3", log_ratio_BT=logps_BT - batch.logps(7))


OBJECTIVES: tuple[Objective, ...] = (ppo, gspo, cispo, decoupled, kl3)
objectives = st.sampled_from(OBJECTIVES)


@law
@given(batches(), modes, objectives, st.data())
def test_micro_batches_add_up_to_the_mini_batch_gradients_too(
    batch: Batch, mode: Aggregation, objective: Objective, data: st.DataObject
) -> None:
    rows = len(batch.mask_BT)
    order = torch.tensor(data.draw(st.permutations(range(rows))))
    cuts = sorted(data.draw(st.lists(st.integers(0, rows), max_size=3)))
    parts = [order[a:b] for a, b in zip([0, *cuts], [*cuts, rows], strict=True)]
    settings: dict[str, Any] = {"max_length": batch.mask_BT.shape[1]}

    def whole(logps_BT: torch.Tensor) -> torch.Tensor:
        return aggregate(objective(logps_BT, batch), batch.mask_BT, mode, **settings)

    def split(logps_BT: torch.Tensor) -> torch.Tensor:
        losses_BT = objective(logps_BT, batch)
        counts = {"tokens": token_count(batch.mask_BT), "rows": row_count(batch.mask_BT)}
        sums = [
            aggregate(losses_BT[part], batch.mask_BT[part], mode, **settings, **counts)
            for part in parts
        ]
        return torch.stack(sums).sum()

    logps_BT = batch.logps(1)
    assert close(split(logps_BT), whole(logps_BT))
    assert close(gradient(split, logps_BT), gradient(whole, logps_BT))


@law
@given(batches(), modes, objectives, st.sampled_from([-1e4, -80.0, 0.0]))
def test_masked_tokens_never_move_a_loss_nor_its_gradient(
    batch: Batch, mode: Aggregation, objective: Objective, value: float
) -> None:
    def loss(logps_BT: torch.Tensor) -> torch.Tensor:
        return aggregate(objective(logps_BT, batch), batch.mask_BT, mode, max_length=9)

    logps_BT = batch.logps(1)
    spoiled = batch.spoiled(logps_BT, value)
    assert torch.equal(loss(logps_BT), loss(spoiled))
    slope, spoiled_slope = gradient(loss, logps_BT), gradient(loss, spoiled)
    assert torch.equal(slope, spoiled_slope)
    assert (slope[~batch.mask_BT] == 0).all()


@law
@given(batches(), modes)
def test_masked_losses_may_be_anything(batch: Batch, mode: Aggregation) -> None:
    losses_BT = batch.normal(1)
    clean = aggregate(losses_BT, batch.mask_BT, mode, max_length=9)
    for value in (math.nan, math.inf):
        spoiled = batch.spoiled(losses_BT, value)
        assert torch.equal(aggregate(spoiled, batch.mask_BT, mode, max_length=9), clean)
    assert math.isfinite(clean)


@law
@given(batches(), modes, st.integers(1, 4))
def test_rows_without_tokens_are_no_rows(batch: Batch, mode: Aggregation, more: int) -> None:
    losses_BT, keep_BT = batch.normal(1), batch.mask_BT
    clean = aggregate(losses_BT, keep_BT, mode, max_length=9)
    wider = torch.cat([losses_BT, losses_BT[:1].expand(more, -1)])
    mask = torch.cat([keep_BT, torch.zeros_like(keep_BT[:1]).expand(more, -1)])
    assert close(aggregate(wider, mask, mode, max_length=9), clean)


@law
@given(batches(least=1), modes)
def test_a_mean_lies_between_the_least_and_the_largest(batch: Batch, mode: Aggregation) -> None:
    losses_BT, keep_BT = batch.normal(1), batch.mask_BT
    if mode in {"token-mean", "seq-mean-token-mean"}:
        mean = aggregate(losses_BT, keep_BT, mode)
        assert losses_BT[keep_BT].min() - 1e-9 <= mean <= losses_BT[keep_BT].max() + 1e-9
    full = aggregate(torch.ones_like(losses_BT), torch.ones_like(keep_BT), mode, max_length=1)
    assert full == (1 if "mean" in mode and "sum" not in mode else keep_BT.shape[1])


@law
@given(batches(), clips)
def test_where_the_ratio_is_one_ppo_is_the_policy_gradient(
    batch: Batch, clip: tuple[float, float]
) -> None:
    logps_BT, a_BT = batch.logps(1), batch.normal(2)

    def loss(x_BT: torch.Tensor) -> torch.Tensor:
        return ppo_token_losses(
            log_ratio(x_BT, logps_BT), a_BT, clip_low=clip[0], clip_high=clip[1], dual_clip=2.0
        ).losses_BT

    assert close(loss(logps_BT), -a_BT)
    assert close(gradient(loss, logps_BT), -a_BT)


@law
@given(batches(), clips)
def test_clipped_tokens_have_no_gradient_and_the_others_the_ratio_s(
    batch: Batch, clip: tuple[float, float]
) -> None:
    old_BT, a_BT = batch.logps(1), batch.normal(2)
    found: list[TokenLosses] = []

    def loss(x_BT: torch.Tensor) -> torch.Tensor:
        found.append(
            ppo_token_losses(log_ratio(x_BT, old_BT), a_BT, clip_low=clip[0], clip_high=clip[1])
        )
        return found[-1].losses_BT

    new_BT = batch.logps(3)
    slope_BT = gradient(loss, new_BT)
    clipped_BT = found[0].clipped_low_BT | found[0].clipped_high_BT
    assert not (found[0].clipped_low_BT & found[0].clipped_high_BT).any()
    expected = torch.where(clipped_BT, 0.0, -(new_BT - old_BT).exp() * a_BT)
    assert close(slope_BT, expected)


@law
@given(batches(), clips, st.floats(1.01, 3))
def test_wider_clips_never_raise_the_loss(
    batch: Batch, clip: tuple[float, float], wider: float
) -> None:
    ratio_BT, a_BT = batch.normal(1), batch.normal(2)
    low, high = clip
    narrow = ppo_token_losses(ratio_BT, a_BT, clip_low=low, clip_high=high)
    wide = ppo_token_losses(ratio_BT, a_BT, clip_low=low, clip_high=high * wider)
    assert (wide.losses_BT <= narrow.losses_BT + 1e-12).all()
    assert (wide.clipped_high_BT <= narrow.clipped_high_BT).all()
    assert (narrow.losses_BT >= -ratio_BT.exp() * a_BT - 1e-12).all()


@law
@given(batches(), st.floats(1.5, 20))
def test_the_dual_clip_bounds_the_loss_of_bad_tokens_only(batch: Batch, bound: float) -> None:
    ratio_BT, a_BT = batch.normal(1, 3.0), batch.normal(2)
    plain = ppo_token_losses(ratio_BT, a_BT, clip_low=0.2, clip_high=0.2)
    dual = ppo_token_losses(ratio_BT, a_BT, clip_low=0.2, clip_high=0.2, dual_clip=bound)
    bad_BT = a_BT < 0
    assert (dual.losses_BT[bad_BT] <= -bound * a_BT[bad_BT] + 1e-12).all()
    assert torch.equal(dual.losses_BT[~bad_BT], plain.losses_BT[~bad_BT])
    assert torch.equal(dual.dual_clipped_BT, bad_BT & (ratio_BT.exp() > bound))
    assert torch.equal(
        dual.losses_BT[~dual.dual_clipped_BT], plain.losses_BT[~dual.dual_clipped_BT]
    )
    assert not plain.dual_clipped_BT.any()


@law
@given(batches(), clips)
def test_cispo_s_gradient_is_the_clipped_ratio_times_the_policy_gradient(
    batch: Batch, clip: tuple[float, float]
) -> None:
    old_BT, a_BT, new_BT = batch.logps(1), batch.normal(2), batch.logps(3)

    def loss(x_BT: torch.Tensor) -> torch.Tensor:
        return cispo_token_losses(
            x_BT, log_ratio(x_BT, old_BT), a_BT, clip_low=clip[0], clip_high=clip[1]
        ).losses_BT

    weight_BT = (new_BT - old_BT).exp().clamp(1 - clip[0], 1 + clip[1])
    assert close(gradient(loss, new_BT), -weight_BT * a_BT)
    assert close(loss(new_BT), -weight_BT * a_BT * new_BT)


@law
@given(batches(), clips)
def test_decoupled_ppo_is_ppo_where_the_proximal_policy_sampled(
    batch: Batch, clip: tuple[float, float]
) -> None:
    new_BT, old_BT, a_BT = batch.logps(1), batch.logps(2), batch.normal(3)
    settings = {"clip_low": clip[0], "clip_high": clip[1]}
    both = decoupled_ppo_token_losses(new_BT, old_BT, old_BT, a_BT, **settings)
    assert close(
        both.losses_BT, ppo_token_losses(log_ratio(new_BT, old_BT), a_BT, **settings).losses_BT
    )
    capped = decoupled_ppo_token_losses(
        new_BT, old_BT, batch.logps(5), a_BT, **settings, cap=1e-300
    )
    assert capped.losses_BT.abs().max() < 1e-250


@law
@given(batches(), st.floats(0.1, 5))
def test_importance_weights_are_the_ratio_up_to_their_cap_and_fixed(
    batch: Batch, cap: float
) -> None:
    new_BT, old_BT = batch.logps(1).requires_grad_(True), batch.logps(2)
    weights_BT = truncated_importance_weights(new_BT, old_BT, cap=cap)
    assert not weights_BT.requires_grad
    assert close(weights_BT, (new_BT - old_BT).exp().detach().clamp(max=cap))


@law
@given(batches(), st.floats(0, 1e5))
def test_log_ratios_are_bounded(batch: Batch, far: float) -> None:
    logps_BT = batch.normal(1, far)
    ratio_BT = log_ratio(logps_BT, batch.logps(2))
    assert torch.isfinite(ratio_BT.exp()).all()
    assert ratio_BT.abs().max() <= 20
    clipped = pre_clip_log_ratio(ratio_BT, low=1e-3, high=1e3).exp()
    assert ((clipped >= 1e-3 - 1e-12) & (clipped <= 1e3 + 1e-6)).all()
    assert close(pre_clip_log_ratio(ratio_BT, low=1e-9, high=1e9), ratio_BT)


@law
@given(batches())
def test_a_row_has_one_sequence_ratio_the_mean_of_its_own_tokens(batch: Batch) -> None:
    ratio_BT, keep_BT = batch.normal(1), batch.mask_BT
    sequence_BT = sequence_log_ratio(ratio_BT, keep_BT)
    for own_T, mask_T, all_T in zip(ratio_BT, keep_BT, sequence_BT, strict=True):
        expected = own_T[mask_T].mean() if mask_T.any() else torch.zeros((), dtype=own_T.dtype)
        assert close(all_T, expected.expand(all_T.shape))
    spoiled_BT = sequence_log_ratio(batch.spoiled(ratio_BT, 1e9), keep_BT)
    assert close(spoiled_BT[keep_BT], sequence_BT[keep_BT])


@law
@given(batches(least=1), modes)
def test_the_token_form_of_the_sequence_ratio_has_the_plain_form_s_gradient(
    batch: Batch, mode: Aggregation
) -> None:
    """Where a row has one advantage: GSPO's objective, arXiv 2507.18071."""
    old_BT, keep_BT = batch.logps(2), batch.mask_BT
    a_B1 = batch.normal(3)[:, :1]
    settings = {"clip_low": 0.2, "clip_high": 0.3}

    def token_form(x_BT: torch.Tensor) -> torch.Tensor:
        ratio_BT = sequence_log_ratio(x_BT - old_BT, keep_BT)
        losses_BT = ppo_token_losses(ratio_BT, a_B1, **settings).losses_BT
        return aggregate(losses_BT, keep_BT, mode, max_length=9)

    def plain_form(x_BT: torch.Tensor) -> torch.Tensor:
        mean_B = ((x_BT - old_BT) * keep_BT).sum(dim=1) / keep_BT.sum(dim=1)
        ratio_BT = mean_B.unsqueeze(1).expand(x_BT.shape)
        losses_BT = ppo_token_losses(ratio_BT, a_B1, **settings).losses_BT
        return aggregate(losses_BT, keep_BT, mode, max_length=9)

    logps_BT = batch.logps(2) + batch.normal(4, 0.2)
    assert close(token_form(logps_BT), plain_form(logps_BT))
    assert close(gradient(token_form, logps_BT), gradient(plain_form, logps_BT))


@law
@given(batches(), st.data())
def test_the_positive_loss_is_of_correct_tokens_only_and_adds_up(
    batch: Batch, data: st.DataObject
) -> None:
    rows = len(batch.mask_BT)
    correct_B = torch.tensor(data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)))
    cut = data.draw(st.integers(0, rows))
    logps_BT, keep_BT = batch.logps(1), batch.mask_BT
    tokens = positive_mask(keep_BT, correct_B).sum()
    whole = positive_lm_loss(logps_BT, keep_BT, correct_B)
    parts = [
        positive_lm_loss(logps_BT[part], keep_BT[part], correct_B[part], tokens=tokens)
        for part in (slice(0, cut), slice(cut, None))
    ]
    assert close(parts[0] + parts[1], whole)
    own = logps_BT[keep_BT & correct_B.unsqueeze(1)]
    assert whole.item() == pytest.approx(-own.mean().item() if len(own) else 0.0)
    slope = gradient(lambda x: positive_lm_loss(x, keep_BT, correct_B), logps_BT)
    assert (slope[~correct_B] == 0).all()
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: one.__name__)
def test_gradients_are_those_of_finite_differences(objective: Objective) -> None:
    """Away from the corners of clipping, where there is none. CISPO's and GSPO's stop the gradient
    on purpose, so their laws are above."""
    batch = Batch(torch.tensor([[True, True, True], [True, True, False]]), 4)
    if objective in {cispo, gspo}:
        return
    logps_BT = batch.logps(1).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: objective(x, batch), (logps_BT,))


def test_unknown_modes_and_estimators_are_refused() -> None:
    ones = torch.ones(1, 1)
    with pytest.raises(ValueError, match="unknown mode 'mean'; known: token-mean, "):
        aggregate(ones, ones, "mean")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ValueError, match="needs max_length"):
        aggregate(ones, ones, "constant")
    with pytest.raises(ValueError, match="unknown estimator 'k4'; known: k1, k2, k3"):
        kl_token_losses(ones, ones, "k4")  # type: ignore[arg-type]  # the point of the test
