"""Advantages against hand-computed values, papers and TRL's own arithmetic."""

from __future__ import annotations

import math

import pytest
import torch

from assay.trainer.algos.advantages import TRL_EPS, Scale, group_advantages, rloo_advantages


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        # GRPO (arXiv 2402.03300), A = (r - mean) / (std + eps) with the unbiased std. Its eps of
        # 1e-6 is TRL's of 1e-4 for rewards a hundred times as large.
        ([1.0, 0.0, 1.0, 0.0], [0.866023904, -0.866023904, 0.866023904, -0.866023904]),
        (
            [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
            [
                -0.585538844,
                -0.585538844,
                1.463847109,
                -0.585538844,
                -0.585538844,
                1.463847109,
                -0.585538844,
            ],
        ),
    ],
)
def test_the_paper_s_formula(rewards: list[float], expected: list[float]) -> None:
    advantages = group_advantages(100 * torch.tensor([rewards]))
    assert advantages[0].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_without_faults_they_are_trl_s(scale: Scale) -> None:
    """TRL 1.16, GRPOTrainer._generate_and_score_completions, written out."""
    rewards_PG = torch.randn(6, 8, generator=torch.Generator().manual_seed(1))
    centred = rewards_PG - rewards_PG.mean(dim=1, keepdim=True)
    std = {"group": rewards_PG.std(dim=1, keepdim=True), "batch": rewards_PG.std()}.get(scale)
    expected = centred if std is None else centred / (std + TRL_EPS)
    assert torch.allclose(group_advantages(rewards_PG, scale=scale), expected, atol=1e-6)


def test_a_group_of_equal_rewards_has_none() -> None:
    assert group_advantages(torch.tensor([[0.1, 0.1, 0.1]])).abs().max() < 1e-9


def test_one_judged_sample_has_nothing_to_be_compared_with() -> None:
    assert group_advantages(torch.tensor([[1.0, math.nan, math.nan]])).tolist() == [[0.0, 0.0, 0.0]]


def test_wrong_shapes_and_names_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        group_advantages(torch.zeros(4))
    with pytest.raises(ValueError, match="shape"):
        rloo_advantages(torch.zeros(4))
    with pytest.raises(ValueError, match="unknown scale"):
        group_advantages(torch.zeros(1, 2), scale="other")  # type: ignore[arg-type]  # the point of the test
