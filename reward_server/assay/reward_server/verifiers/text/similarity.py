"""`similarity`: how much of the response and the reference is the same, in the same order.

How. The ratio of Python's difflib, 2 M / (a + b): M characters in matching blocks, found as
Ratcliff and Obershelp do, by the longest common run and then to its left and right, of texts of a
and b characters. A required beginning comes first: a response that does not start with `prefix`
gets 0, and where it does the prefix is taken off both texts. That is the grading function of
OpenAI's MRCR, several needles in a long dialogue, whose rows go in as they are: the reference is a
text, or `{"answer": text, "random_string_to_prepend": prefix}`.

What a policy could game. A ratio pays for any text of the same sort; `at_least` pays for near
copies only. Half of the range needs no right answer: `Pa` gets 0.57 for `Paris`, `Lisbon` 0.6 for
`iron`.

Limits. Work stops after 10,000,000 steps with the blocks found so far, a lower bound of the ratio.
A response of more than 4 times the reference and 20,000 characters gets 0.

Differences from MRCR's function: those two bounds; the blanks around the response are left out, as
NeMo Gym's `mrcr` does.

Measured: equal to `SequenceMatcher(None, response, answer).ratio()` on 1,000 of 1,000 pairs.

Sources: Ratcliff and Metzener, Pattern matching: the gestalt approach, Dr. Dobb's Journal 13(7),
1988; MRCR in Michelangelo, arXiv 2409.12640, and in OpenAI's data set of that name, 2025.
"""

from __future__ import annotations

import heapq
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Annotated, Final

from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Component,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import OneOf, Range, verifier
from assay.reward_server.verifiers.text.parts import (
    NoPart,
    flagged,
    graded,
    part_of,
    shown,
    unparsed,
)

MAX_STEPS: Final = 10_000_000
_MAX_REFERENCE: Final = 20_000
_SLACK_CHARS: Final = 20_000
_RESPONSE_CHARS: Final = 4 * _MAX_REFERENCE + _SLACK_CHARS


@verifier(
    "similarity",
    tasks=("mrcr",),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
)
def similarity(
    item: VerifierItem,
    *,
    prefix: Annotated[
        str, "What the response must begin with; the reference may bring its own."
    ] = "",
    at_least: Annotated[float, Range(0.0, 1.0), "A ratio below this one is 0."] = 0.0,
    extract: Annotated[
        str,
        OneOf(("whole", "final")),
        "The part that is judged: the whole response, or what follows the last </think>.",
    ] = "final",
) -> Judgement:
    """How much of the response and the reference is the same, after a required beginning.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a reference that is no text, blank or over-long.
    """
    references, prefix = _references(item, prefix)
    part = part_of(item.response(), extract, limit=_RESPONSE_CHARS)
    if isinstance(part, NoPart):
        return unparsed("similarity", part.why)
    text = part.text.strip()
    if not text.startswith(prefix):
        why = "the response does not begin with the required text"
        score = 0.0
    else:
        text = text.removeprefix(prefix)
        score = max(_ratio(text, one.removeprefix(prefix)) for one in references)
        why = f"similarity {score:.3f}"
        score = score if score >= at_least else 0.0
    return flagged(
        item,
        Judgement.composed(
            graded(score),
            (Component("similarity", score),),
            extracted_answer=shown(text),
            explanation=why,
        ),
    )


def ratio(left: str, right: str, most_steps: int = MAX_STEPS) -> float:
    """Difflib's `SequenceMatcher(None, left, right).ratio()`; a lower bound if work is cut short.

    Args:
        left: any text.
        right: any text; its characters are indexed.
        most_steps: comparisons and characters looked at, at most.
    """
    if not left and not right:
        return 1.0
    matcher = SequenceMatcher(None, left, right)
    index = matcher.b2j  # type: ignore[attr-defined]  # documented in difflib, not in its stubs
    work = [0, *accumulate(1 + len(index.get(character, ())) for character in left)]
    # The widest windows first, so that what is left when the steps are spent is small.
    windows = [(-len(left), 0, len(left), 0, len(right))]
    matched = 0
    while windows:
        _, low, high, start, end = heapq.heappop(windows)
        most_steps -= work[high] - work[low]
        if most_steps < 0:
            break
        at, other, size = matcher.find_longest_match(low, high, start, end)
        if not size:
            continue
        matched += size
        for window in ((low, at, start, other), (at + size, high, other + size, end)):
            if window[0] < window[1] and window[2] < window[3]:
                heapq.heappush(windows, (window[0] - window[1], *window))
    return 2.0 * matched / (len(left) + len(right))


def _ratio(text: str, reference: str) -> float:
    too_long = len(text) > 4 * len(reference) + _SLACK_CHARS
    return 0.0 if too_long else ratio(text, reference)


def _references(item: VerifierItem, prefix: str) -> tuple[tuple[str, ...], str]:
    """The references, and what the response must begin with."""
    texts: tuple[object, ...]
    if item.data is None:
        texts = item.answers()
    else:
        document = item.document()
        fields = document if isinstance(document, dict) else {"answer": document}
        texts = (fields.get("answer"),)
        own = fields.get("random_string_to_prepend", prefix)
        if not isinstance(own, str):
            raise _unusable("random_string_to_prepend must be a text")
        prefix = own
    found = tuple(text for text in texts if isinstance(text, str) and text.strip())
    if len(found) != len(texts) or not all(len(text) <= _MAX_REFERENCE for text in found):
        raise _unusable(
            f"it must be a text of 1 to {_MAX_REFERENCE:,} characters, or an object with such an "
            "answer"
        )
    return found, prefix


def _unusable(trouble: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference cannot be used: {trouble}")
