"""Settings of what is added to a judged reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.clients.toml_config import STRICT
from assay.trainer.methods.shaping.parts import PARTS, earns, lines
from assay.trainer.settings.kinds import NonNegative, PositiveFloat
from assay.trainer.settings.method import Lines, Method
from assay.trainer.settings.metric import Column

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class ShapingConfig:
    """What is added to the reward of a judged response; the verdict stays as it is."""

    __pydantic_config__ = STRICT

    overlong: Literal["none", "soft", "filter"] = "none"
    """soft: a penalty that grows over the last `overlong_cache` tokens. filter: responses that hit
    max_new_tokens leave the loss."""
    overlong_cache: NonNegative = 0
    overlong_factor: PositiveFloat = 1.0
    cosine: bool = False
    """Replaces the reward by one that depends on correctness and length (arXiv 2502.03373)."""
    cosine_correct: tuple[float, float] = (0.5, 1.0)
    """Reward of a correct response at full and at zero length."""
    cosine_wrong: tuple[float, float] = (-1.0, -0.5)
    """Reward of a wrong response at zero and at full length."""
    cosine_exceed: float = -1.0
    repetition_ngram: NonNegative = 0
    """Penalises repeated n-grams of tokens in responses that are not correct; 0 for none."""
    repetition_penalty: Annotated[float, Field(le=0, allow_inf_nan=False)] = -1.0
    """What a response of nothing but repetition gets."""

    @property
    def changes_rewards(self) -> bool:
        """Whether what trains differs from what was judged."""
        return self.overlong == "soft" or self.cosine or bool(self.repetition_ngram)


def check(config: Config) -> str:
    """What does not go together, and what to do; empty where all does."""
    most = config.rollout.max_new_tokens
    if config.method.shaping.overlong == "soft" and not (
        0 < config.method.shaping.overlong_cache <= most
    ):
        return (
            'method.shaping.overlong = "soft" needs method.shaping.overlong_cache between 1 and '
            f"rollout.max_new_tokens = {most}"
        )
    return ""


METHOD = Method(
    name="shaping",
    settings=ShapingConfig,
    is_on=lambda c: c.method.shaping.changes_rewards or c.method.shaping.overlong != "none",
    rank=110,
    hooks="assay.trainer.methods.shaping.method:Shaping",
    parts=PARTS,
    columns=(
        Column(
            "shaped",
            ("shaped_reward",),
            8,
            9,
            "with penalties",
            lambda v: f"{v:.3f}",
            lambda c: c.method.shaping.changes_rewards,
            after="reward",
        ),
    ),
    earns=earns,
    lines=(Lines("Reward", 30, lines),),
    check=check,
)
