"""Numbers of a step with truncation."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

METRICS: tuple[Metric, ...] = (
    metric(
        "finished_share", "sampling", "share",
        "Slots whose response ended in this step. Null without method.truncation, as the five "
        "below.",
    ),
    metric(
        "tokens_per_decode_step", "sampling", "tokens",
        "generated_tokens over the forward passes that drew them: of each batch of "
        "rollout.batch slots the longest stretch, of the slowest process.",
    ),
    metric(
        "prefix_tokens", "sampling", "tokens",
        "Response tokens of earlier steps that the policy read again before it went on.",
    ),
    metric(
        "slot_age_mean", "sampling", "steps",
        "How many steps the unfinished responses have been drawn over; null without any.",
    ),
    metric(
        "slot_age_max", "sampling", "steps",
        "The oldest of them.",
    ),
    metric(
        "value_skipped", "critic", "",
        "1 where fewer responses ended than method.truncation.min_finished, so that the critic "
        "learnt nothing; null without truncation.",
    ),
)  # fmt: skip
