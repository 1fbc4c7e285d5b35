"""Settings of RoRecomp (arXiv 2509.25958)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.clients.toml_config import STRICT
from assay.trainer.methods.recomposition.metrics import METRICS
from assay.trainer.methods.recomposition.parts import PARTS, lines
from assay.trainer.settings.kinds import BelowHalf, NonNegative, Positive, PositiveShare
from assay.trainer.settings.method import Lines, Method

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class RecompositionConfig:
    """RoRecomp (arXiv 2509.25958): short correct and long incorrect responses first.

    No number of the paper's was at hand; all are ours.
    """

    __pydantic_config__ = STRICT

    groups: NonNegative = 0
    """The latest groups whose remainders wait; 0 for no recomposition."""
    share: PositiveShare = 0.5
    """Of a group's correct and of its other responses, that train at once."""
    first: BelowHalf = 0.25
    """What part of the first batch is remainders of earlier steps, in groups, rounded."""
    last: BelowHalf = 0.25
    """The same from step `steps` on; between them it follows half a cosine."""
    steps: Positive = 100


def check(config: Config) -> str:
    """What does not go together, and what to do; empty where all does."""
    if config.method.recomposition.groups and not config.rollout.tells_logps:
        return (
            "method.recomposition needs no rollout.top_k and top_p with vLLM: it does not tell the "
            "policy's log-probabilities with them"
        )
    return ""


METHOD = Method(
    name="recomposition",
    settings=RecompositionConfig,
    is_on=lambda c: c.method.recomposition.groups > 0,
    rank=50,
    hooks="assay.trainer.methods.recomposition.method:Recomposing",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 33, lines),),
    check=check,
    compares="method.recomposition",
)
