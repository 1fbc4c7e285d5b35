"""Settings of dynamic sampling (DAPO, arXiv 2503.14476)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assay.trainer.settings.kinds import Positive, Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Column, Metric, metrics
from assay.trainer.settings.part import Part, switch, to
from assay.trainer.settings.reading import only
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_DAPO = "DAPO, arXiv 2503.14476"


@dataclass(frozen=True, slots=True)
class DynamicSamplingConfig(Strict):
    """Draws until the batch holds only prompts that are neither all right nor all wrong (DAPO)."""

    enabled: bool = False
    max_rounds: Positive = 10
    """A step that lacks groups after so many rounds stops the run."""
    oversample: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 2.0
    """Most draws of a round, in times rollout.prompts_per_step; within it the keep rate decides."""
    keep_surplus: bool = False
    """Surplus groups open the next step, with their log-probabilities; else they are dropped."""


PARTS: tuple[Part, ...] = (
    Part(
        "dynamic-sampling", "sampling",
        "Draws on until the batch holds only prompts whose responses are neither all right nor all "
        "wrong.",
        f"{_DAPO}, section 3.2, equation 11", *switch("method.dynamic_sampling.enabled", False),
        code=("rollouts.dynamic.keeps",),
        needs={
            "collector": "it draws on when it knows which prompts to keep",
            "verdicts": "it keeps prompts with right and wrong responses",
        },
    ),
    Part(
        "surplus-kept", "sampling",
        "Groups that dynamic sampling kept and a step did not need open the next step, with the "
        "probabilities that they were sampled under.",
        "ours; DAPO drops them",
        lambda c: c.method.dynamic_sampling.enabled and c.method.dynamic_sampling.keep_surplus,
        to("method.dynamic_sampling.keep_surplus", False), code=("rollouts.collector.Collector",),
        needs={"collector": "groups wait for the next step"},
        takes={"fresh": "groups of the step before open this one"},
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """Which groups stay."""
    dynamic = config.method.dynamic_sampling
    return [
        "drawn until every prompt of the batch has right and wrong responses (judged by the "
        "verdict, not by the shaped reward): at most "
        f"{dynamic.oversample:g} times the missing prompts at once, at most "
        f"{count(dynamic.max_rounds, 'round')}; surplus groups "
        + ("open the next step" if dynamic.keep_surplus else "are dropped")
    ]


METRICS: tuple[Metric, ...] = metrics("sampling",
    ("keep_rate", "share",
     ("Groups with both correct and other responses, among those drawn in this step that have "
      "two judgements or more. Without dynamic sampling nothing is dropped, and this says "
      "what would be. Null where groups have one response.")),
    ("keep_rate_ema", "share",
     ("What the next step expects of it, which sets how much it draws. Null without dynamic "
      "sampling.")),
)  # fmt: skip

COLUMNS = (
    Column(
        "keep", ("keep_rate", "rounds"), 8, 4, "groups with a signal, of those drawn; rounds",
        lambda rate, rounds: f"{rate:.0%}/{rounds:.0f}",
        lambda c: c.method.dynamic_sampling.enabled, after="fault",
    ),
)  # fmt: skip

METHOD = TrainingMethod(
    name="dynamic_sampling",
    settings=DynamicSamplingConfig,
    is_on=only("method.dynamic_sampling.enabled", True),
    rank=10,
    hooks="assay.trainer.methods.dynamic_sampling.method:DynamicSampling",
    parts=PARTS,
    metrics=METRICS,
    columns=COLUMNS,
    lines=(Lines("Sampling", 50, lines),),
    compares="method.dynamic_sampling",
)
