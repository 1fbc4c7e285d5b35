"""Settings of rewards within a response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay.trainer.settings.kinds import NonNegativeFloat, Ratio, Strict
from assay.trainer.settings.method import Earned, Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, Switches, to
from assay.trainer.settings.reading import above

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_CODE = "process supervision for code, arXiv 2410.17621"


@dataclass(frozen=True, slots=True)
class DenseConfig(Strict):
    """Rewards within a response: the spans of its judgement (steps, lines, turns)."""

    weight: NonNegativeFloat = 0.0
    """0 leaves spans out."""
    decay_to: NonNegativeFloat = 0.0
    """Above 0, the weight changes exponentially from `weight` at the first step to this at the last
    (Tango: from 0.1 to 1e-3)."""
    mix: Literal["add", "interpolate"] = "add"
    """How step advantages join those of the outcome in a group: A + weight * A_steps, or (1 -
    weight) * A + weight * A_steps (Tango)."""
    normalise: bool = True
    """Divides by the number of spans."""
    correct_share: Ratio = 1.0
    """The share that remains where the verdict is "correct" (arXiv 2410.17621: 0.025 of 0.25)."""

    def weight_at(self, step: int, steps: int) -> float:
        """The weight of a step, from 0, of a run of `steps`, at least 1."""
        if not self.decay_to or steps == 1:
            return self.weight
        return self.weight * (self.decay_to / self.weight) ** (min(step, steps - 1) / (steps - 1))


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    dense = config.method.dense
    if dense.mix == "interpolate" and not 0 < dense.weight <= 1:
        return (
            f'method.dense.mix = "interpolate" needs a weight above 0 and of at most 1, and '
            f"method.dense.weight = {dense.weight:g}"
        )
    return ""


def _is_dense(config: Config) -> bool:
    return config.method.dense.weight > 0


def _leaves_comments_out(config: Config) -> bool:
    """Whether the verifier cuts into lines and gives comments and blank lines no reward."""
    return _is_dense(config) and config.reward.parameters.get("splitting") == "code-line"


def _without_neutral_comments(config: Config) -> Switches:
    """Every line counts."""
    return {"reward.parameters": {**config.reward.parameters, "splitting": "line"}}


def _without_steps(_config: Config) -> Switches:
    return {"method.dense.weight": 0.0, "method.dense.decay_to": 0.0, "method.dense.mix": "add"}


PARTS: tuple[Part, ...] = (
    Part(
        "dense-rewards", "reward",
        "The spans of a judgement (steps, lines, turns) earn their rewards at the tokens where "
        "they end.",
        "DeepSeekMath, arXiv 2402.03300, section 4.1.3", _is_dense, _without_steps,
        code=("algos.dense.dense_group_advantages", "methods.dense.method.with_spans"),
        needs={"one-turn": "spans are of one text", "spans": "spans are what it places"},
        takes={"judged-rewards": "spans earn beside them"},
    ),
    Part(
        "span-normalisation", "reward",
        "The rewards of spans are divided by their number, so that more lines earn no more.",
        f"{_CODE}; the form is a derivation", lambda c: _is_dense(c) and c.method.dense.normalise,
        to("method.dense.normalise", False), code=("methods.dense.method.with_spans",),
    ),
    Part(
        "neutral-comments", "reward",
        "Comments, blank lines and what is not in a block of code earn nothing and do not count as "
        "lines.",
        f"{_CODE}; that they do not count is ours", _leaves_comments_out, _without_neutral_comments,
        code=("assay.genrm.steps.code.mask_idle",),
    ),
    Part(
        "outcome-weighted-spans", "reward",
        "The spans of a response that is correct count for less.",
        f"{_CODE}, equation 3", lambda c: _is_dense(c) and c.method.dense.correct_share < 1,
        to("method.dense.correct_share", 1.0), code=("methods.dense.method.with_spans",),
    ),
    Part(
        "step-interpolation", "advantage",
        "What steps earn takes a share of the outcome's weight, in place of being added to it.",
        "RL Tango, arXiv 2505.15034",
        lambda c: c.method.dense.weight > 0 and c.method.dense.mix == "interpolate",
        to("method.dense.mix", "add"), code=("methods.dense.method.Dense",),
        needs={"group-baseline": "it mixes the advantages of a group"},
    ),
    Part(
        "step-decay", "advantage",
        "The weight of steps changes exponentially from the first step of the run to the last.",
        "RL Tango, arXiv 2505.15034",
        lambda c: c.method.dense.weight > 0 and c.method.dense.decay_to > 0,
        to("method.dense.decay_to", 0.0), code=("methods.dense.settings.DenseConfig",),
        needs={"group-baseline": "it weighs advantages of a group"},
    ),
)  # fmt: skip


def earns(_config: Config, earned: Earned) -> Earned:
    """Rewards of steps, beside the outcome."""
    return Earned((*earned.terms, "sum of r_t"), earned.judged)


def reward_lines(config: Config) -> list[str]:
    """What a token earns within a response."""
    dense = config.method.dense
    share = ", divided by their number" if dense.normalise else ""
    lines = [
        (
            f"r_t: {dense.weight:g} * the reward of each span (step, line, turn) that ends at "
            f"token t{share}"
        )
    ]
    if dense.correct_share < 1:
        lines.append(f"of a correct response, {dense.correct_share:g} times that")
    return lines


def advantage_lines(config: Config) -> list[str]:
    """What a token's own rewards add to its advantage, without a critic."""
    dense = config.method.dense
    if config.method.has_critic:
        return []
    lines = ["a token's own: the scaled rewards of the spans that end at or after it"]
    if dense.mix == "add" and not dense.decay_to:
        return lines
    form = "(1 - alpha) A + alpha A_steps" if dense.mix == "interpolate" else "A + alpha A_steps"
    alpha = f"alpha from {dense.weight:g} to {dense.decay_to:g}, exponentially"
    return [*lines, f"{form}, {alpha if dense.decay_to else f'alpha = {dense.weight:g}'}"]


METRICS: tuple[Metric, ...] = metrics("reward",
    ("step_weight", "weight",
     "Of the advantages of steps beside that of the outcome (`method.dense`)."),
)  # fmt: skip

METHOD = TrainingMethod(
    name="dense",
    settings=DenseConfig,
    is_on=above("method.dense.weight", 0),
    rank=120,
    hooks="assay.trainer.methods.dense.method:Dense",
    parts=PARTS,
    metrics=METRICS,
    earns=earns,
    lines=(Lines("Reward", 40, reward_lines), Lines("Advantage", 50, advantage_lines)),
    check=check,
)
