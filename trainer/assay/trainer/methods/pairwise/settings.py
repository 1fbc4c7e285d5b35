"""The settings of pairwise training, method.pairwise, and what does not go with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.methods.pairwise.parts import METRICS, PARTS, earns, lines
from assay.trainer.settings.kinds import Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.reading import only, other_than

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


_BEST = only("method.pairwise.anchors", "best-of-n")


@dataclass(frozen=True, slots=True)
class PairwiseConfig(Strict):
    """Rewards that are probabilities of beating a response (Pairwise-RL, arXiv 2504.04950)."""

    against: Literal["none", "anchor", "group"] = "none"
    """anchor: its problem's anchor. group: every other response to its prompt, by a judge of pairs
    or of groups. none: rewards are no win probabilities."""
    anchors: Literal["none", "data", "best-of-n", "reference"] = "none"
    """data: data.columns.anchor. best-of-n: the `selector`'s best of n samples of the initial
    policy. reference: one sample of it."""
    n: Annotated[int, Field(ge=1), _BEST] = 8
    """best-of-n: samples of each problem."""
    selector: Annotated[str, _BEST] = "reward-model"
    """best-of-n: the verifier whose reward chooses; it is shown the problem's reference."""
    selector_parameters: Annotated[dict[str, str | int | float | bool], _BEST] = field(
        default_factory=dict
    )
    reward: Literal["win", "centred", "log-odds"] = "win"
    """w, w - 1/2, or log(w / (1 - w)) within +-log_odds_clip."""
    log_odds_clip: Annotated[
        float, Field(gt=0, allow_inf_nan=False), only("method.pairwise.reward", "log-odds")
    ] = 5.0


def pairwise_problem(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    algorithm, pairwise = config.method, config.method.pairwise
    key, on, group = "method.pairwise", pairwise.against != "none", pairwise.against == "group"
    estimator, anchors = algorithm.advantage.estimator, pairwise.anchors
    rules = (
        (
            estimator == "symmetric" and not group,
            f'method.advantage.estimator = "symmetric" needs {key}.against = "group"',
        ),
        (
            not on and (anchors, pairwise.reward) != ("none", "win"),
            f'{key}.anchors and {key}.reward need {key}.against = "anchor" or "group"',
        ),
        (
            pairwise.against == "anchor" and anchors == "none",
            f'{key}.against = "anchor" needs {key}.anchors: "data", "best-of-n" or "reference"',
        ),
        (
            group and pairwise.reward != "win",
            f'{key}.against = "group" needs {key}.reward = "win", a mean over pairs',
        ),
        (
            group and anchors == "none" and config.eval.prompts > 0,
            (
                f'{key}.against = "group" leaves nothing to hold a held-out answer against: set '
                f"{key}.anchors, or eval.prompts = 0"
            ),
        ),
        (
            anchors == "data" and not config.data.columns.anchor,
            f'{key}.anchors = "data" needs data.columns.anchor, the column of the anchors',
        ),
        (
            on and config.reward.parameters.get("on_gap", "fault") != "fault",
            (
                'reward.parameters.on_gap = "abstain" would train on a made-up reward; leave it '
                "out: a pair whose orders differ too much is a fault"
            ),
        ),
    )
    return next((problem for broken, problem in rules if broken), "")


METHOD = TrainingMethod(
    name="pairwise",
    settings=PairwiseConfig,
    is_on=other_than("method.pairwise.against", "none"),
    rank=100,
    hooks="assay.trainer.methods.pairwise.method:Pairwise",
    parts=PARTS,
    metrics=METRICS,
    earns=earns,
    lines=(Lines("Reward", 20, lines),),
    check=pairwise_problem,
)
