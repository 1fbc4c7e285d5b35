"""Settings of advantages of segments (SPO, arXiv 2505.23564), and what they go with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assay.trainer.methods.segments.parts import METRICS, PARTS
from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.method import TrainingMethod
from assay.trainer.settings.reading import only

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class SegmentsConfig(Strict):
    """Where responses are cut, and how the states there are valued (SPO-chain).

    The numbers are those of the authors' repository.
    """

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.9
    """A token drawn with a probability below this is an unsure one."""
    unsure_per_segment: Annotated[int, Field(ge=1)] = 5
    """Unsure tokens in a segment: it begins at one, and ends before the next segment's."""
    continuations: Annotated[int, Field(ge=1)] = 9
    """Responses written from each cut to the end, and judged."""
    mask_sure: bool = True
    """Only unsure tokens are in the loss."""


def segments_problem(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    chosen = config.method.advantage
    if chosen.estimator == "segments" and (chosen.scale, chosen.difficulty) != ("none", "none"):
        return (
            'method.advantage.estimator = "segments" needs method.advantage.scale = "none" and '
            'difficulty = "none": a difference of values is not compared within a group'
        )
    return ""


METHOD = TrainingMethod(
    name="segments",
    settings=SegmentsConfig,
    is_on=only("method.advantage.estimator", "segments"),
    rank=130,
    hooks="assay.trainer.methods.segments.method:Segments",
    parts=PARTS,
    metrics=METRICS,
    check=segments_problem,
)
