"""Laws of the KL estimators: their means, and the gradients they have in a loss.

Exact: over all tokens of a small vocabulary, weighed by their probabilities.
"""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from algos_support import law
from assay.trainer.algos.kl import Estimator, kl_k1, kl_k2, kl_k3, kl_token_losses
from assay.trainer.core import objective
from assay.trainer.settings.objective import LossConfig

V = 5
seeds = st.integers(0, 10_000)
Gradient = Literal["weighted", "plain"]
NAMES: tuple[Estimator, ...] = ("k1", "k2", "k3")


def policies(seed: int, spread: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of a policy and of another one."""
    source = torch.Generator().manual_seed(seed)
    logits_2V = spread * torch.randn(2, V, generator=source, dtype=torch.float64)
    return logits_2V[0], logits_2V[1]


def exact_kl(one_V: torch.Tensor, other_V: torch.Tensor) -> torch.Tensor:
    one, other = one_V.log_softmax(0), other_V.log_softmax(0)
    return (one.exp() * (one - other)).sum()


def slope(loss: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    (result,) = torch.autograd.grad(loss, at)
    return result


def expected_loss(
    logits_V: torch.Tensor, ref_V: torch.Tensor, name: Estimator, drawn_V: torch.Tensor
) -> torch.Tensor:
    """The mean of the estimate over tokens drawn from a policy that is fixed."""
    logps_V = logits_V.log_softmax(0)
    chances_V = drawn_V.softmax(0).detach()
    return (chances_V * kl_token_losses(logps_V, ref_V.log_softmax(0), name)).sum()


@law
@given(seeds, st.floats(0.1, 2))
def test_k1_and_k3_are_unbiased_and_k2_and_k3_are_never_negative(seed: int, spread: float) -> None:
    policy_V, ref_V = policies(seed, spread)
    p, q = policy_V.log_softmax(0), ref_V.log_softmax(0)
    kl = exact_kl(policy_V, ref_V).item()
    assert (p.exp() * kl_k1(p, q)).sum().item() == pytest.approx(kl, abs=1e-9)
    assert (p.exp() * kl_k3(p, q)).sum().item() == pytest.approx(kl, abs=1e-9)
    assert (kl_k2(p, q) >= 0).all()
    assert (kl_k3(p, q) >= 0).all()


@law
@given(seeds)
def test_k2_is_close_where_the_policies_are(seed: int) -> None:
    policy_V, ref_V = policies(seed)
    near_V = policy_V + 0.01 * ref_V
    p, q = policy_V.log_softmax(0), near_V.log_softmax(0)
    kl = exact_kl(policy_V, near_V).item()
    assert (p.exp() * kl_k2(p, q)).sum().item() == pytest.approx(kl, rel=0.05, abs=1e-9)


@law
@given(seeds)
def test_they_are_nothing_for_equal_policies(seed: int) -> None:
    logps_V = policies(seed)[0].log_softmax(0)
    for name in NAMES:
        assert (kl_token_losses(logps_V, logps_V, name) == 0).all()


@law
@given(seeds)
def test_what_each_descends_as_a_loss_on_its_own_tokens(seed: int) -> None:
    """k1: nothing; k2: KL(pi, ref); k3: KL(ref, pi). arXiv 2506.09477, arXiv 2510.01555."""
    policy_V, ref_V = policies(seed)
    policy_V.requires_grad_(True)
    reverse = slope(exact_kl(policy_V, ref_V), policy_V)
    forward = slope(exact_kl(ref_V, policy_V), policy_V)
    found = {
        name: slope(expected_loss(policy_V, ref_V, name, policy_V), policy_V) for name in NAMES
    }
    assert torch.allclose(found["k1"], torch.zeros(V, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(found["k2"], reverse, atol=1e-9)
    assert torch.allclose(found["k3"], forward, atol=1e-9)


@law
@given(seeds, st.sampled_from(NAMES))
def test_with_the_ratio_each_descends_the_kl_on_anyone_s_tokens(seed: int, name: Estimator) -> None:
    policy_V, ref_V = policies(seed)
    old_V, _ = policies(seed + 1)
    policy_V.requires_grad_(True)
    logps_V, old = policy_V.log_softmax(0), old_V.log_softmax(0)
    losses_V = kl_token_losses(logps_V, ref_V.log_softmax(0), name, log_ratio_BT=logps_V - old)
    kl = exact_kl(policy_V, ref_V)
    mean = (old.exp() * losses_V).sum()
    if name != "k2":
        assert mean.item() == pytest.approx(kl.item(), abs=1e-9)
    assert torch.allclose(slope(mean, policy_V), slope(kl, policy_V), atol=1e-9)


# How often each token was drawn, so that means over these 16 rows are exact expectations.
DRAWN = (5, 1, 2, 3, 5)


def kl_of_the_loss(
    logits_V: torch.Tensor, ref_V: torch.Tensor, name: Estimator, gradient: Gradient
) -> torch.Tensor:
    """The objective of tokens that were drawn as DRAWN says, with nothing in it but the KL."""
    tokens_B1 = torch.repeat_interleave(torch.arange(V), torch.tensor(DRAWN)).unsqueeze(1)
    sampler_V = torch.tensor(DRAWN, dtype=torch.float64).div(sum(DRAWN)).log()
    ones_B1 = torch.ones(tokens_B1.shape, dtype=torch.bool)
    batch = {
        "loss_mask": ones_B1,
        "advantages": torch.zeros(tokens_B1.shape, dtype=torch.float64),
        "correct": ones_B1[:, 0],
        "old_logps": sampler_V[tokens_B1],
        "ref_logps": ref_V.log_softmax(0)[tokens_B1],
        "sampler_logps": sampler_V[tokens_B1],
    }
    logps_B1 = logits_V.log_softmax(0)[tokens_B1]
    config = LossConfig(kl_coef=1.0, kl_estimator=name, kl_gradient=gradient)
    counts = objective.count(batch)
    return objective.policy_loss(
        logps_B1, torch.zeros_like(logps_B1), batch, config, counts, max_length=1
    ).loss


@law
@given(seeds, st.sampled_from(NAMES), st.sampled_from(("weighted", "plain")))
def test_the_loss_descends_what_kl_gradient_says(
    seed: int, name: Estimator, gradient: Gradient
) -> None:
    """On the policy's own tokens, where both have the same values; weighted also on others'."""
    policy_V, ref_V = policies(seed)
    own_V = torch.tensor(DRAWN, dtype=torch.float64).log().requires_grad_(True)
    policy_V.requires_grad_(True)
    for at_V in (own_V, policy_V) if gradient == "weighted" else (own_V,):
        reverse = slope(exact_kl(at_V, ref_V), at_V)
        forward = slope(exact_kl(ref_V, at_V), at_V)
        plain = {"k1": torch.zeros_like(reverse), "k2": reverse, "k3": forward}
        expected = reverse if gradient == "weighted" else plain[name]
        loss = kl_of_the_loss(at_V, ref_V, name, gradient)
        assert torch.allclose(slope(loss, at_V), expected, atol=1e-9)


def test_far_policies_stay_finite() -> None:
    far = torch.tensor([-1e4, -80.0, 0.0])
    for name in NAMES:
        assert torch.isfinite(kl_token_losses(far, far.flip(0), name)).all()
