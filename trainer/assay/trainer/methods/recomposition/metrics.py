"""Numbers of a step with recomposition."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

METRICS: tuple[Metric, ...] = (
    metric(
        "compensation_groups", "sampling", "groups",
        "Of the stale ones, those whose remainder trains (`method.recomposition`).",
    ),
)  # fmt: skip
