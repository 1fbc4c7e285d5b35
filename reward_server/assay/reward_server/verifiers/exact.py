"""`exact`: the response, or a stated part of it, equals a reference as text.

Not a parser: "0.5" and "1/2" differ here. For numbers and formulas there is `math`. Linear in the
length of the texts.

Limits. Equality and nothing else: a full stop, a unit or another spelling of the same answer is
incorrect. `match` leaves such things out by stated rules.
"""

from __future__ import annotations

import unicodedata

from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNUSABLE_REFERENCE,
    Candidate,
    Component,
    Example,
    Item,
    Judgement,
    ParameterSpec,
    Unjudgeable,
    Verifier,
    VerifierSpec,
)

_SHOWN_CHARS = 200

_SPEC = VerifierSpec(
    name="exact",
    version="1",
    description="The response, or a stated part of it, equals a reference as text (after NFC).",
    tasks=("exact",),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=("correct", "incorrect", "unparsed"),
    parameters=(
        ParameterSpec("case_sensitive", "bool", True, "Whether upper and lower case differ."),
        ParameterSpec("strip", "bool", True, "Whether white space around the text is ignored."),
        ParameterSpec(
            "extract",
            "string",
            "whole",
            "The part that is compared: the whole response, its last line that is not blank, or "
            "what follows the last marker (verdict unparsed where there is none).",
            allowed_values=("whole", "last-line", "after-marker"),
        ),
        ParameterSpec("marker", "string", "####", "The marker of extract=after-marker; not empty."),
    ),
    cacheable=False,  # judging again costs less than looking up
    isolation="inline",
)


def extract(response: str, how: str, marker: str) -> str | None:
    """The part of a response that is compared; None when the marker is absent.

    Args:
        response: the policy's text.
        how: "whole", "last-line" or "after-marker".
        marker: what the answer follows; used by "after-marker" only.
    """
    if how == "after-marker":
        _, found, tail = response.rpartition(marker)
        return tail if found else None
    if how == "last-line":
        return response.rstrip().replace("\r", "\n").rpartition("\n")[2]
    return response


def normalise(text: str, *, case_sensitive: bool, strip: bool) -> str:
    """The text in the form in which it is compared."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n"))
    if not case_sensitive:
        text = unicodedata.normalize("NFC", text.casefold())
    return text.strip() if strip else text


class ExactVerifier(Verifier):
    """Compares texts."""

    @property
    def spec(self) -> VerifierSpec:
        """What it is."""
        return _SPEC

    @property
    def examples(self) -> tuple[Example, ...]:
        """A right, a wrong and an empty response."""
        return (
            Example(_example("Paris", "Paris"), "correct"),
            Example(_example("Lyon", "Paris"), "incorrect"),
            Example(_example("", "Paris"), "incorrect"),
        )

    def judge(self, item: Item) -> Judgement:
        """Compares the extracted text with each reference.

        Raises:
            Unjudgeable: UNUSABLE_REFERENCE for a blank reference, INVALID_PARAMETER for an empty
                marker.
        """
        marker = str(item.parameters["marker"])
        how = str(item.parameters["extract"])
        if how == "after-marker" and not marker:
            raise Unjudgeable(INVALID_PARAMETER, "parameter 'marker' must not be empty")
        references = item.answers()
        if not all(reference.strip() for reference in references):
            raise Unjudgeable(UNUSABLE_REFERENCE, "a reference is blank")
        answer = extract(item.response(), how, marker)
        if answer is None:
            return Judgement.composed(
                "unparsed",
                (Component("correctness", 0.0),),
                explanation=f"the response does not hold the marker {marker[:40]!r}",
            )
        case_sensitive = bool(item.parameters["case_sensitive"])
        strip = bool(item.parameters["strip"])
        text = normalise(answer, case_sensitive=case_sensitive, strip=strip)
        right = any(
            text == normalise(reference, case_sensitive=case_sensitive, strip=strip)
            for reference in references
        )
        shown = answer.strip()[:_SHOWN_CHARS]
        return Judgement.composed(
            "correct" if right else "incorrect",
            (Component("correctness", float(right)),),
            extracted_answer=shown,
            explanation="equals a reference" if right else "equals no reference",
        )


def _example(response: str, reference: str) -> Item:
    return Item(Candidate(response), references=(reference,), parameters=_SPEC.complete({}))
