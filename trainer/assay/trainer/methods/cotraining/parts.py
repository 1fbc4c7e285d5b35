"""A verifier that learns beside the policy: its parts, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.methods.cotraining.schedule import schedule_of
from assay.trainer.settings.part import Part, Switches, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_TANGO = "RL Tango, arXiv 2505.15034"


def _together(config: Config) -> bool:
    return config.method.cotraining.enabled


def _without_verifier(_config: Config) -> Switches:
    """Nobody judges steps: they earn nothing, however they were to count."""
    return {
        "method.cotraining.enabled": False,
        "method.dense.weight": 0.0,
        "method.dense.decay_to": 0.0,
        "method.dense.mix": "add",
    }


PARTS: tuple[Part, ...] = (
    Part(
        "cotrained-verifier",
        "reward",
        "A generative verifier learns in turns with the policy, from the truth of its final "
        "verdicts; its verdicts on steps are spans of the policy's judgements.",
        _TANGO,
        _together,
        _without_verifier,
        code=("methods.cotraining.roles.Partner",),
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
        "verifier-warmup",
        "sampling",
        "The verifier learns for some steps before the policy does.",
        _TANGO,
        lambda c: _together(c) and c.method.cotraining.warmup_steps > 0,
        to("method.cotraining.warmup_steps", 0),
        code=("methods.cotraining.schedule.Schedule",),
    ),
    Part(
        "verification-form",
        "reward",
        "A verification also earns for its form.",
        _TANGO,
        lambda c: _together(c) and c.method.cotraining.format_weight > 0,
        to("method.cotraining.format_weight", 0.0),
        code=("methods.cotraining.measures.reward_of",),
    ),
    Part(
        "class-weights",
        "advantage",
        "Verifications of right and of wrong solutions weigh 1 / sqrt(how many there are).",
        f"{_TANGO}; where the weight acts is a derivation",
        lambda c: _together(c) and c.method.cotraining.class_weights,
        to("method.cotraining.class_weights", False),
        code=("methods.cotraining.measures.inverse_root_weights",),
    ),
)


def lines(config: Config) -> list[str]:
    """The verifier, in words; nothing where there is none."""
    together = config.method.cotraining
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
