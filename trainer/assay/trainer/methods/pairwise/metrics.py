"""Numbers of a step with pairwise."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

METRICS: tuple[Metric, ...] = (
    metric(
        "order_gap", "reward", "probability",
        "Mean difference between the two orders in which a judge of pairs was shown a response and "
        "what it is held against (arXiv 2504.04950). Null with other judges.",
    ),
)  # fmt: skip
