"""Settings of what is added to a judged reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from assay.trainer.settings.kinds import (
    NonNegative,
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Ratio,
    Strict,
)
from assay.trainer.settings.method import Earned, Lines, TrainingMethod
from assay.trainer.settings.metric import Column
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.reading import above, only, other_than

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_DAPO = "DAPO, arXiv 2503.14476"

_LONG_COT = "Demystifying Long CoT, arXiv 2502.03373, appendix C.1"

_OBSERVE = "Observe-R1, arXiv 2505.12432, after its abstract; the form is a derivation"

_OVERLONG = other_than("method.shaping.overlong", "none")
_COSINE = only("method.shaping.cosine", True)
_CONCISE = above("method.shaping.concise_bonus", 0)
_CALIBRATED = above("method.shaping.budget_penalty", 0)
_PROGRESS = above("method.shaping.progress", 0)


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
    concise_bonus: NonNegativeFloat = 0.0
    """Added to a correct response of fewer than `concise_below` tokens (Observe-R1)."""
    concise_below: Annotated[NonNegative, _CONCISE] = 0
    budget_penalty: NonNegativeFloat = 0.0
    """Penalty of a response that is twice as long as its prompt's budget, in proportion (TRAAC)."""
    budget_least: Annotated[NonNegative, _CALIBRATED] = 0
    """Tokens of the budget where all samples of the prompt are correct."""
    budget_most: Annotated[NonNegative, _CALIBRATED] = 0
    """The same where none is; in between it follows the pass rate. 0: rollout.max_new_tokens."""
    progress: Ratio = 0.0
    """Share of the way to a success's reward that a failure exactly like it would earn (SRPO)."""
    progress_ngram: Annotated[Positive, _PROGRESS] = 2
    """Responses are compared by their n-grams of up to so many tokens."""
    progress_cuts: Annotated[Positive, _PROGRESS] = 4
    """At so many points on the way, evenly spaced."""

    @property
    def changes_rewards(self) -> bool:
        """Whether the training reward differs from the judged one."""
        numbers = (self.repetition_ngram, self.concise_bonus, self.budget_penalty, self.progress)
        return self.overlong == "soft" or self.cosine or any(numbers)

    def budget_up_to(self, max_new_tokens: int) -> int:
        """The largest budget of a prompt, in tokens."""
        return self.budget_most or max_new_tokens


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
    shaping = config.method.shaping
    if shaping.concise_bonus and not shaping.concise_below:
        return "method.shaping.concise_bonus needs method.shaping.concise_below: tokens, above 0"
    if shaping.budget_penalty and not 0 < shaping.budget_least <= shaping.budget_up_to(most):
        return (
            "method.shaping.budget_penalty needs method.shaping.budget_least between 1 and "
            f"method.shaping.budget_most = {shaping.budget_up_to(most)}"
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
    Part(
        "concise-bonus", "reward",
        "A correct response below a length earns more.",
        _OBSERVE, *switch("method.shaping.concise_bonus", 0.0),
        code=("algos.shaping.concise_bonus",),
        needs={
            "one-turn": "its length is that of one response",
            "verdicts": "only what is right earns it",
        },
        takes={"judged-rewards": "brevity earns"},
    ),
    Part(
        "difficulty-length", "reward",
        "Tokens beyond a budget cost, which is larger the fewer of a prompt's samples are right.",
        "TRAAC, arXiv 2510.01581, after its abstract; the form is a derivation",
        *switch("method.shaping.budget_penalty", 0.0),
        code=("algos.shaping.calibrated_length_penalty",),
        needs={
            "groups": "the budget follows the pass rate of a prompt's samples",
            "one-turn": "its length is that of one response",
            "verdicts": "a pass rate counts right responses",
        },
        takes={"judged-rewards": "length is penalised"},
    ),
    Part(
        "self-reference", "reward",
        "A wrong response earns by its likeness to the right one of its prompt that it is most "
        "like.",
        "SRPO (VLA), arXiv 2511.15605; its kernel for texts is a derivation",
        *switch("method.shaping.progress", 0.0),
        code=("algos.shaping.prefix_similarities", "methods.shaping.shape.progress_of"),
        needs={
            "groups": "failures are compared with successes of their prompt",
            "outcome-reward": "what is compared is whole responses",
            "verdicts": "it tells successes from failures",
        },
        takes={"judged-rewards": "likeness earns"},
    ),
)  # fmt: skip


def earns(config: Config, earned: Earned) -> Earned:
    """C(L) in place of J, and what is added."""
    shaping = config.method.shaping
    if shaping.cosine:
        earned = Earned(("C(L)", *earned.terms[1:]), "correct or not, says")
    added = (
        ("P", shaping.progress > 0),
        ("concise", shaping.concise_bonus > 0),
        ("O(L)", shaping.overlong == "soft"),
        ("D(L)", shaping.budget_penalty > 0),
        ("rep", shaping.repetition_ngram > 0),
    )
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
    if shaping.progress:
        lines.append(
            f"P: of a response that is not correct {shaping.progress:g} * s * (R' - R), R' of the "
            f"prompt's correct response with the largest similarity s, by up to "
            f"{shaping.progress_ngram}-grams of tokens at {shaping.progress_cuts} points"
        )
    if shaping.concise_bonus:
        lines.append(
            f"concise: {shaping.concise_bonus:g} for a correct response of fewer than "
            f"{shaping.concise_below:,} tokens"
        )
    if shaping.overlong == "soft":
        begin = most - shaping.overlong_cache
        lines.append(
            f"O(L): 0 up to L = {begin:,} tokens, then falling to -{shaping.overlong_factor:g} at "
            f"{most:,}"
        )
    if shaping.budget_penalty:
        low, high = shaping.budget_least, shaping.budget_up_to(most)
        lines.append(
            f"D(L): -{shaping.budget_penalty:g} * max(0, L - L*) / L*, the budget L* from {low:,} "
            f"tokens (all of the prompt's samples correct) to {high:,} (none)"
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
