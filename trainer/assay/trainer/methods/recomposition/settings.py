"""Settings of RoRecomp (arXiv 2509.25958)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.trainer.settings.keeping import KeepingConfig, check_keeping
from assay.trainer.settings.kinds import BelowHalf, Positive, PositiveShare
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import above
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class RecompositionConfig(KeepingConfig):
    """RoRecomp (arXiv 2509.25958): short correct and long incorrect responses first.

    The paper's numbers were not at hand; these are ours.
    """

    share: PositiveShare = 0.5
    """Of a group's correct and of its other responses, the part that trains at once."""
    first: BelowHalf = 0.25
    """The share of the first batch that is remainders, in groups, rounded."""
    last: BelowHalf = 0.25
    """The same from step `steps` on; in between it follows half a cosine."""
    steps: Positive = 100


PARTS: tuple[Part, ...] = (
    Part(
        "recomposition", "sampling",
        "Short correct and long incorrect responses train at once, the others of their groups in a "
        "part of a later batch.",
        "RoRecomp, arXiv 2509.25958, after its abstract", *switch("method.recomposition.groups", 0),
        code=("methods.recomposition.recomposition.Recomposition",),
        takes={
            "fresh": "remainders of earlier steps train",
            "whole-groups": "a group is trained in pieces",
        },
        needs={
            "collector": "it keeps whole groups until their remainders train",
            "verdicts": "it tells right from wrong responses",
            "group-baseline": "advantages are those of the whole group",
        },
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """What trains now, and what later."""
    chosen = config.method.recomposition
    share = f"{chosen.first:.0%}"
    if chosen.last != chosen.first:
        share += f" to {chosen.last:.0%} of a batch, over {count(chosen.steps, 'step')},"
    else:
        share += " of a batch"
    return [
        (
            f"of each prompt the shortest {chosen.share:.0%} of the correct responses and the "
            f"longest {chosen.share:.0%} of the others train at once; {share} is the remainders "
            f"of earlier prompts, of which the latest {chosen.groups:,} wait"
        )
    ]


METRICS: tuple[Metric, ...] = metrics("sampling",
    ("compensation_groups", "groups",
     "Of the stale ones, those whose remainder trains (`method.recomposition`)."),
)  # fmt: skip

METHOD = TrainingMethod(
    name="recomposition",
    settings=RecompositionConfig,
    is_on=above("method.recomposition.groups", 0),
    rank=50,
    hooks="assay.trainer.methods.recomposition.recomposition:Recomposing",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 33, lines),),
    check=lambda config: check_keeping(config, "recomposition"),
    compares="method.recomposition",
)
