"""Settings of FIRE (arXiv 2410.21236)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.clients.toml_config import STRICT
from assay.trainer.methods.fire.metrics import METRICS
from assay.trainer.methods.fire.parts import PARTS, lines
from assay.trainer.settings.kinds import PositiveFloat
from assay.trainer.settings.method import Lines, Method

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


VLLM_MAX_LOGPROBS = 20


@dataclass(frozen=True, slots=True)
class FireConfig:
    """FIRE (arXiv 2410.21236): the first token of each response from a flat distribution.

    Only where the policy learns, never in the evaluation.
    """

    __pydantic_config__ = STRICT

    enabled: bool = False
    temperature: PositiveFloat = 30.0
    """Of the first token (30 in the code of the paper's first author)."""
    top_k: Annotated[int, Field(ge=2)] = 16
    """It is one of so many likeliest (16 in the same code)."""
    mode: Literal["mask", "exact", "parity"] = "exact"
    """exact: the first token is in the policy's loss, weighed by pi_old / probability that it was
    drawn with, at most 1; it kept pass@1 (docs/results.md). mask: it is not in the loss. parity: it
    is, as if the policy had drawn it."""


def check(config: Config) -> str:
    """What FIRE does not go with here, and what to do; empty where all is well."""
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
    return ""


METHOD = Method(
    name="fire",
    settings=FireConfig,
    is_on=lambda c: c.method.fire.enabled,
    rank=20,
    hooks="assay.trainer.methods.fire.method:Fire",
    parts=PARTS,
    metrics=METRICS,
    lines=(Lines("Sampling", 40, lines),),
    check=check,
)
