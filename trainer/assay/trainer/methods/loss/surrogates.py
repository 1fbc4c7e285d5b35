"""The surrogates of a token: PPO's and CISPO's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.method import Loss
from assay.trainer.settings.part import Part, Switches

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def _bounds(config: Config) -> str:
    loss = config.method.loss
    return f"{max(0.0, 1 - loss.clip_low):g}, {1 + loss.clip_high:g}"


def _ppo(config: Config) -> str:
    loss = config.method.loss
    clipped = f"min(r * A, clip(r, {_bounds(config)}) * A)"
    if loss.dual_clip and loss.importance_correction != "decoupled":
        return f"max({clipped}, {loss.dual_clip:g} * A where A < 0)"
    return clipped


def _without_cispo(config: Config) -> Switches:
    """Where the range is open below, PPO's 0.2 closes it."""
    switches: dict[str, object] = {"method.loss.objective": "ppo"}
    if config.method.loss.clip_low >= 1:
        switches["method.loss.clip_low"] = 0.2
    return switches


PPO = Loss(
    name="ppo",
    formula=_ppo,
    function="assay.trainer.core.objective:ppo",
)
CISPO = Loss(
    name="cispo",
    formula=lambda c: f"stop-gradient(clip(r, {_bounds(c)})) * A * log pi",
    function="assay.trainer.core.objective:cispo",
    part=Part(
        "cispo",
        "loss",
        "The clipped ratio weighs the log-likelihood, so that no token loses its gradient.",
        "MiniMax-M1, arXiv 2506.13585, equations 4 and 5",
        lambda c: c.method.loss.objective == "cispo",
        _without_cispo,
        code=("algos.policy_losses.cispo_token_losses",),
    ),
)
