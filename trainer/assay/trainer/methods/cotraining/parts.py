"""A verifier that learns beside the policy: its parts, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.methods.cotraining.settings import schedule_of
from assay.trainer.methods.dense.parts import without_steps
from assay.trainer.methods.part import Part, to

if TYPE_CHECKING:
    from assay.trainer.settings import Config

_TANGO = "RL Tango, arXiv 2505.15034"


def _together(config: Config) -> bool:
    return config.cotraining.enabled


COTRAINING_PARTS: tuple[Part, ...] = (
    Part(
        "cotrained-verifier",
        "reward",
        "A generative verifier learns in turns with the policy, from the truth of its final "
        "verdicts; its verdicts on steps are spans of the policy's judgements.",
        _TANGO,
        _together,
        lambda c: {"cotraining.enabled": False, **without_steps(c)},
    ),
    Part(
        "verifier-warmup",
        "sampling",
        "The verifier learns for some steps before the policy does.",
        _TANGO,
        lambda c: _together(c) and c.cotraining.warmup_steps > 0,
        to("cotraining.warmup_steps", 0),
    ),
    Part(
        "verification-form",
        "reward",
        "A verification also earns for its form.",
        _TANGO,
        lambda c: _together(c) and c.cotraining.format_weight > 0,
        to("cotraining.format_weight", 0.0),
    ),
    Part(
        "class-weights",
        "advantage",
        "Verifications of right and of wrong solutions weigh 1 / sqrt(how many there are).",
        f"{_TANGO}; where the weight acts is a derivation",
        lambda c: _together(c) and c.cotraining.class_weights,
        to("cotraining.class_weights", False),
    ),
    Part(
        "step-interpolation",
        "advantage",
        "What steps earn takes a share of the outcome's weight, in place of being added to it.",
        _TANGO,
        lambda c: c.algorithm.dense.weight > 0 and c.algorithm.dense.mix == "interpolate",
        to("algorithm.dense.mix", "add"),
    ),
    Part(
        "step-decay",
        "advantage",
        "The weight of steps changes exponentially from the first step of the run to the last.",
        _TANGO,
        lambda c: c.algorithm.dense.weight > 0 and c.algorithm.dense.decay_to > 0,
        to("algorithm.dense.decay_to", 0.0),
    ),
)


def cotraining_lines(config: Config) -> list[str]:
    """The verifier, in words; nothing where there is none."""
    together = config.cotraining
    if not together.enabled:
        return []
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
        f"a solution is verified once: 1 or -1 for each step; {steps}",
        "without a verdict on every step of a solution, none of them earns",
    ]


def step_weight_line(config: Config) -> str:
    """How steps meet the outcome; empty where they are plainly added."""
    dense = config.algorithm.dense
    if not dense.weight or (dense.mix == "add" and not dense.decay_to):
        return ""
    form = "(1 - alpha) A + alpha A_steps" if dense.mix == "interpolate" else "A + alpha A_steps"
    alpha = f"alpha from {dense.weight:g} to {dense.decay_to:g}, exponentially"
    return f"{form}, {alpha if dense.decay_to else f'alpha = {dense.weight:g}'}"
