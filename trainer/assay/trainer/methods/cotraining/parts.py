"""Parts and words of a verifier that learns beside the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.methods.cotraining.schedule import schedule_of
from assay.trainer.settings.metric import Column, Metric, metrics, percent, small
from assay.trainer.settings.part import Part, Switches, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_TANGO = "RL Tango, arXiv 2505.15034"


def _together(config: Config) -> bool:
    return config.method.cotraining.enabled


def _without_verifier(_config: Config) -> Switches:
    """Nobody judges steps, so that they earn nothing."""
    return {
        "method.cotraining.enabled": False,
        "method.dense.weight": 0.0,
        "method.dense.decay_to": 0.0,
        "method.dense.mix": "add",
    }


PARTS: tuple[Part, ...] = (
    Part(
        "cotrained-verifier", "reward",
        "A generative verifier learns in turns with the policy, from the truth of its final "
        "verdicts; its verdicts on steps are spans of the policy's judgements.",
        _TANGO, _together, _without_verifier, code=("methods.cotraining.roles.Partner",),
        takes={"steady-spans": "a verifier that learns says nothing of some batches"},
        needs={
            "group-baseline": "both roles train by one algorithm, and the verifier has no critic",
            "groups": "the verifier reads one solution of each prompt",
            "one-turn": "it reads steps of one text",
            "verdicts": "the truth of its verdict is that of the solution's",
            "outcomes": "it reads a step's solutions before the next are drawn",
        },
    ),
    Part(
        "verifier-warmup", "sampling",
        "The verifier learns for some steps before the policy does.",
        _TANGO, lambda c: _together(c) and c.method.cotraining.warmup_steps > 0,
        to("method.cotraining.warmup_steps", 0), code=("methods.cotraining.schedule.Schedule",),
    ),
    Part(
        "verification-form", "reward",
        "A verification also earns for its form.",
        _TANGO, lambda c: _together(c) and c.method.cotraining.format_weight > 0,
        to("method.cotraining.format_weight", 0.0), code=("methods.cotraining.measures.reward_of",),
    ),
    Part(
        "class-weights", "advantage",
        "Verifications of right and of wrong solutions weigh 1 / sqrt(how many there are).",
        f"{_TANGO}, and the authors' code, which weighs the loss",
        lambda c: _together(c) and c.method.cotraining.class_weights,
        to("method.cotraining.class_weights", False),
        code=("methods.cotraining.measures.inverse_root_weights",),
    ),
    Part(
        "class-balance", "sampling",
        "Of several solutions drawn for each that is verified, as many right as wrong ones are.",
        "ours, in the place of Tango's class weights",
        lambda c: _together(c) and c.method.cotraining.draws_per_solution > 1,
        to("method.cotraining.draws_per_solution", 1),
        code=("methods.cotraining.measures.balanced",),
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """The verifier, in words; nothing where there is none."""
    together = config.method.cotraining
    warmup = f"{together.warmup_steps} steps of the verifier first, then " * bool(
        together.warmup_steps
    )
    weights = (
        "its advantages are weighed by 1 / sqrt(right, or wrong, solutions of late), scaled to a "
        f"mean of 1; of these counts {together.class_decay:g} is kept at a step"
        if together.class_weights
        else "right and wrong solutions weigh the same"
    )
    model = together.model or config.model.name
    size = f"{together.prompts_per_step} solutions x {together.group_size} verifications"
    drawn = together.draws_per_solution * together.prompts_per_step
    shared = (
        f"of {drawn:,} solutions drawn, as many right as wrong ones are verified, as far as they go"
    )
    order = f"{together.generator_steps} of the generator to {together.verifier_steps} of it"
    total = schedule_of(config).verifier_total
    steps = f"a step is ended by {together.step_separator!r}"
    most = f"of at most {together.max_new_tokens:,} tokens, at {together.learning_rate:g}"
    return [
        f"{model}, by the same algorithm without steps",
        f"{size} a step, {most}; {total} steps in all",
        f"{warmup}{order}, in turns",
        f"R = [final verdict is true] + {together.format_weight:g} * form, read {together.parsing}",
        weights,
        *[shared] * (together.draws_per_solution > 1),
        f"a solution is verified once: 1 or -1 for each step; {steps}",
        "without a verdict on every step of a solution, none of them earns",
    ]


GROUPS = {
    "verifier": "A verifier that learns beside the policy (`cotraining`): of verifications for the "
    "generator's steps; of those of its own steps, in verifier/metrics.jsonl"
}

METRICS: tuple[Metric, ...] = (
    *metrics("verifier",
        ("verifier_accuracy", "share",
         ("Verifications whose final verdict is true; one that cannot be read is "
          "not."), "accuracy"),
        ("verifier_correct_recall", "share",
         "Of correct solutions, those that were called correct.", "correct_recall"),
        ("verifier_wrong_recall", "share",
         "Of wrong solutions, those that were called wrong.", "wrong_recall"),
        ("verifier_f1", "share",
         ("Harmonic mean of the two recalls; null where there was only one kind of "
          "solution."), "f1"),
        ("verifier_form", "share",
         ("Mean share of the verdicts due, of K steps and the whole, that stand where they "
          "should."), "form"),
        ("verifier_unparsed", "share",
         ("Verifications without a final verdict that method.cotraining.parsing "
          "can read."), "unparsed"),
        ("verifier_says_correct", "share",
         ("Verifications whose final verdict is `correct`: 1 where the "
          "verifier always says yes."), "says_correct"),
        ("verifier_steps_read", "share",
         ("Verifications with a verdict on every step; the others give no step "
          "rewards."), "steps_read"),
        ("verifier_reach", "share",
         "Of the generator's judged solutions, those that fit the verifier's context.", "reach"),
        ("verifier_weight_correct", "weight",
         ("What the advantages of verifications of correct solutions are "
          "multiplied by."), "weight_correct"),
        ("verifier_weight_wrong", "weight", "The same of wrong solutions.", "weight_wrong"),
        ("solutions_correct", "share",
         "Of the judged solutions of a step of the verifier, those that are correct."),
        ("solution_steps", "steps", "Mean steps of the generator's solutions that were verified."),
        ("steps_correct", "share",
         "Of the steps of these, those that the verifier called correct."),
    ),
    *metrics("time",
        ("verify_s", "s", "Verifying the solutions of the generator's step; a part of train_s."),
        ("solve_s", "s",
         "Solving problems for the verifier's step, with judgements; a part of train_s."),
    ),
)  # fmt: skip

COLUMNS = (
    Column(
        "verified", ("verifier_accuracy",), 9, 3, "verdicts on these solutions that are true",
        percent, _together, after="fault",
    ),
    Column(
        "alpha", ("step_weight",), 8, 9, "weight of steps", small, _together, after="fault",
    ),
)  # fmt: skip
