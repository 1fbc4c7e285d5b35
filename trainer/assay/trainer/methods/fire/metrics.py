"""Numbers of a step with fire."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

METRICS: tuple[Metric, ...] = (
    metric(
        "first_weight", "drift", "ratio",
        "Mean weight min(pi_old / drawn with, 1) of the first tokens in the loss, with "
        '`method.fire.mode = "exact"` (arXiv 2410.21236).',
    ),
)  # fmt: skip
