"""Settings of FIRE (arXiv 2410.21236)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.settings.kinds import PositiveFloat, Strict
from assay.trainer.settings.method import Lines, TrainingMethod
from assay.trainer.settings.metric import Metric, metrics
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import only

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class FireConfig(Strict):
    """FIRE (arXiv 2410.21236): the first token of each response from a flat distribution.

    In training only.
    """

    enabled: bool = False
    temperature: PositiveFloat = 30.0
    """Of the first token (30 in the code of the paper's first author)."""
    top_k: Annotated[int, Field(ge=2)] = 16
    """It is one of so many likeliest (16 in the same code)."""
    mode: Literal["mask", "exact", "parity"] = "exact"
    """exact: the first token is in the policy's loss with the weight pi_old / drawing probability,
    at most 1; it kept pass@1 (docs/understand/results/methods.md). mask: it is not in the loss.
    parity: it is, as if the policy had drawn it."""


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    rollout, fire = config.rollout, config.method.fire
    if not fire.enabled:
        return ""
    if fire.mode == "mask" and rollout.max_new_tokens == 1:
        return (
            'method.fire.mode = "mask" leaves nothing to learn from where rollout.max_new_tokens '
            "= 1; raise it"
        )
    if fire.mode == "exact" and config.method.loss.ratio == "sequence":
        return (
            'method.fire.mode = "exact" needs method.loss.ratio = "token": it weighs a token; with '
            '"sequence" use mode = "mask"'
        )
    if rollout.backend == "vllm" and not rollout.vllm.own_draws:
        return (
            "method.fire draws first tokens from a distribution of its own, which vLLM itself does "
            'not; set rollout.vllm.draws = "run"'
        )
    return ""


PARTS: tuple[Part, ...] = (
    Part(
        "fire", "sampling",
        "The first token of each response comes from a flat distribution over the likeliest few; "
        "the evaluation decodes regularly.",
        "FIRE, arXiv 2410.21236", *switch("method.fire.enabled", False),
        code=("algos.sampling.fire_first_token_probs",),
        needs={
            "one-turn": "each turn has a first token",
            "drawing": "it draws first tokens",
        },
        takes={"first-tokens": "first tokens come from a flat distribution"},
    ),
)  # fmt: skip


def lines(config: Config) -> list[str]:
    """Where first tokens come from."""
    fire = config.method.fire
    in_loss = {
        "mask": "it is not in the policy's loss",
        "exact": "in the loss it is weighed by min(pi_old / that probability, 1)",
        "parity": "in the loss it counts as if the policy had drawn it",
    }[fire.mode]
    drawn = f"softmax(the {fire.top_k} largest logits / {fire.temperature:g})"
    return [
        f"the first token of a response from {drawn}; {in_loss}",
        "the evaluation decodes regularly, its first tokens too",
    ]


METRICS: tuple[Metric, ...] = metrics("drift",
    ("first_weight", "ratio",
     ("Mean weight min(pi_old / drawn with, 1) of the first tokens in the loss, with "
      '`method.fire.mode = "exact"` (arXiv 2410.21236).')),
)  # fmt: skip

METHOD = TrainingMethod(
    name="fire",
    settings=FireConfig,
    is_on=only("method.fire.enabled", True),
    rank=20,
    hooks="assay.trainer.methods.fire.method:Fire",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 40, lines),),
    check=check,
)
