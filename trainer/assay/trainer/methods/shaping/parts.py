"""Parts and words of shaped rewards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.method import Earned
from assay.trainer.settings.part import Part, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

_DAPO = "DAPO, arXiv 2503.14476"
_LONG_COT = "Demystifying Long CoT, arXiv 2502.03373, appendix C.1"


PARTS: tuple[Part, ...] = (
    Part(
        "soft-overlong",
        "reward",
        "A penalty that grows over the last tokens before the limit.",
        f"{_DAPO}, section 3.4, equation 13",
        lambda c: c.method.shaping.overlong == "soft",
        to("method.shaping.overlong", "none"),
        code=("algos.shaping.soft_overlong",),
        needs={
            "one-turn": "its length is that of one response",
        },
        takes={
            "judged-rewards": "length is penalised",
        },
    ),
    Part(
        "overlong-filter",
        "reward",
        "Responses cut at the limit leave the loss.",
        f"{_DAPO}, section 3.4",
        lambda c: c.method.shaping.overlong == "filter",
        to("method.shaping.overlong", "none"),
        code=("methods.shaping.shape.shape",),
        needs={
            "one-turn": "its length is that of one response",
        },
    ),
    Part(
        "cosine-length",
        "reward",
        "A reward by correctness and length: the shorter a right response the better, the longer a "
        "wrong one.",
        _LONG_COT,
        lambda c: c.method.shaping.cosine,
        to("method.shaping.cosine", False),
        code=("algos.shaping.cosine_length_reward",),
        needs={
            "one-turn": "its length is that of one response",
            "verdicts": "right and wrong responses earn by different curves",
        },
        takes={
            "judged-rewards": "they depend on length",
        },
    ),
    Part(
        "repetition-penalty",
        "reward",
        "Repeated n-grams of tokens cost a response that is not correct.",
        _LONG_COT,
        lambda c: c.method.shaping.repetition_ngram > 0,
        to("method.shaping.repetition_ngram", 0),
        code=("algos.shaping.ngram_repetition_penalty",),
        needs={
            "one-turn": "its n-grams are those of one response",
        },
        takes={
            "judged-rewards": "repetition is penalised",
        },
    ),
)


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
