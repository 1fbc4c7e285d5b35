"""Numbers of a step with cotraining."""

from __future__ import annotations

from assay.trainer.settings.metric import Metric, metric

GROUPS = {
    "verifier": "A verifier that learns beside the policy (`cotraining`): of verifications for the "
    "generator's steps; of those of its own steps, in verifier/metrics.jsonl",
}

METRICS: tuple[Metric, ...] = (
    metric(
        "verifier_accuracy", "verifier", "share",
        "Verifications whose final verdict is true; one that cannot be read is not.",
        shown="accuracy",
    ),
    metric(
        "verifier_correct_recall", "verifier", "share",
        "Of correct solutions, those that were called correct.",
        shown="correct_recall",
    ),
    metric(
        "verifier_wrong_recall", "verifier", "share",
        "Of wrong solutions, those that were called wrong.",
        shown="wrong_recall",
    ),
    metric(
        "verifier_f1", "verifier", "share",
        "Harmonic mean of the two recalls; null where there was only one kind of solution.",
        shown="f1",
    ),
    metric(
        "verifier_form", "verifier", "share",
        "Mean share of the verdicts due, of K steps and the whole, that stand where they should.",
        shown="form",
    ),
    metric(
        "verifier_unparsed", "verifier", "share",
        "Verifications without a final verdict that method.cotraining.parsing can read.",
        shown="unparsed",
    ),
    metric(
        "verifier_says_correct", "verifier", "share",
        "Verifications whose final verdict is `correct`: 1 where the verifier always says yes.",
        shown="says_correct",
    ),
    metric(
        "verifier_steps_read", "verifier", "share",
        "Verifications with a verdict on every step; the others give no step rewards.",
        shown="steps_read",
    ),
    metric(
        "verifier_reach", "verifier", "share",
        "Of the generator's judged solutions, those that fit the verifier's context.",
        shown="reach",
    ),
    metric(
        "verifier_weight_correct", "verifier", "weight",
        "What the advantages of verifications of correct solutions are multiplied by.",
        shown="weight_correct",
    ),
    metric(
        "verifier_weight_wrong", "verifier", "weight",
        "The same of wrong solutions.",
        shown="weight_wrong",
    ),
    metric(
        "solutions_correct", "verifier", "share",
        "Of the judged solutions of a step of the verifier, those that are correct.",
    ),
    metric(
        "solution_steps", "verifier", "steps",
        "Mean steps of the generator's solutions that were verified.",
    ),
    metric(
        "steps_correct", "verifier", "share",
        "Of the steps of these, those that the verifier called correct.",
    ),
    metric(
        "verify_s", "time", "s",
        "Verifying the solutions of the generator's step; a part of train_s.",
    ),
    metric(
        "solve_s", "time", "s",
        "Solving problems for the verifier's step, with judgements; a part of train_s.",
    ),
)  # fmt: skip
