"""What is minimised: `method.loss`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.methods.loss.parts import PARTS, lines, reward_lines
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.objective import LossConfig
from assay.trainer.settings.registry import engine_of

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    loss = config.method.loss
    if loss.kl_most and loss.kl_place == "reward" and not config.method.has_critic:
        return 'method.loss.kl_place = "reward" needs method.advantage.estimator = "gae"'
    kl = (loss.kl_place, loss.kl_gradient, loss.kl_estimator)
    if loss.kl_most and kl == ("loss", "plain", "k1"):
        return (
            'method.loss.kl_estimator = "k1" has no gradient in the mean with kl_gradient = '
            '"plain"; use "k2" or "k3", or kl_gradient = "weighted"'
        )
    if 0 < loss.dual_clip <= 1 or 0 < loss.pre_clip <= 1:
        return "method.loss.dual_clip and method.loss.pre_clip are above 1, or 0 for none"
    if loss.importance_correction == "decoupled" and (
        loss.ratio == "sequence" or loss.objective != "ppo" or loss.pre_clip
    ):
        return (
            'method.loss.importance_correction = "decoupled" is an objective of its own: it '
            'goes with ratio = "token", objective = "ppo" and pre_clip = 0'
        )
    return _check_correction(config)


def _check_correction(config: Config) -> str:
    loss, rollout = config.method.loss, config.rollout
    if loss.importance_correction == "none":
        return ""
    low, high = loss.importance_limits
    if low >= high:
        return (
            f"method.loss.importance_floor = {low:g} is not below method.loss.importance_cap = "
            f"{high:g}"
        )
    correction = f'method.loss.importance_correction = "{loss.importance_correction}"'
    engine = engine_of(rollout)
    if engine.logprobs == "none" or not rollout.tells_logps:
        filters = "" if engine.logprobs == "none" else " with rollout.top_p or rollout.top_k"
        return (
            f"{correction} goes by the sampler's log-probabilities, which rollout.backend = "
            f'"{engine.name}" does not tell{filters}; use "none", or another engine'
        )
    plain = rollout.temperature == 1 and rollout.top_p == 1 and not rollout.top_k
    if engine.logprobs == "raw" and not plain:
        return (
            f"{correction} goes by the probabilities that tokens were drawn with; rollout.backend "
            f'= "{engine.name}" gives those before temperature and filters: use '
            'rollout.temperature = 1 without top_p and top_k, or "none"'
        )
    return ""


METHOD = TrainingMethod(
    name="loss",
    settings=LossConfig,
    is_on=lambda _config: True,
    rank=220,
    parts=PARTS,
    lines=(Lines("Objective", 10, lines), Lines("Reward", 50, reward_lines)),
    check=check,
)
