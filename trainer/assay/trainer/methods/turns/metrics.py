"""Numbers of a step with turns."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

GROUPS = {
    "turns": "Dialogues without a fault (`method.turns`); null for single responses",
}

METRICS: tuple[Metric, ...] = (
    metric(
        "turns_first_correct", "turns", "share",
        "First attempts that are correct (Acc@t1).",
        shown="first_correct",
    ),
    metric(
        "turns_final_correct", "turns", "share",
        "Last attempts that are correct (Acc@final).",
        shown="final_correct",
    ),
    metric(
        "turns_revised", "turns", "share",
        "Dialogues with a second attempt.",
        shown="revised",
    ),
    metric(
        "turns_answer_changed", "turns", "share",
        "Of these, the last attempt states another answer than the first.",
        shown="answer_changed",
    ),
    metric(
        "turns_incorrect_to_correct", "turns", "share",
        "Wrong first attempts whose dialogue ended correct.",
        shown="incorrect_to_correct",
    ),
    metric(
        "turns_correct_to_incorrect", "turns", "share",
        "Correct first attempts whose dialogue ended wrong.",
        shown="correct_to_incorrect",
    ),
    metric(
        "turns_verifier_accuracy", "turns", "share",
        "Verifications whose verdict is true; one that cannot be read is not.",
        shown="verifier_accuracy",
    ),
    metric(
        "turns_correct_recall", "turns", "share",
        "Correct attempts that the verification called correct.",
        shown="correct_recall",
    ),
    metric(
        "turns_wrong_recall", "turns", "share",
        "Wrong attempts that the verification called wrong.",
        shown="wrong_recall",
    ),
    metric(
        "turns_unparsed", "turns", "share",
        "Verifications without a verdict that method.turns.parsing can read, faults included.",
        shown="unparsed",
    ),
)  # fmt: skip
