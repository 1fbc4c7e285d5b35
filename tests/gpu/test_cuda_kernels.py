"""What the trainer computes is on CUDA what it is on a CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from assay.trainer.algos import advantages, gae, kl
from assay.trainer.engines.drift import drift
from assay.trainer.engines.seeded import draw, uniform_rows

pytestmark = pytest.mark.gpu


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "settings", [{}, {"top_k": 40}, {"top_p": 0.9}, {"temperature": 0.6, "top_p": 0.95}]
)
def test_the_same_tokens_are_drawn(device: str, settings: dict[str, Any]) -> None:
    """But for numbers that lie between two roundings of a bound: at most 1 in 1,000."""
    logits_BV = 3 * normal(512, 8192)
    numbers_BT = uniform_rows(7, [(n, 0) for n in range(512)], 1)
    numbers_B = torch.from_numpy(numbers_BT[:, 0])
    full = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, **settings}
    here, logps_B = draw(logits_BV, numbers_B, **full)
    there, told_B = draw(logits_BV.to(device), numbers_B.to(device), **full)
    same_B = here == there.cpu()
    assert (~same_B).sum() <= 1
    torch.testing.assert_close(told_B.cpu()[same_B], logps_B[same_B], atol=1e-4, rtol=0)


def test_advantages_are_the_same(device: str) -> None:
    rewards_BT, values_BT = normal(8, 300), normal(8, 300, seed=1)
    mask_BT = torch.arange(300) < torch.arange(40, 300, 32)[:8, None]
    here = gae.decoupled_gae(
        rewards_BT, values_BT, mask_BT, gamma=1.0, lam_actor=0.95, lam_critic=1.0
    )
    there = gae.decoupled_gae(
        *(one.to(device) for one in (rewards_BT, values_BT, mask_BT)),
        gamma=1.0, lam_actor=0.95, lam_critic=1.0,
    )  # fmt: skip
    for one, other in zip(here, there, strict=True):
        torch.testing.assert_close(other.cpu(), one, atol=1e-4, rtol=1e-5)
    rewards_PG = normal(16, 8).round()
    torch.testing.assert_close(
        advantages.group_advantages(rewards_PG.to(device)).cpu(),
        advantages.group_advantages(rewards_PG),
        atol=1e-5, rtol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("estimator", [kl.kl_k1, kl.kl_k2, kl.kl_k3])
def test_divergences_are_the_same(device: str, estimator: Any) -> None:
    logps_BT, ref_BT = -normal(8, 300).abs(), -normal(8, 300, seed=1).abs()
    torch.testing.assert_close(
        estimator(logps_BT.to(device), ref_BT.to(device)).cpu(),
        estimator(logps_BT, ref_BT),
        atol=1e-5, rtol=1e-5,
    )  # fmt: skip


def test_drift_is_the_same(device: str) -> None:
    trainer_BT, sampler_BT = -normal(8, 300).abs(), -normal(8, 300, seed=1).abs()
    mask_BT = normal(8, 300, seed=2) > 0
    here = drift(trainer_BT, sampler_BT, mask_BT)
    there = drift(*(one.to(device) for one in (trainer_BT, sampler_BT, mask_BT)))
    assert there.tokens == here.tokens
    assert there.mean_abs == pytest.approx(here.mean_abs, rel=1e-6)
    assert there.kl == pytest.approx(here.kl, rel=1e-6)
