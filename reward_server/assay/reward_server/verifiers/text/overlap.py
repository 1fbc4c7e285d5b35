"""What the verifiers of text overlap (`rouge`, `bleu`, `chrf`) share: bounds and the judgement.

A response of more than 100,000 characters is `overlong`, 0: the libraries hold every n-gram in
memory, and a policy must not earn a time-out instead of a score.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from assay.reward_server.domain import Component, Judgement, VerifierItem
from assay.reward_server.verifiers.text.parts import final_text, graded, usable_answers

MAX_CHARS: Final = 100_000

VERDICTS: Final = ("correct", "partial", "incorrect", "overlong")

Part = Annotated[
    Literal["whole", "final"], "whole: the response; final: what follows the last </think>."
]

OVERLONG: Final = {"response": "a" * (MAX_CHARS + 1), "reference": "text", "verdict": "overlong"}
"""The example of a response that is too long."""


def texts(item: VerifierItem, part: str) -> tuple[str, tuple[str, ...]]:
    """The judged text, empty where a thought is not closed, and the references.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank or over-long reference.
    """
    response = item.response()
    text = response if part == "whole" else final_text(response)
    return text or "", usable_answers(item, MAX_CHARS)


def overlong(measure: str, why: str = f"longer than {MAX_CHARS:,} characters") -> Judgement:
    """The judgement of a response that is too long to be compared."""
    return Judgement.composed(
        "overlong", (Component(measure, 0.0),), explanation=f"the response is {why}"
    )


def judged(measure: str, score: float, others: dict[str, float] | None = None) -> Judgement:
    """The judgement of a score that may leave [0, 1] by rounding.

    Args:
        measure: the name of the component that is rewarded.
        score: about 0 to 1.
        others: further components, not rewarded.
    """
    score = _rounded(score)
    return Judgement.composed(
        graded(score),
        (
            Component(measure, score),
            *(Component(name, _rounded(value), 0.0) for name, value in (others or {}).items()),
        ),
        explanation=f"{measure} {score:.4f}",
    )


def _rounded(score: float) -> float:
    if score > 1.0 - 1e-12:
        return 1.0
    return max(score, 0.0)
