"""`palindrome`: the response reads the same both ways and holds the reference's word."""

from __future__ import annotations

from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Candidate,
    Component,
    Judgement,
    ParameterSpec,
    Unjudgeable,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)

_SPEC = VerifierSpec(
    name="palindrome",
    version="1",
    description="The response reads the same both ways and holds the reference's word.",
    tasks=("palindrome",),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=("correct", "incorrect"),
    parameters=(
        ParameterSpec(
            "min_letters", "int", 3, "Fewest letters that a palindrome has, from 1.", minimum=1
        ),
    ),
    isolation="inline",
)


class PalindromeVerifier(Verifier):
    """Judges palindromes."""

    @property
    def spec(self) -> VerifierSpec:
        """What it is."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """One item for each verdict."""
        return (
            VerifierExample(_example("Never odd or even", "odd"), "correct"),
            VerifierExample(_example("Quite odd", "odd"), "incorrect"),
        )

    def judge(self, item: VerifierItem) -> Judgement:
        """Holds the letters of the response against their mirror image.

        Raises:
            Unjudgeable: UNUSABLE_REFERENCE for a reference without letters.
        """
        words = [_letters(reference) for reference in item.answers()]
        if not all(words):
            raise Unjudgeable(UNUSABLE_REFERENCE, "a reference has no letters; write a word")
        text = _letters(item.response())
        mirrored = len(text) >= int(str(item.parameters["min_letters"])) and text == text[::-1]
        holds = any(word in text for word in words)
        return Judgement.composed(
            "correct" if mirrored and holds else "incorrect",
            (
                Component("mirrored", float(mirrored), 0.5),
                Component("word", float(mirrored and holds), 0.5),
            ),
            explanation=f"{'reads' if mirrored else 'does not read'} the same both ways, "
            f"{'holds' if holds else 'does not hold'} the word",
        )


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _example(response: str, reference: str) -> VerifierItem:
    return VerifierItem(Candidate(response), references=(reference,), parameters=_SPEC.complete({}))
