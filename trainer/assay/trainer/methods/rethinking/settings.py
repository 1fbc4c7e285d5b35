"""Settings of forced rethinking (VL-Rethinker, arXiv 2504.08837), their parts and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.settings.kinds import Positive, Ratio, Strict, Text
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, switch, to
from assay.trainer.settings.reading import above

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_KEY = "method.rethinking.share"
_ON = above(_KEY, 0)
TRIGGERS = (
    "\n\nWait",
    "\n\nWait, does it seem right?",
    "\n\nWait, let's double check",
    "\n\nWait, there might be a mistake",
)
"""Those of the authors' code."""


@dataclass(frozen=True, slots=True)
class RethinkingConfig(Strict):
    """Has some responses go on behind their end, after a text that asks for another look.

    In training only.
    """

    share: Ratio = 0.0
    """Of the responses that end by themselves, those that go on (0.65 in the authors' code)."""
    triggers: Annotated[tuple[Text, ...], Field(min_length=1), _ON] = TRIGGERS
    """One of these stands in place of a response's end, each as often. It is in no loss."""
    keep: Annotated[Literal["correct", "all"], _ON] = "correct"
    """correct: a response that is not correct in the end is what it was before it went on (the
    authors' code). all: it stays as it went on."""
    room: Annotated[Positive, _ON] = 1
    """Tokens that must be left behind the trigger (1,024 in the authors' code)."""


_WHO = "VL-Rethinker, arXiv 2504.08837, and the authors' code"
PARTS: tuple[Part, ...] = (
    Part(
        "forced-rethinking", "sampling",
        "Some responses go on behind their end, after a text that asks for another look and is in "
        "no loss.",
        _WHO, *switch(_KEY, 0.0), code=("methods.rethinking.talk.Rethinking",),
        needs={"one-turn": "it goes on where a response of one turn ended"},
        takes={
            "pausing": "a response that ended goes on at once",
            "own-tokens": "a trigger stands within a response",
        },
    ),
    Part(
        "corrected-only", "sampling",
        "A response that went on and is not correct in the end is what it was before.",
        _WHO, lambda c: c.method.rethinking.share > 0 and c.method.rethinking.keep == "correct",
        to("method.rethinking.keep", "all"), code=("methods.rethinking.talk.Rethinking",),
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """Which responses go on, and which of them train."""
    chosen = config.method.rethinking
    texts = ", ".join(repr(text.strip()) for text in chosen.triggers)
    kept = {
        "correct": "where that is not correct in the end, the response is what it was before",
        "all": "it trains whatever comes of it",
    }[chosen.keep]
    return [
        f"{chosen.share:g} of the responses that end go on behind {texts}; {kept}",
        "the trigger is in no loss; the evaluation answers once",
    ]


METRICS: tuple[Metric, ...] = metrics("sampling",
    ("rethinking_tried", "share", "Responses that went on behind their end (`method.rethinking`)."),
    ("rethinking_kept", "share", "Of these, those that train as they went on."),
    ("rethinking_corrected", "share",
     "Of those that were wrong before they went on, those that are kept and correct."),
    ("rethinking_lost", "share",
     ("Of those that were correct before, those that are not correct after (by default such a one "
      "is what it was before).")),
)  # fmt: skip

METHOD = TrainingMethod(
    name="rethinking",
    settings=RethinkingConfig,
    is_on=_ON,
    rank=72,
    hooks="assay.trainer.methods.rethinking.method:Rethink",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 36, lines),),
)
