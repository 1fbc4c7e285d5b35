"""Numbers of a step with dynamic sampling."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

METRICS: tuple[Metric, ...] = (
    metric(
        "keep_rate", "sampling", "share",
        "Groups with both correct and other responses, among those drawn in this step that have "
        "two judgements or more. Without dynamic sampling nothing is dropped, and this says what "
        "would be. Null where groups have one response.",
    ),
    metric(
        "keep_rate_ema", "sampling", "share",
        "What the next step expects of it, which sets how much it draws. Null without dynamic "
        "sampling.",
    ),
)  # fmt: skip
