"""Settings of hints (GHPO, arXiv 2507.10628)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assay.clients.toml_config import STRICT
from assay.trainer.methods.hints.metrics import METRICS
from assay.trainer.methods.hints.parts import PARTS, lines
from assay.trainer.settings.kinds import PositiveShare
from assay.trainer.settings.method import Lines, Method

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class HintsConfig:
    """GHPO (arXiv 2507.10628): the beginning of the solution where nothing was right."""

    __pydantic_config__ = STRICT

    enabled: bool = False
    """Needs data.columns.solution. Goes with every `name`."""
    shares: Annotated[tuple[PositiveShare, ...], Field(min_length=1)] = (0.25, 0.5, 0.75)
    """Of the solution's words, that a problem shows the first time it is answered again in a step,
    the second..."""


def check(config: Config) -> str:
    """What does not go together, and what to do; empty where all does."""
    if config.method.hints.enabled and not config.data.columns.solution:
        return (
            "method.hints needs data.columns.solution: the column with worked solutions to "
            "show the beginning of"
        )
    return ""


METHOD = Method(
    name="hints",
    settings=HintsConfig,
    is_on=lambda c: c.method.hints.enabled,
    rank=30,
    hooks="assay.trainer.methods.hints.method:Hinting",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 31, lines),),
    check=check,
    compares="method.hints",
)
