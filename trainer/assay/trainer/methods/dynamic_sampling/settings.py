"""Settings of dynamic sampling (DAPO, arXiv 2503.14476)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from assay.trainer.settings.kinds import Positive, Ratio, Strict
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
    min_accuracy: Ratio = 0.0
    """Least share of right responses of a group that stays, of those judged (0.1 in SimpleTIR's
    script)."""
    max_accuracy: Ratio = 1.0
    """Largest such share (0.9 there)."""
    keep_surplus: bool = False
    """Surplus groups open the next step, with their log-probabilities; else they are dropped."""

    @property
    def bounded(self) -> bool:
        """Whether some groups with right and wrong responses go."""
        return self.min_accuracy > 0 or self.max_accuracy < 1


def check(config: Config) -> str:
    """Why settings do not fit; empty where they do."""
    dynamic, size = config.method.dynamic_sampling, config.rollout.group_size
    if dynamic.enabled and not any(
        dynamic.min_accuracy <= right / size <= dynamic.max_accuracy for right in range(1, size)
    ):
        return (
            "method.dynamic_sampling.min_accuracy and max_accuracy leave no group of "
            f"rollout.group_size = {size} that has right and wrong responses; widen them"
        )
    return ""


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
        "accuracy-filter", "sampling",
        "Of these prompts only those stay whose share of right responses lies within bounds.",
        "SimpleTIR, arXiv 2509.02479, its code",
        lambda c: c.method.dynamic_sampling.enabled and c.method.dynamic_sampling.bounded,
        lambda _config: {
            "method.dynamic_sampling.min_accuracy": 0.0,
            "method.dynamic_sampling.max_accuracy": 1.0,
        },
        code=("rollouts.dynamic.keeps",),
        needs={
            "collector": "it draws on when it knows which prompts to keep",
            "verdicts": "it counts right responses",
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
        "verdict, not by the shaped reward)"
        + (
            f", {dynamic.min_accuracy:g} to {dynamic.max_accuracy:g} of them right"
            if dynamic.bounded
            else ""
        )
        + ": at most "
        f"{dynamic.oversample:g} times the missing prompts at once, at most "
        f"{count(dynamic.max_rounds, 'round')}; surplus groups "
        + ("open the next step" if dynamic.keep_surplus else "are dropped")
    ]


METRICS: tuple[Metric, ...] = metrics("sampling",
    ("keep_rate", "share",
     ("Groups with both correct and other responses, and an accuracy within the bounds, among "
      "those drawn in this step that have two judgements or more. Without dynamic sampling "
      "nothing is dropped, and this says what would be. Null where groups have one response.")),
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
    check=check,
    compares="method.dynamic_sampling",
)
