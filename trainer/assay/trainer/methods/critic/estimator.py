"""Generalised advantages of a critic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.methods.critic.settings import without_truncation
from assay.trainer.settings.method import Estimator
from assay.trainer.settings.part import Part, Switches

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def _without_critic(config: Config) -> Switches:
    """The group's mean replaces it; a KL in the reward needs a critic and goes to the loss."""
    switches: dict[str, object] = {
        "method.advantage.estimator": "group",
        **without_truncation(config),
    }
    if config.method.loss.kl_place == "reward":
        switches["method.loss.kl_place"] = "loss"
    return switches


def lines(config: Config) -> list[str]:
    """The sum of temporal differences."""
    advantage = config.method.advantage
    lines = [
        "A_t = sum over k >= 0 of (gamma * lambda)^k * delta_(t+k)",
        "delta_t = r_t + gamma * V_(t+1) - V_t, with r = R at the last token",
    ]
    lam = f"{advantage.lam:g}"
    if advantage.length_adaptive_alpha:
        lam = (
            f"1 - 1 / ({advantage.length_adaptive_alpha:g} * L) for a response of L tokens, at "
            f"least {advantage.min_lam:g}"
        )
    return [*lines, f"gamma = {advantage.gamma:g}, lambda = {lam}"]


GAE = Estimator(
    name="gae",
    credit="critic",
    lines=lines,
    part=Part(
        "critic",
        "critic",
        "A value function is the baseline, token by token, by generalised advantage estimation.",
        "PPO, arXiv 1707.06347, section 5; GAE, arXiv 1506.02438",
        lambda c: c.method.has_critic,
        _without_critic,
        code=("algos.gae.gae",),
        needs={"whole-batch": "the mean of its loss has a denominator of its own"},
        takes={
            "group-baseline": "a critic is the baseline",
            "own-zero": "a critic's value is taken out",
        },
    ),
)
