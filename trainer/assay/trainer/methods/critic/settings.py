"""What values tokens: `method.critic`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.methods.critic.parts import PARTS, floor_lines, lines
from assay.trainer.settings.method import Lines, Method
from assay.trainer.settings.objective import CriticConfig

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def check(config: Config) -> str:
    """What does not go together, and what to do; empty where all does."""
    critic = config.method.critic
    if critic.value_min >= critic.value_max:
        return (
            f"method.critic.value_min = {critic.value_min:g} is not below value_max = "
            f"{critic.value_max:g}"
        )
    if critic.sharing == "trunk" and critic.pretrain_steps:
        return (
            'method.critic.pretrain_steps needs method.critic.sharing = "separate": a trunk that '
            "is shared cannot learn while the policy is frozen"
        )
    return ""


METHOD = Method(
    name="critic",
    settings=CriticConfig,
    is_on=lambda c: c.method.has_critic,
    rank=210,
    parts=PARTS,
    lines=(Lines("Critic", 10, lines), Lines("Critic", 30, floor_lines)),
    check=check,
)
