"""Settings of what is added to a judged reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.settings.kinds import NonNegative, PositiveFloat, Strict
from assay.trainer.settings.method import Earned, Lines, TrainingMethod
from assay.trainer.settings.metric import Column
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import above, only, other_than

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_DAPO = "DAPO, arXiv 2503.14476"

_LONG_COT = "Demystifying Long CoT, arXiv 2502.03373, appendix C.1"

_OVERLONG = other_than("method.shaping.overlong", "none")
_COSINE = only("method.shaping.cosine", True)


@dataclass(frozen=True, slots=True)
class ShapingConfig(Strict):
    """What is added to the reward of a judged response; the verdict stays as it is."""

    overlong: Literal["none", "soft", "filter"] = "none"
    """soft: a penalty that grows over the last `overlong_cache` tokens. filter: responses that hit
    max_new_tokens leave the loss."""
    overlong_cache: Annotated[NonNegative, _OVERLONG] = 0
    overlong_factor: Annotated[PositiveFloat, _OVERLONG] = 1.0
    cosine: bool = False
    """Replaces the reward by one that depends on correctness and length (arXiv 2502.03373)."""
    cosine_correct: Annotated[tuple[float, float], _COSINE] = (0.5, 1.0)
    """Reward of a correct response at full and at zero length."""
    cosine_wrong: Annotated[tuple[float, float], _COSINE] = (-1.0, -0.5)
    """Reward of a wrong response at zero and at full length."""
    cosine_exceed: Annotated[float, _COSINE] = -1.0
    repetition_ngram: NonNegative = 0
    """Penalises repeated n-grams of tokens in responses that are not correct; 0 for none."""
    repetition_penalty: Annotated[
        float, Field(le=0, allow_inf_nan=False), above("method.shaping.repetition_ngram", 0)
    ] = -1.0
    """The reward of pure repetition."""

    @property
    def changes_rewards(self) -> bool:
        """Whether the training reward differs from the judged one."""
        return self.overlong == "soft" or self.cosine or bool(self.repetition_ngram)


def check(config: Config) -> str:
    """Why settings do not fit, and what to do; empty where they do."""
    most = config.rollout.max_new_tokens
    if config.method.shaping.overlong == "soft" and not (
        0 < config.method.shaping.overlong_cache <= most
    ):
        return (
            'method.shaping.overlong = "soft" needs method.shaping.overlong_cache between 1 and '
            f"rollout.max_new_tokens = {most}"
        )
    return ""


PARTS: tuple[Part, ...] = (
    Part(
        "soft-overlong", "reward",
        "A penalty that grows over the last tokens before the limit.",
        f"{_DAPO}, section 3.4, equation 13", *switch("method.shaping.overlong", "none", "soft"),
        code=("algos.shaping.soft_overlong",),
        needs={"one-turn": "its length is that of one response"},
        takes={"judged-rewards": "length is penalised"},
    ),
    Part(
        "overlong-filter", "reward",
        "Responses cut at the limit leave the loss.",
        f"{_DAPO}, section 3.4", *switch("method.shaping.overlong", "none", "filter"),
        code=("methods.shaping.shape.shape",),
        needs={"one-turn": "its length is that of one response"},
    ),
    Part(
        "cosine-length", "reward",
        "A reward by correctness and length: the shorter a right response the better, the longer a "
        "wrong one.",
        _LONG_COT, *switch("method.shaping.cosine", False),
        code=("algos.shaping.cosine_length_reward",),
        takes={"judged-rewards": "they depend on length"},
        needs={
            "one-turn": "its length is that of one response",
            "verdicts": "right and wrong responses earn by different curves",
        },
    ),
    Part(
        "repetition-penalty", "reward",
        "Repeated n-grams of tokens cost a response that is not correct.",
        _LONG_COT, *switch("method.shaping.repetition_ngram", 0),
        code=("algos.shaping.ngram_repetition_penalty",),
        needs={"one-turn": "its n-grams are those of one response"},
        takes={"judged-rewards": "repetition is penalised"},
    ),
)  # fmt: skip


def earns(config: Config, earned: Earned) -> Earned:
    """C(L) in place of J, and what is added."""
    shaping = config.method.shaping
    if shaping.cosine:
        earned = Earned(("C(L)", *earned.terms[1:]), "correct or not, says")
    added = (("O(L)", shaping.overlong == "soft"), ("rep", shaping.repetition_ngram > 0))
    return Earned((*earned.terms, *(term for term, on in added if on)), earned.judged)


def lines(config: Config) -> list[str]:
    """What is added to a reward."""
    shaping, most = config.method.shaping, config.rollout.max_new_tokens
    lines = []
    if shaping.cosine:
        (right_end, right_start), (wrong_start, wrong_end) = (
            shaping.cosine_correct,
            shaping.cosine_wrong,
        )
        lines.append(
            f"C(L): right responses from {right_start:g} (short) to {right_end:g} (long), wrong "
            f"ones from {wrong_start:g} to {wrong_end:g}, by half a cosine of the length L; "
            f"{shaping.cosine_exceed:g} at {most:,} tokens"
        )
    if shaping.overlong == "soft":
        begin = most - shaping.overlong_cache
        lines.append(
            f"O(L): 0 up to L = {begin:,} tokens, then falling to -{shaping.overlong_factor:g} at "
            f"{most:,}"
        )
    if shaping.overlong == "filter":
        lines.append(f"responses cut at {most:,} tokens leave the loss")
    if shaping.repetition_ngram:
        lines.append(
            f"rep: {shaping.repetition_penalty:g} * the share of repeated "
            f"{shaping.repetition_ngram}-grams of tokens, where the response is not correct"
        )
    return lines


COLUMNS = (
    Column(
        "shaped", ("shaped_reward",), 8, 9, "with penalties", lambda v: f"{v:.3f}",
        lambda c: c.method.shaping.changes_rewards, after="reward",
    ),
)  # fmt: skip

METHOD = TrainingMethod(
    name="shaping",
    settings=ShapingConfig,
    is_on=lambda c: c.method.shaping.changes_rewards or c.method.shaping.overlong != "none",
    rank=110,
    hooks="assay.trainer.methods.shaping.shape:Shaping",
    parts=PARTS,
    columns=COLUMNS,
    earns=earns,
    lines=(Lines("Reward", 30, lines),),
    check=check,
)
