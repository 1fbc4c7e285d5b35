"""Settings of hints (GHPO, arXiv 2507.10628)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assay.trainer.settings.kinds import PositiveShare, Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import only

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class HintsConfig(Strict):
    """GHPO (arXiv 2507.10628): the beginning of the solution where nothing was right."""

    enabled: bool = False
    """Needs data.columns.solution. Goes with every `name`."""
    shares: Annotated[tuple[PositiveShare, ...], Field(min_length=1)] = (0.25, 0.5, 0.75)
    """Of the solution's words: shown at the first, second, ... repeat of a problem in a step."""


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    if config.method.hints.enabled and not config.data.columns.solution:
        return (
            "method.hints needs data.columns.solution: the column with worked solutions to "
            "show the beginning of"
        )
    return ""


PARTS: tuple[Part, ...] = (
    Part(
        "hints", "sampling",
        "A problem that nobody answered rightly is answered again in the step, with the beginning "
        "of its solution.",
        "GHPO, arXiv 2507.10628", *switch("method.hints.enabled", False),
        code=("methods.hints.hints.with_hint",),
        needs={
            "collector": "it has groups answered again within their step",
            "outcomes": "a problem that nobody solved is answered again with a hint",
            "verdicts": "it goes by right and wrong",
        },
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """What happens to unsolved problems."""
    shares = ", ".join(f"{share:.0%}" for share in config.method.hints.shares)
    return [
        (
            "a problem that nobody answered rightly is answered again in the step, with the first "
            f"{shares} of its solution in the prompt"
        )
    ]


METRICS: tuple[Metric, ...] = metrics("sampling",
    ("hinted_groups", "groups",
     ("Answered again with the beginning of the solution in the prompt, as nobody was right "
      "(`method.hints`); samples.jsonl has the level of each.")),
)  # fmt: skip

METHOD = TrainingMethod(
    name="hints",
    settings=HintsConfig,
    is_on=only("method.hints.enabled", True),
    rank=30,
    hooks="assay.trainer.methods.hints.hints:Hinting",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 31, lines),),
    check=check,
    compares="method.hints",
)
