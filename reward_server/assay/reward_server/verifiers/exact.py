"""`exact`: the response, or a stated part of it, equals a reference as text.

Not a parser: "0.5" and "1/2" differ here. For numbers and formulas there is `math`. Linear in the
length of the texts.

Limits. Equality and nothing else: a full stop, a unit or another spelling of the same answer is
incorrect. `match` leaves such things out by stated rules.

Measured: no error to measure: it is equality of texts, checked by laws over any text
(`tests/property/test_verifier_text_laws.py`).
"""

from __future__ import annotations

import unicodedata
from typing import Annotated, Literal

from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNUSABLE_REFERENCE,
    Component,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import verifier

_SHOWN_CHARS = 200


def stated_part(response: str, how: str, marker: str) -> str | None:
    """The part of a response to compare; None when the marker is absent.

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
    """The text in the form to compare (NFC)."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n"))
    if not case_sensitive:
        text = unicodedata.normalize("NFC", text.casefold())
    return text.strip() if strip else text


@verifier(
    "exact", verdicts=("correct", "incorrect", "unparsed"), isolation="inline", cacheable=False
)
def exact(
    item: VerifierItem,
    *,
    case_sensitive: Annotated[bool, "Whether upper and lower case differ."] = True,
    strip: Annotated[bool, "Whether white space around the text is ignored."] = True,
    extract: Annotated[
        Literal["whole", "last-line", "after-marker"],
        "The part that is compared: the whole response, its last line that is not blank, or "
        "what follows the last marker (verdict unparsed where there is none).",
    ] = "whole",
    marker: Annotated[str, "The marker of extract=after-marker; not empty."] = "####",
) -> Judgement:
    """The response, or a stated part of it, equals a reference as text (after NFC).

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank reference, INVALID_PARAMETER for an empty
            marker.
    """
    if extract == "after-marker" and not marker:
        raise Unjudgeable(INVALID_PARAMETER, "parameter 'marker' must not be empty")
    references = item.answers()
    if not all(reference.strip() for reference in references):
        raise Unjudgeable(UNUSABLE_REFERENCE, "a reference is blank")
    answer = stated_part(item.response(), extract, marker)
    if answer is None:
        return Judgement.composed(
            "unparsed",
            (Component("correctness", 0.0),),
            explanation=f"the response does not hold the marker {marker[:40]!r}",
        )
    text = normalise(answer, case_sensitive=case_sensitive, strip=strip)
    right = any(
        text == normalise(reference, case_sensitive=case_sensitive, strip=strip)
        for reference in references
    )
    return Judgement.composed(
        "correct" if right else "incorrect",
        (Component("correctness", float(right)),),
        extracted_answer=answer.strip()[:_SHOWN_CHARS],
        explanation="equals a reference" if right else "equals no reference",
    )
