"""Settings of a gold verifier, which watches the one that trains (arXiv 2503.22230)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from assay.trainer.settings.kinds import Positive, Scalar, Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Column, Metric, metrics, small
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import other_than

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_GIVEN = (other_than("method.gold.verifier", ""),)


@dataclass(frozen=True, slots=True)
class GoldConfig(Strict):
    """A second verifier that judges what was judged, and trains nothing.

    Its rewards are in the units of the verifier's own, or the gap says nothing.
    """

    verifier: str = ""
    """Of the same service, one that is trusted more; empty for none."""
    parameters: Annotated[dict[str, Scalar], *_GIVEN] = field(default_factory=dict)
    every: Annotated[Positive, *_GIVEN] = 1
    """Steps from one judged by it to the next."""


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    gold, reward = config.method.gold, config.reward
    if (gold.verifier, gold.parameters) == (reward.verifier, reward.parameters):
        return (
            f'method.gold.verifier = "{gold.verifier}" is the verifier that trains: the gap is 0; '
            "name another one"
        )
    return ""


def lines(config: Config) -> list[str]:
    """Who watches, and how often."""
    gold = config.method.gold
    often = "every step" if gold.every == 1 else f"each {gold.every}th step"
    return [f"the verifier {gold.verifier} judges the responses of {often} too, and trains nothing"]


PARTS: tuple[Part, ...] = (
    Part(
        "gold", "reward",
        "A second verifier judges the same responses and trains nothing: the gap is what the first "
        "one was talked into.",
        "Data scaling, arXiv 2503.22230, its gap of proxy and ground truth; the panel is ours",
        *switch("method.gold.verifier", ""),
        code=("methods.gold.method.gap_numbers",),
        needs={"one-turn": "the gold verifier judges one response"},
    ),
)  # fmt: skip

METRICS: tuple[Metric, ...] = metrics("gold",
    ("gold_proxy", "reward", "Mean reward by the verifier that trains, where both judged.",
     "proxy"),
    ("gold_reward", "reward", "Mean reward of the same responses by the gold verifier.", "reward"),
    ("gold_gap", "reward",
     "gold_proxy - gold_reward: the hacking gap, where it grows with the reward.", "gap"),
    ("gold_refused", "share",
     "Responses `correct` by the verifier that are not by gold; null where none is correct.",
     "refused"),
    ("gold_missing", "share",
     "Judged responses that gold gave no judgement of: they are in no other line here.",
     "missing"),
)  # fmt: skip

METHOD = TrainingMethod(
    name="gold",
    settings=GoldConfig,
    is_on=lambda c: bool(c.method.gold.verifier),
    rank=110,
    hooks="assay.trainer.methods.gold.method:GoldWatch",
    parts=PARTS,
    metrics=METRICS,
    metric_groups={
        "gold": "The verifier against a gold one (`method.gold`), over responses that both judged; "
        "null in steps that it does not judge"
    },
    columns=(
        Column(
            "gap", ("gold_gap",), 8, 3, "reward less gold reward", small,
            lambda c: bool(c.method.gold.verifier), after="correct",
        ),
    ),
    lines=(Lines("Reward", 30, lines),),
    check=check,
    asks=lambda c: (c.method.gold.verifier,),
)  # fmt: skip
