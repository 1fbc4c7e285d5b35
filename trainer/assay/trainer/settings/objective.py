"""Settings of advantages, critic and loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from assay.trainer.settings.kinds import (
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Ratio,
    Strict,
)
from assay.trainer.settings.method import Estimator
from assay.trainer.settings.reading import ReadWhere, above, only, other_than
from assay.trainer.settings.registry import declared


def _has_critic(estimator: str) -> bool:
    found = declared(Estimator.group).get(estimator)
    return found is not None and found.credit == "critic"


CRITIC = ReadWhere("method.advantage.estimator", _has_critic, 'one with a critic, as "gae"')
COMPARED = ReadWhere(
    "method.advantage.estimator",
    lambda name: not _has_critic(name),
    'one without a critic, as "group"',
)
_DIFFICULTY = only("method.advantage.difficulty", "exp", "linear")
_SEPARATE = only("method.critic.sharing", "separate")
_BINNED = only("method.critic.loss", "hl-gauss", "two-hot")
_CORRECTED = other_than("method.loss.importance_correction", "none")


@dataclass(frozen=True, slots=True)
class AdvantageConfig(Strict):
    """How rewards become advantages."""

    estimator: str = "group"
    """group: the group's mean is the baseline. rloo: the mean of the others. gae: a critic.
    symmetric: 1/2, for chances of beating the others (Pairwise-RL). segments: the mean reward of
    continuations from a state; tree: of the branches from it (SPO). plain: no baseline.
    """
    scale: Literal["group", "batch", "task", "none"] = "group"
    """All but gae: the centred reward is divided by the deviation of its group, of the batch, of
    its task's prompts (GoLongRL), or by 1 (Dr. GRPO).
    """
    difficulty: Literal["none", "exp", "linear", "medium"] = "none"
    """group, rloo: weighs harder prompts more (exp, of GoLongRL's code; linear), or those of medium
    difficulty (Observe-R1); see algos/difficulty.py.
    """
    difficulty_alpha: Annotated[Ratio, _DIFFICULTY] = 0.8
    """The prompt's share in its smoothed mean; its task has the rest (0.8 in GoLongRL's script)."""
    difficulty_gamma: Annotated[NonNegativeFloat, only("method.advantage.difficulty", "exp")] = 1.0
    """exp: strength of the weight (1 in GoLongRL's code)."""
    normalise: Literal["none", "batch", "task", "role"] = "none"
    """Whitens the advantages of tokens: over the batch, by task, or each role by itself: attempts
    and verifications of `method.turns` (PAG), agents of `method.episodes` (Dr. MAS).
    """
    negative: Annotated[Literal["whole", "success"], COMPARED] = "whole"
    """success: negative advantages count for less where few samples of the prompt
    earn anything (GUI-Libra); for rewards in [0, 1]."""
    negative_base: Annotated[Ratio, only("method.advantage.negative", "success")] = 0.5
    """Their factor where none earns (0.5 in GUI-Libra's code)."""
    negative_slope: Annotated[NonNegativeFloat, only("method.advantage.negative", "success")] = 1.5
    """What a mean reward of 1 adds to it, up to 1 in all (1.5 in GUI-Libra's code)."""
    max_sigma: NonNegativeFloat = 0.0
    """Advantages more than so many deviations from their mean become 0; 0 keeps all."""
    gamma: Annotated[float, Field(gt=0, le=1), CRITIC] = 1.0
    lam: Annotated[Ratio, CRITIC] = 0.95
    """gae: lambda of the policy's advantages."""
    length_adaptive_alpha: Annotated[NonNegativeFloat, CRITIC] = 0.0
    """gae: above 0, lambda is 1 - 1 / (alpha * length) instead of `lam` (VAPO: 0.05)."""
    min_lam: Annotated[Ratio, CRITIC, above("method.advantage.length_adaptive_alpha", 0)] = 0.0
    """gae: lower limit of a length-adaptive lambda. 0 is the paper's formula; lambda is then 0
    below a length of 1 / alpha, where the formula is negative.
    """


@dataclass(frozen=True, slots=True)
class CriticConfig(Strict):
    """The value function, where the advantage estimator is gae."""

    sharing: Literal["separate", "trunk"] = "separate"
    """separate: a model of its own. trunk: a head on the policy's hidden states."""
    init: Annotated[str, Field(min_length=1), _SEPARATE] = "policy"
    """separate: `policy`, or a folder or hub name of a reward model, or of a saved critic."""
    lam: Ratio = 1.0
    """lambda of the critic's targets; 1 makes them Monte-Carlo returns. A value other than
    `advantage.lam` decouples the two (VC-PPO).
    """
    conservative: NonNegativeFloat = 0.0
    """Above 0 the targets are B-Coder's, of a policy that takes its likeliest tokens; the number is
    alpha, reward for each unit of logits (1 in the paper). It needs optim.learning_rate = 0.
    """
    loss: Literal["mse", "clipped", "hl-gauss", "two-hot"] = "mse"
    clip: Annotated[PositiveFloat, only("method.critic.loss", "clipped")] = 0.2
    """clipped: largest distance of a value from the old one."""
    bins: Annotated[int, Field(ge=2), _BINNED] = 51
    """hl-gauss, two-hot: classes between `value_min` and `value_max`."""
    value_min: Annotated[float, _BINNED] = -1.0
    value_max: Annotated[float, _BINNED] = 1.0
    coef: Annotated[PositiveFloat, only("method.critic.sharing", "trunk")] = 0.5
    """trunk: weight of the value loss beside the policy's."""
    learning_rate: PositiveFloat = 2e-6
    weight_decay: NonNegativeFloat = 0.0
    max_grad_norm: NonNegativeFloat = 1.0
    warmup_steps: NonNegative = 0
    """Optimizer steps of the critic, with those of pre-training."""
    pretrain_steps: NonNegative = 0
    """Most steps of value pre-training before the policy moves; 0 for none."""
    pretrain_patience: Annotated[Positive, above("method.critic.pretrain_steps", 0)] = 10
    """Pre-training ends after so many steps without a better loss or explained variance."""
    min_explained_variance: Annotated[float, Field(le=1, allow_inf_nan=False)] = 0.0
    """Least explained variance of the returns before the policy's first step."""
    below_minimum: Literal["warn", "refuse", "ignore"] = "warn"


@dataclass(frozen=True, slots=True)
class Correction:
    """A way to weigh what the sampler drew; see algos/importance.py.

    Attributes:
        sequence: one ratio for a response; else one for each token.
        mask: weight 0 outside the limits; else the limit.
        low: default lower limit.
        high: default upper limit.
    """

    sequence: bool
    mask: bool
    low: float
    high: float


CORRECTIONS: Mapping[str, Correction] = {
    "token-truncate": Correction(sequence=False, mask=False, low=0.0, high=2.0),
    "sequence-truncate": Correction(sequence=True, mask=False, low=0.0, high=2.0),
    "token-mask": Correction(sequence=False, mask=True, low=0.0, high=3.0),
    "sequence-mask": Correction(sequence=True, mask=True, low=0.0, high=3.0),
    "icepop": Correction(sequence=False, mask=True, low=0.5, high=5.0),
}
"""Limits: 2 in TRL's and verl's documents for TIS, 3 the default of TRL 1.16 for its masks, 0.5 and
5 in NeMo RL's document for IcePop.
"""
_DECOUPLED_CAP = 2.0
"""Ours."""


@dataclass(frozen=True, slots=True)
class LossConfig(Strict):
    """What is minimised."""

    objective: str = "ppo"
    """ppo: the clipped surrogate. cispo: clipped importance weights on the log-likelihood."""
    ratio: Literal["token", "sequence"] = "token"
    """sequence: one ratio per response, the geometric mean of its tokens' (GSPO)."""
    clip_low: PositiveFloat = 0.2
    clip_high: PositiveFloat = 0.2
    dual_clip: NonNegativeFloat = 0.0
    """Bounds the loss at -dual_clip * A where A < 0; above 1, 0 for none."""
    pre_clip: NonNegativeFloat = 0.0
    """Clamps the ratio into [1 / pre_clip, pre_clip] before anything else; above 1, 0 for none."""
    aggregation: Literal["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "constant"] = (
        "token-mean"
    )
    """Over tokens of the mini-batch (DAPO), over responses of their tokens' mean (GRPO) or sum, or
    sum over responses * max_new_tokens (Dr. GRPO)."""
    positive_lm_coef: NonNegativeFloat = 0.0
    """Weight of the negative log-likelihood of correct responses (VAPO: 0.1)."""
    entropy_coef: NonNegativeFloat = 0.0
    kl_coef: NonNegativeFloat = 0.0
    """Weight of the KL to the initial policy. 0 loads no reference model and measures no KL."""
    kl_coef_by_task: dict[str, NonNegativeFloat] = field(default_factory=dict)
    """Replaces kl_coef for rows of these tasks (Seed1.5-VL, arXiv 2505.07062)."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    kl_gradient: Literal["weighted", "plain"] = "weighted"
    """In a loss. weighted: each token's estimate times its ratio of policy to sampler, which
    descends KL(pi, ref) with every estimator (as in TRL). plain: the estimate alone, GRPO's
    equation 3; k3 then descends KL(ref, pi), k2 KL(pi, ref), both on the policy's own tokens.
    """
    kl_place: Literal["loss", "reward"] = "loss"
    """reward: each token's reward less kl_coef * k1 (PPO); needs estimator gae."""
    importance_correction: Literal[
        "none",
        "token-truncate",
        "token-mask",
        "sequence-truncate",
        "sequence-mask",
        "icepop",
        "decoupled",
    ] = "none"
    """Where the sampler's probabilities differ from the trainer's: weighs a token by the ratio of
    trainer to sampler, its own or its response's, cut at the limits (truncate) or 0 beyond them
    (mask, icepop). decoupled: the decoupled objective. Default: the engine's, token-truncate with
    vllm, else none.
    """
    importance_floor: Annotated[NonNegativeFloat, _CORRECTED] = 0.0
    """Lower limit; 0 takes the correction's own: 0.5 for icepop, none for the others."""
    importance_cap: Annotated[NonNegativeFloat, _CORRECTED] = 0.0
    """Upper limit; 0 takes the correction's own: 2 (truncate, decoupled), 3 (mask), 5 (icepop)."""

    @property
    def importance_limits(self) -> tuple[float, float]:
        """Lower and upper limit of the importance ratio."""
        own = CORRECTIONS.get(self.importance_correction)
        low, high = (own.low, own.high) if own else (0.0, _DECOUPLED_CAP)
        return self.importance_floor or low, self.importance_cap or high

    @property
    def kl_most(self) -> float:
        """The largest KL coefficient of any task; 0 without a KL."""
        return max(self.kl_coef, *self.kl_coef_by_task.values(), 0.0)

    @property
    def kl_words(self) -> str:
        """The KL coefficient, and those of tasks, in words."""
        own = [f"{coef:g} where the task is {task}" for task, coef in self.kl_coef_by_task.items()]
        return f"({', '.join(own)}, else {self.kl_coef:g})" if own else f"{self.kl_coef:g}"
