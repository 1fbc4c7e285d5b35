"""Numbers of a step with replay."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

METRICS: tuple[Metric, ...] = (
    metric(
        "replayed_groups", "sampling", "groups",
        "Of those, the ones that took the place of a group without advantage "
        "(`method.replay`).",
    ),
)  # fmt: skip
