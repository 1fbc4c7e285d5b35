"""Numbers of a step with hints."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

METRICS: tuple[Metric, ...] = (
    metric(
        "hinted_groups", "sampling", "groups",
        "Answered again with the beginning of the solution in the prompt, as nobody was right "
        "(`method.hints`); samples.jsonl has the level of each.",
    ),
)  # fmt: skip
