"""Settings of stepwise progress attribution (SPA-RL, arXiv 2505.20732)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from assay.trainer.settings.kinds import Positive, PositiveFloat, Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import only

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_ON = only("method.progress.enabled", True)


@dataclass(frozen=True, slots=True)
class ProgressConfig(Strict):
    """What a response earned, on its steps (SPA-RL, arXiv 2505.20732). The numbers are ours."""

    enabled: bool = False
    step_end: Annotated[str, _ON] = "\n"
    """A token with this text ends a step; empty: each token is one. An episode's are its turns."""
    memory: Annotated[Positive, _ON] = 1024
    """The estimate is fitted to so many of the latest judged responses."""
    ridge: Annotated[PositiveFloat, _ON] = 1.0
    """Weight of the squared coefficients beside the squared errors."""


PARTS: tuple[Part, ...] = (
    Part(
        "progress-attribution", "reward",
        "What a response earned is divided among its steps by their estimated progress, which sum "
        "to it.",
        "SPA-RL, arXiv 2505.20732; that sums are exact, and the fit, are derivations",
        *switch("method.progress.enabled", False),
        code=("algos.dense.contributions", "algos.dense.ridge"),
        needs={
            "critic": "steps earn token by token",
            "collector": "its memory is kept with the collector's state",
            "outcome-reward": "it divides what the whole earned",
        },
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """What a step earns."""
    progress = config.method.progress
    step = "turn" if config.method.episodes.on else f"step (to a token with {progress.step_end!r})"
    if not config.method.episodes.on and not progress.step_end:
        step = "token"
    return [
        (
            f"R lies on its steps, not on the last token: each {step} earns w * h + an equal part "
            "of what that sum lacks to R, h the policy's last hidden state at its end"
        ),
        (
            f"w: ridge regression of R on the sum of h, over the latest {progress.memory:,} judged "
            "responses before the step"
        ),
    ]


METRICS: tuple[Metric, ...] = metrics("reward",
    ("progress_error", "reward^2",
     ("Mean squared difference of what a response earned and its estimated progress, before the "
      "estimate learns of it (`method.progress`).")),
    ("progress_steps", "steps", "Steps of a judged response (`method.progress`)."),
)  # fmt: skip

METHOD = TrainingMethod(
    name="progress",
    settings=ProgressConfig,
    is_on=only("method.progress.enabled", True),
    rank=125,
    hooks="assay.trainer.methods.progress.method:Progress",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Reward", 45, lines),),
)
