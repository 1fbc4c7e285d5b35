"""Numbers of a step with asynchrony."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

METRICS: tuple[Metric, ...] = (
    metric(
        "staleness", "sampling", "steps",
        "How far the weights that drew the batch are behind those that learn from it "
        "(`method.asynchrony`): all of a batch is drawn by the same, so this is mean and "
        "maximum.",
    ),
    metric(
        "interruptions", "sampling", "count",
        "How often the batch went on under newer weights while it was drawn "
        "(`method.asynchrony.interrupt`).",
    ),
    metric(
        "generate_wait_s", "time", "s",
        "Waiting for responses that are drawn beside the training (`method.asynchrony`); null "
        "where the step generates.",
    ),
)  # fmt: skip
