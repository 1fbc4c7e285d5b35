"""Settings of responses that begin with what their row holds (ReST-RL, arXiv 2508.19576)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.method import Lines, RowNeeds, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import other_than

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_KEY = "method.starts.column"


@dataclass(frozen=True, slots=True)
class StartsConfig(Strict):
    """Responses that begin with a text of their row; `assay starts` makes such rows.

    In training only.
    """

    column: str = ""
    """The text that a response begins with, in no loss; a row without one asks for a whole
    response. Empty: no response begins so."""


PARTS: tuple[Part, ...] = (
    Part(
        "partial-starts", "sampling",
        "A response begins with what its row holds of a good one, which is in no loss.",
        "ReST-RL, arXiv 2508.19576, and the authors' code", *switch(_KEY, ""),
        code=("methods.starts.method.Started", "algos.selection.exponential_weights"),
        needs={
            "one-turn": "what begins is one response",
            "first-tokens": "the first token is its row's",
        },
        takes={
            "pausing": "what a row holds is not drawn",
            "own-tokens": "a response begins with tokens of its row",
        },
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """Where responses begin."""
    begun = f"a response begins with its row's `{config.method.starts.column}`"
    return [f"{begun}, which is in no loss and counts to its length; the evaluation begins anew"]


def row_needs(config: Config) -> RowNeeds | None:
    """Rows as ever, of which the other columns are kept."""
    return RowNeeds(keep=True) if config.method.starts.column else None


METRICS: tuple[Metric, ...] = metrics("sampling",
    ("started", "share", "Responses that began with what their row holds (`method.starts`)."),
    ("started_tokens", "tokens", "Mean length of what they began with."),
)  # fmt: skip

METHOD = TrainingMethod(
    name="starts",
    settings=StartsConfig,
    is_on=other_than(_KEY, ""),
    rank=74,
    hooks="assay.trainer.methods.starts.method:Starts",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 34, lines),),
    rows=row_needs,
)
