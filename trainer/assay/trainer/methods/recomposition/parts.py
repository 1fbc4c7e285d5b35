"""Parts and words of recomposed batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.part import Part, to
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


PARTS: tuple[Part, ...] = (
    Part(
        "recomposition",
        "sampling",
        "Short correct and long incorrect responses train at once, the others of their groups in a "
        "part of a later batch.",
        "RoRecomp, arXiv 2509.25958, after its abstract",
        lambda c: c.method.recomposition.groups > 0,
        to("method.recomposition.groups", 0),
        code=("methods.recomposition.recomposition.Recomposition",),
        needs={
            "collector": "it keeps whole groups until their remainders train",
            "verdicts": "it tells right from wrong responses",
            "group-baseline": "advantages are those of the whole group",
        },
        takes={
            "fresh": "remainders of earlier steps train",
        },
    ),
)


def lines(config: Config) -> list[str]:
    """What trains now, and what later."""
    chosen = config.method.recomposition
    if not chosen.groups:
        return []
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
