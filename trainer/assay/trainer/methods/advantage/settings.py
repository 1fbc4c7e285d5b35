"""What is done with advantages: `method.advantage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.objective import AdvantageConfig
from assay.trainer.settings.part import Part, switch, to
from assay.trainer.settings.registry import estimator_of

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_STABLE = "StableReinforce, arXiv 2505.02835"

_VAPO = "VAPO, arXiv 2504.05118"

_TMN = "GoLongRL, arXiv 2605.19577, and the authors' code"


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    algorithm = config.method
    form, estimator = algorithm.advantage.difficulty, algorithm.advantage.estimator
    if form != "none" and estimator not in ("group", "rloo"):
        return (
            f'method.advantage.difficulty = "{form}" weighs prompts by their groups; it needs '
            'method.advantage.estimator = "group" or "rloo"'
        )
    if form == "linear" and algorithm.pairwise.against != "none":
        return (
            'method.advantage.difficulty = "linear" goes by right and wrong, which '
            'method.pairwise does not know; use "exp"'
        )
    return ""


def _has_group_baseline(config: Config) -> bool:
    return estimator_of(config.method.advantage).credit == "group"


PARTS: tuple[Part, ...] = (
    Part(
        "std-scaling", "advantage",
        "The centred reward is divided by the standard deviation of its group, or of the batch.",
        "GRPO, arXiv 2402.03300, section 4.1.2; Dr. GRPO (arXiv 2503.20783) takes it out",
        lambda c: _has_group_baseline(c) and c.method.advantage.scale in ("group", "batch"),
        to("method.advantage.scale", "none"), code=("algos.advantages.group_advantages",),
    ),
    Part(
        "task-scaling", "advantage",
        "The centred reward is divided by the deviation within the prompts of its task.",
        _TMN, lambda c: _has_group_baseline(c) and c.method.advantage.scale == "task",
        to("method.advantage.scale", "group"), code=("algos.advantages.group_advantages",),
        needs={"whole-batch": "a task's deviation is over the batch"},
    ),
    Part(
        "difficulty-weight", "advantage",
        "Right responses to hard prompts and wrong ones to easy prompts count for more, by a pass "
        "rate smoothed with that of the task.",
        f"{_TMN}; the linear form is a derivation",
        *switch("method.advantage.difficulty", "none", "exp", "linear"),
        code=("algos.difficulty.weights", "algos.difficulty.smoothed"),
        needs={
            "group-baseline": "it weighs prompts by their groups",
            "whole-batch": "a task's mean is over the batch",
        },
    ),
    Part(
        "medium-difficulty", "advantage",
        "Prompts that about half of the samples solve count for most.",
        "Observe-R1, arXiv 2505.12432, after its abstract; the form is a derivation",
        *switch("method.advantage.difficulty", "none", "medium"),
        code=("algos.difficulty.weights",),
        needs={
            "group-baseline": "it weighs prompts by their groups",
            "verdicts": "a pass rate counts right responses",
        },
    ),
    Part(
        "success-adaptive-negatives", "advantage",
        "Negative advantages count for less where few of a prompt's samples earn anything: a "
        "failure there may be a success that was not recognised.",
        "GUI-Libra, arXiv 2602.22190, and the authors' code",
        lambda c: _has_group_baseline(c) and c.method.advantage.negative == "success",
        to("method.advantage.negative", "whole"), code=("algos.advantages.success_scaled",),
        needs={
            "verdicts": "it takes the mean reward for a rate of success",
            "group-baseline": "it goes by the prompt's samples",
        },
    ),
    Part(
        "advantage-whitening", "advantage",
        "The advantages of tokens are brought to mean 0 and deviation 1, over the batch or for "
        "each task.",
        "verl's GAE (batch); GoLongRL, arXiv 2605.19577 (by task)",
        *switch("method.advantage.normalise", "none", "batch", "task"),
        code=("algos.advantages.standardise",), needs={"whole-batch": "its mean is over the batch"},
    ),
    Part(
        "sigma-filter", "advantage",
        "Advantages far from their mean, in standard deviations, become 0.",
        _STABLE, *switch("method.advantage.max_sigma", 0.0),
        code=("algos.advantages.within_sigmas",),
        needs={"whole-batch": "its deviation is over the batch"},
    ),
    Part(
        "discount", "advantage",
        "Later rewards count less.",
        "GAE, arXiv 1506.02438", lambda c: c.method.has_critic and c.method.advantage.gamma < 1,
        to("method.advantage.gamma", 1.0), code=("algos.gae.gae",),
    ),
    Part(
        "length-adaptive-gae", "advantage",
        "The policy's lambda grows with the length of the response, 1 - 1 / (alpha * length).",
        f"{_VAPO}, section 4.2, equation 5",
        lambda c: c.method.has_critic and c.method.advantage.length_adaptive_alpha > 0,
        to("method.advantage.length_adaptive_alpha", 0.0),
        code=("algos.gae.length_adaptive_lambda",),
        needs={"one-turn": "its length is that of one response"},
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """What is done to an advantage before it trains."""
    advantage = config.method.advantage
    found = []
    if advantage.negative == "success" and _has_group_baseline(config):
        found.append(
            f"negative ones times {advantage.negative_base:g} + {advantage.negative_slope:g} * the "
            "mean reward of those compared, at most 1"
        )
    if advantage.difficulty != "none":
        found.append(_difficulty(advantage))
    return found


def refining_lines(config: Config) -> list[str]:
    """Whitening, and what is left out."""
    advantage, lines = config.method.advantage, []
    if advantage.normalise != "none":
        over = {
            "batch": "the batch",
            "task": "each task by itself",
            "role": "each role by itself, over the batch",
        }[advantage.normalise]
        lines.append(f"then whitened over the tokens of {over}: mean 0, deviation 1")
    if advantage.max_sigma:
        lines.append(f"0 where it is more than {advantage.max_sigma:g} deviations from the mean")
    return lines


def _difficulty(advantage: AdvantageConfig) -> str:
    if advantage.difficulty == "medium":
        return "times 4 p (1 - p), p the share of correct samples of the prompt"
    s = f"s = {advantage.difficulty_alpha:g} * mean of the prompt + the rest * mean of its task"
    if advantage.difficulty == "linear":
        return f"times 1 + (1 - s), with {s}, of correctness"
    return (
        f"times exp({advantage.difficulty_gamma:g} * (1/2 - q)) where R is above its prompt's "
        f"mean, else its inverse; q is the share of R above s, with {s}"
    )


METHOD = TrainingMethod(
    name="advantage",
    settings=AdvantageConfig,
    is_on=lambda _config: True,
    rank=200,
    parts=PARTS,
    lines=(Lines("Advantage", 20, lines), Lines("Advantage", 60, refining_lines)),
    check=check,
)
