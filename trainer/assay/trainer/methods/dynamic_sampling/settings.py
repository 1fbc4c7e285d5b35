"""Settings of dynamic sampling (DAPO, arXiv 2503.14476)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from assay.clients.toml_config import STRICT
from assay.trainer.methods.dynamic_sampling.metrics import METRICS
from assay.trainer.methods.dynamic_sampling.parts import PARTS, lines
from assay.trainer.settings.kinds import Positive
from assay.trainer.settings.method import Lines, Method
from assay.trainer.settings.metric import Column


@dataclass(frozen=True, slots=True)
class DynamicSamplingConfig:
    """Draws until the batch holds only prompts that are neither all right nor all wrong (DAPO)."""

    __pydantic_config__ = STRICT

    enabled: bool = False
    max_rounds: Positive = 10
    """A step that is still short after so many rounds stops the run."""
    oversample: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 2.0
    """One round draws at most so many times rollout.prompts_per_step; within it, what the keep rate
    so far calls for."""
    keep_surplus: bool = False
    """Groups that were kept and not needed open the next step, with the log-probabilities that they
    were sampled under; else they are dropped."""


METHOD = Method(
    name="dynamic_sampling",
    settings=DynamicSamplingConfig,
    is_on=lambda c: c.method.dynamic_sampling.enabled,
    rank=10,
    hooks="assay.trainer.methods.dynamic_sampling.method:DynamicSampling",
    parts=PARTS,
    metrics=METRICS,
    columns=(
        Column(
            "keep",
            ("keep_rate", "rounds"),
            8,
            4,
            "groups with a signal, of those drawn; rounds",
            lambda rate, rounds: f"{rate:.0%}/{rounds:.0f}",
            lambda c: c.method.dynamic_sampling.enabled,
            after="fault",
        ),
    ),
    lines=(Lines("Sampling", 50, lines),),
    compares="method.dynamic_sampling",
)
