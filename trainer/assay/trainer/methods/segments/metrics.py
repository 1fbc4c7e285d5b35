"""Numbers of a step with segments."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

METRICS: tuple[Metric, ...] = (
    metric(
        "continuations", "sampling", "responses",
        'Responses written from the cuts of others, with `estimator = "segments"` '
        "(arXiv 2505.23564). They are in no other line here.",
    ),
    metric(
        "continuation_tokens", "sampling", "tokens",
        "Tokens drawn for them, on top of generated_tokens.",
    ),
    metric(
        "continuation_faults", "sampling", "share",
        "Of them, those without a judgement: they are in no value, and count towards "
        "`reward.max_fault_ratio`.",
    ),
    metric(
        "segments_per_response", "sampling", "segments",
        "Mean over judged responses.",
    ),
    metric(
        "valued_states", "sampling", "states",
        "Different states that continuations valued.",
    ),
    metric(
        "valueless_states", "sampling", "states",
        "Those all of whose continuations faulted: the segments that begin or end there leave the "
        "loss.",
    ),
)  # fmt: skip
