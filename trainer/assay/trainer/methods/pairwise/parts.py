"""Parts and words of rewards that are win probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.method import Earned
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, Switches, switch
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_PAIRWISE = "Pairwise-RL, arXiv 2504.04950; the form is a derivation"


def _order_gap_limit(config: Config) -> float:
    limit = config.reward.parameters.get("max_order_gap", 1.0)
    return float(limit) if isinstance(limit, int | float) else 1.0


def _without_order_gap(config: Config) -> Switches:
    return {"reward.parameters": {**config.reward.parameters, "max_order_gap": 1.0}}


PARTS: tuple[Part, ...] = (
    Part(
        "anchor-reward", "reward",
        "The reward is the chance of beating the problem's anchor, asked of a judge in both "
        "orders.",
        _PAIRWISE, lambda c: c.method.pairwise.against == "anchor", None,
        code=("rollouts.pairs.as_win",), needs={"one-turn": "an anchor is a response of one turn"},
        takes={"verdicts": "they are chances of beating an anchor"},
    ),
    Part(
        "group-in-pairs", "reward",
        "The reward is the mean chance of beating the other samples of the prompt.",
        _PAIRWISE, lambda c: c.method.pairwise.against == "group", None,
        code=("rollouts.pairs.fold",),
        needs={
            "groups": "samples of a prompt are held against one another",
            "one-turn": "a pair is two responses of one turn",
            "group-baseline": "the others of its group are a response's baseline",
        },
        takes={
            "spans": "a chance of winning is of the whole",
            "verdicts": "they are chances of beating the others",
        },
    ),
    Part(
        "best-of-n-anchors", "reward",
        "The anchor is the best of several samples of the initial policy by a scalar reward, "
        "instead of one sample of it.",
        _PAIRWISE, *switch("method.pairwise.anchors", "reference", "best-of-n"),
        code=("methods.pairwise.anchors.choose",),
    ),
    Part(
        "order-gap-fault", "reward",
        "A pair that a judge sees too differently in its two orders has no judgement.",
        _PAIRWISE, lambda c: c.method.pairwise.against != "none" and _order_gap_limit(c) < 1,
        _without_order_gap, code=("rollouts.pairs.order_gap",),
    ),
    Part(
        "centred-win", "reward",
        "The chance of winning counts from parity, w - 1/2.",
        _PAIRWISE, *switch("method.pairwise.reward", "win", "centred"),
        code=("algos.shaping.win_reward",), takes={"judged-rewards": "they are taken from parity"},
    ),
    Part(
        "log-odds-win", "reward",
        "The chance of winning counts by its log-odds, within bounds.",
        _PAIRWISE, *switch("method.pairwise.reward", "win", "log-odds"),
        code=("algos.shaping.win_reward",), takes={"judged-rewards": "they are log-odds"},
    ),
)  # fmt: skip


def earns(_config: Config, earned: Earned) -> Earned:
    """A win probability."""
    return Earned(earned.terms, "w: what is given by")


def lines(config: Config) -> list[str]:
    """What a response is compared with."""
    pairwise = config.method.pairwise
    form = {
        "win": "w",
        "centred": "w - 1/2",
        "log-odds": f"log(w / (1 - w)) within +-{pairwise.log_odds_clip:g}",
    }[pairwise.reward]
    beaten = {"anchor": "the problem's anchor", "group": "the other samples, mean over pairs"}
    anchors = {
        "data": "a column of the data",
        "best-of-n": f"the best of {count(pairwise.n, 'sample')} of the initial policy, by the "
        f"verifier {pairwise.selector}",
        "reference": "one sample of the initial policy",
    }
    lines = [f"J = {form}, where w is the chance of beating {beaten[pairwise.against]}"]
    if pairwise.anchors != "none":
        only = " (for the evaluation alone)" if pairwise.against == "group" else ""
        lines.append(f"anchor{only}: {anchors[pairwise.anchors]}")
    return [*lines, "a pair that the judge abstains from is a fault, never parity"]


METRICS: tuple[Metric, ...] = metrics("reward",
    ("order_gap", "probability",
     ("Mean difference between the two orders in which a judge of pairs was shown a response "
      "and what it is held against (arXiv 2504.04950). Null with other judges.")),
)  # fmt: skip
