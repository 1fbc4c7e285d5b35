"""What the settings of methods that keep groups have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.trainer.settings.kinds import NonNegative, Strict

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class KeepingConfig(Strict):
    """Groups of earlier steps that train in later ones."""

    groups: NonNegative = 0
    """How many are kept, the latest; 0 switches the method off."""


def check_keeping(config: Config, name: str) -> str:
    """What was sampled under other weights needs its log-probabilities; empty where they are."""
    if not getattr(config.method, name).groups or config.rollout.tells_logps:
        return ""
    return (
        f"method.{name} needs the sampler's log-probabilities, and vLLM does not tell those of the "
        "policy with rollout.top_k or rollout.top_p; take these out"
    )
