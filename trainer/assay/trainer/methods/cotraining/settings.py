"""Settings of a verifier that learns beside the policy: the section `cotraining` of config.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.methods.cotraining.parts import COLUMNS, GROUPS, METRICS, PARTS, lines
from assay.trainer.methods.cotraining.schedule import schedule_of
from assay.trainer.settings.kinds import (
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Strict,
)
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.reading import only

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

AtLeastTwo = Annotated[int, Field(ge=2)]


@dataclass(frozen=True, slots=True)
class CotrainingConfig(Strict):
    """A generative verifier that learns beside the policy, its generator (RL Tango).

    [model], [algorithm], [optim] and [rollout] define the generator, run.steps its steps. The same
    algorithm trains the verifier, with the settings here.
    """

    enabled: bool = False
    generator_steps: Positive = 3
    """Steps of the generator between turns of the verifier (N_g)."""
    verifier_steps: NonNegative = 1
    """Steps of the verifier at its turn (N_v); 0 ends its training after the warm-up."""
    warmup_steps: NonNegative = 40
    """Steps of the verifier before the generator's first."""
    format_weight: NonNegativeFloat = 0.8
    """gamma: weight of a verification's form beside its verdict's truth."""
    class_weights: bool = True
    """Weighs the verifier's advantages by 1 / sqrt(how many solutions are right, or wrong)."""
    class_decay: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """What a verifier's step keeps of these counts."""
    draws_per_solution: Positive = 1
    """Solutions drawn and judged for each that a verifier's step verifies; from 2 on those that are
    verified are as many right as wrong ones, as far as the drawn ones go."""
    parsing: Literal["strict", "tolerant"] = "strict"
    """How verdicts must be worded."""
    step_separator: Annotated[str, Field(min_length=1)] = "\n\n"
    """What ends a step of a solution."""
    model: str = ""
    """The verifier's folder or hub name; empty for the generator's. Precision, device and adapters
    are those of [model]."""
    learning_rate: PositiveFloat = 1e-6
    prompts_per_step: Positive = 8
    """Solutions of a verifier's step, each of a problem of its own."""
    group_size: AtLeastTwo = 5
    """Verifications of each."""
    max_new_tokens: Positive = 1024
    """Of a verification."""
    temperature: PositiveFloat = 1.0
    micro_batch: NonNegative = 0
    """Most verifications of a forward and backward pass, within optim.micro_batch_tokens; 0 for no
    limit."""
    prompt: str = ""
    """Asks for a verification, with {question} and {steps}, and optionally {count} and {code};
    empty for ours. It must ask for the form of cotraining/protocol.py."""
    step_heading: str = "[Step {number} {code}]\n"
    """Stands before each step of the solution; {code} is unknown to solutions."""


def check_cotraining(config: Config) -> str:
    """Why settings do not fit a learning verifier, in a line; empty where they do."""
    return _check_together(config) if config.method.cotraining.enabled else ""


def _check_together(config: Config) -> str:
    together = config.method.cotraining
    samples = together.prompts_per_step * together.group_size
    if samples % config.optim.mini_batches:
        return (
            f"optim.mini_batches = {config.optim.mini_batches} does not divide the {samples} "
            "samples of the verifier's step (method.cotraining: prompts_per_step * group_size)"
        )
    for place in ("{question}", "{steps}"):
        if together.prompt and together.prompt.count(place) != 1:
            return f"method.cotraining.prompt needs the place {place}, once"
    if not schedule_of(config).verifier_total:
        return (
            f"method.cotraining leaves the verifier without a step in the run.steps = "
            f"{config.run.steps} of the generator: raise method.cotraining.warmup_steps, or "
            "verifier_steps, or run.steps"
        )
    return _check_shared(config)


def _check_shared(config: Config) -> str:
    if config.method.advantage.difficulty != "none" or config.method.advantage.scale == "task":
        return (
            'method.cotraining goes with method.advantage.difficulty = "none" and a scale that is '
            'not "task": both roles share them, and verifications have no tasks'
        )
    if config.model.lora.dropout:
        return (
            "method.cotraining goes with model.lora.dropout = 0: both roles would draw on one "
            "random state"
        )
    return ""


METHOD = TrainingMethod(
    name="cotraining",
    settings=CotrainingConfig,
    is_on=only("method.cotraining.enabled", True),
    rank=140,
    hooks="assay.trainer.methods.cotraining.method:Cotraining",
    parts=PARTS,
    metrics=METRICS,
    metric_groups=GROUPS,
    columns=COLUMNS,
    lines=(Lines("Verifier", 10, lines),),
    check=check_cotraining,
)
