"""Parts and words of dynamic sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.part import Part, to
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_DAPO = "DAPO, arXiv 2503.14476"


PARTS: tuple[Part, ...] = (
    Part(
        "dynamic-sampling",
        "sampling",
        "Draws on until the batch holds only prompts whose responses are neither all right nor all "
        "wrong.",
        f"{_DAPO}, section 3.2, equation 11",
        lambda c: c.method.dynamic_sampling.enabled,
        to("method.dynamic_sampling.enabled", False),
        code=("rollouts.dynamic.keeps",),
        needs={
            "collector": "it draws on when it knows which prompts to keep",
            "verdicts": "it keeps prompts with right and wrong responses",
        },
    ),
    Part(
        "surplus-kept",
        "sampling",
        "Groups that dynamic sampling kept and a step did not need open the next step, with the "
        "probabilities that they were sampled under.",
        "ours; DAPO drops them",
        lambda c: c.method.dynamic_sampling.enabled and c.method.dynamic_sampling.keep_surplus,
        to("method.dynamic_sampling.keep_surplus", False),
        code=("rollouts.collector.Collector",),
        needs={
            "collector": "groups wait for the next step",
        },
        takes={
            "fresh": "groups of the step before open this one",
        },
    ),
)


def lines(config: Config) -> list[str]:
    """Which groups stay."""
    dynamic = config.method.dynamic_sampling
    if not dynamic.enabled:
        return []
    return [
        "drawn until every prompt of the batch has right and wrong responses (judged by the "
        "verdict, not by the shaped reward): at most "
        f"{dynamic.oversample:g} times the missing prompts at once, at most "
        f"{count(dynamic.max_rounds, 'round')}; surplus groups "
        + ("open the next step" if dynamic.keep_surplus else "are dropped")
    ]
