"""Settings of stored rollouts: the section `method.offline`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from assay.trainer.methods.offline.parts import METRICS, PARTS, lines
from assay.trainer.settings.kinds import (
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Strict,
)
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.reading import only, other_than

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_MIXED = only("method.offline.mix", "sasr")
_PAIRS = other_than("method.offline.pairs", "")


@dataclass(frozen=True, slots=True)
class OfflineConfig(Strict):
    """Responses that are read, where others are drawn."""

    rows: str = ""
    """A run, its folder of rollouts, or one of their files; or a .jsonl file of rows with prompt,
    response and what `assay score` adds. Empty: responses are drawn."""
    keep: Literal["all", "correct", "positive"] = "all"
    """Which responses train. correct: those of that verdict. positive: those whose reward is above
    the mean of their prompt's stored responses."""
    pairs: str = ""
    """A step's groups are pairs, the better response first: `reward` goes by rewards; the name of
    a component by its scores, of two responses with the same verdict. Empty: any of a prompt."""
    margin: Annotated[NonNegativeFloat, _PAIRS] = 0.0
    """Pairs differ by more than this."""
    ties: Annotated[bool, _PAIRS] = False
    """Pairs that do not differ are in as well, for losses of differences."""
    most: NonNegative = 4
    """Groups of one prompt in a pass over the rows; 0 for all."""
    reference: Literal["start", "recorded", "none"] = "start"
    """What ratios start from. start: the model as this run loads it; its log-probabilities of the
    rows are computed before the first step. recorded: the model that drew the rows. none: there is
    no ratio."""
    step_end: str = "\n"
    """A token with this text ends a step, for losses of steps. Empty: each token is one."""
    mix: Literal["none", "sasr"] = "none"
    """none: nothing is drawn to train. sasr: some steps are supervised by the rows, the others go
    by the policy's own responses (SASR, arXiv 2505.13026; its numbers are ours)."""
    mix_warmup: Annotated[Positive, _MIXED] = 10
    """The first steps, all supervised."""
    mix_gamma: Annotated[PositiveFloat, _MIXED] = 1.0
    """Weight of the warm-up's gradient: a supervised step has the chance 1 / (1 + gamma) while its
    gradient is as long as then."""
    mix_brake: Annotated[NonNegativeFloat, _MIXED] = 0.0
    """Supervised steps become likelier by so much for each nat of divergence from the initial
    policy; above 0 it needs method.loss.kl_coef."""


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    offline, rollout = config.method.offline, config.rollout
    if not offline.rows:
        return ""
    if config.method.turns.on or config.method.episodes.on:
        return (
            "method.offline.rows brings responses that were drawn; leave method.turns and "
            "method.episodes out of a run that learns from them"
        )
    if offline.pairs and rollout.group_size != 2:
        return (
            f"method.offline.pairs needs rollout.group_size = 2: a group is a pair, and "
            f"rollout.prompts_per_step counts pairs; it is {rollout.group_size}"
        )
    if offline.pairs and config.optim.mini_batches > 1:
        return (
            "method.offline.pairs needs optim.mini_batches = 1: a mini-batch takes one response of "
            "each group"
        )
    if rollout.temperature != 1:
        return (
            "method.offline.rows needs rollout.temperature = 1: log-probabilities of stored "
            "responses are the model's own"
        )
    return _mixed(config)


def _mixed(config: Config) -> str:
    method = config.method
    if method.offline.mix == "none":
        return ""
    if method.offline.pairs or method.offline.reference != "none":
        return (
            'method.offline.mix needs method.offline.reference = "none", and no pairs: its '
            "supervised steps have no ratio"
        )
    if method.advantage.estimator == "stored" or method.loss.objective not in ("ppo", "cispo"):
        return (
            "method.offline.mix needs a loss and an estimator of drawn responses: set "
            'method.loss.objective = "ppo" or "cispo", and method.advantage.estimator to another '
            'than "stored"'
        )
    if method.offline.mix_brake and not method.loss.kl_most:
        return (
            "method.offline.mix_brake goes by the divergence from the initial policy: set "
            "method.loss.kl_coef above 0"
        )
    return ""


METHOD = TrainingMethod(
    name="offline",
    settings=OfflineConfig,
    is_on=other_than("method.offline.rows", ""),
    rank=25,
    hooks="assay.trainer.methods.offline.method:Offline",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 5, lines),),
    check=check,
)
