"""Numbers of a step with dense."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

METRICS: tuple[Metric, ...] = (
    metric(
        "step_weight", "reward", "weight",
        "Of the advantages of steps beside that of the outcome (`method.dense`).",
    ),
)  # fmt: skip
