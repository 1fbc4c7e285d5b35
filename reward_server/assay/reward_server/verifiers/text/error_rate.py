"""`error-rate`: word or character error rate of a transcript against a reference; reward 1 - rate.

How. The rate is the least number of insertions, deletions and substitutions that turn the
reference's words (`unit=word`) or characters (`unit=character`) into the answer's, over the number
of the reference's; the reward is 1 minus the rate, not below 0. The reference with the lowest rate
counts. `normalise` brings both into the form of `match` first: case, punctuation (except in
numbers) and white space do not count.

What a policy could game. Nothing is earned for an answer whose rate is 1 or more, and an empty
answer has rate 1, so there is no gain in silence; but no loss in noise either. Half of the range
needs no right answer.

Limits. References of at most 20,000 units, texts of at most 100,000 characters. Words are parted by
spaces: take characters for scripts without them.

Differences from jiwer and NIST's sclite:
1. The rate is of one pair, not of a corpus; a reward needs one number per response.
2. No compound-word, filler or number normalisation.

Sources: Levenshtein 1966; Myers 1999 for the bit-parallel distance; Morris et al., From WER and RIL
to MER and WIL, Interspeech 2004.

Measured: distances equal to the full table of the textbook on 300 random pairs, and seven worked
rates (`tests/unit/test_verifier_text_overlap.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Component,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import verifier
from assay.reward_server.verifiers.text.distances import edit_distance
from assay.reward_server.verifiers.text.forms import Normalization
from assay.reward_server.verifiers.text.parts import (
    Extract,
    NoPart,
    graded,
    part_of,
    shown,
    unparsed,
    usable_answers,
)

_FORM = Normalization(punctuation="remove")
_MOST_UNITS = 20_000
_MOST_CHARS = 100_000
_GLANCE_PAIRS = 4_000_000  # about 1 ms


def _glance(item: VerifierItem, **_: object) -> Judgement | None:
    longest = max((len(text) for text in item.references), default=0)
    if len(item.references) > 8 or longest * len(item.response()) > _GLANCE_PAIRS:
        return None
    return error_rate.judge(item)


@verifier(
    "error-rate",
    tasks=("transcription",),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    glance=_glance,
)
def error_rate(
    item: VerifierItem,
    *,
    extract: Extract = "final",
    unit: Annotated[
        Literal["word", "character"],
        "What errors are counted in: word, or character without white space.",
    ] = "word",
    normalise: Annotated[bool, "Whether case, punctuation and white space are ignored."] = True,
) -> Judgement:
    """Word or character error rate of a transcript; the reward is 1 minus the rate.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a reference that is blank or over-long, or of which
            normalisation leaves nothing.
    """
    references = [
        _reference(_units(text, unit, normalise=normalise), unit)
        for text in usable_answers(item, _MOST_CHARS)
    ]
    part = part_of(item.response(), extract, limit=_MOST_CHARS)
    if isinstance(part, NoPart):
        return unparsed("accuracy", part.why)
    answer = _units(part.text, unit, normalise=normalise)
    rate = min(_rate(answer, reference) for reference in references)
    score = max(0.0, 1.0 - rate)
    return Judgement.composed(
        graded(score),
        (Component("accuracy", score), Component("error-rate", rate, 0.0)),
        extracted_answer=shown(part.text),
        explanation=f"{unit} error rate {rate:.4f}",
    )


def _rate(answer: Sequence[str], reference: Sequence[str]) -> float:
    """Errors over the reference's length; a bound of it where no reward is left anyway."""
    if len(answer) >= 2 * len(reference):
        return (len(answer) - len(reference)) / len(reference)
    return edit_distance(reference, answer) / len(reference)


def _units(text: str, unit: str, *, normalise: bool) -> Sequence[str]:
    text = _FORM.apply(text) if normalise else text
    return text.split() if unit == "word" else "".join(text.split())


def _reference(units: Sequence[str], unit: str) -> Sequence[str]:
    if not 0 < len(units) <= _MOST_UNITS:
        raise Unjudgeable(
            UNUSABLE_REFERENCE,
            f"a reference has {len(units)} {unit}s; 1 to {_MOST_UNITS} can be compared",
        )
    return units
