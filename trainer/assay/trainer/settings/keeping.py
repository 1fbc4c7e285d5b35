"""What methods that keep groups share."""

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
    """How many of the latest groups are kept; 0 switches the method off."""


def check_keeping(config: Config, name: str) -> str:
    """Why a method that is on cannot keep samples; empty where it can."""
    return needs_logps(config, name) if getattr(config.method, name).groups else ""


def needs_logps(config: Config, name: str) -> str:
    """Checks that kept samples have their sampler's log-probabilities; empty where they do."""
    if config.rollout.tells_logps:
        return ""
    return (
        f"method.{name} needs the sampler's log-probabilities, and vLLM does not give those of the "
        "policy with rollout.top_k or rollout.top_p; take these out"
    )
