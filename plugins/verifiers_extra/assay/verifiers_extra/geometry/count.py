"""`count`: the response names the right number of things.

Counting as in Seed1.5-VL (arXiv 2505.07062). The reference is a whole number, as text, as data or
as `{"count": n}`. The number is read out of the answer as `extraction` finds it: digits, with
thousands commas, or a number word from "zero" to "twenty" and 零 to 十 where there are no digits.

The reward is `exact`, 1 for the same number, or `relative`, max(0, 1 - |n - m| / max(m, 1)) for the
number n of the response and m of the reference. The verdict is `close` for a relative reward
between 0 and 1.

What a policy could game: an answer with several different numbers ("4 or 5") names none and is
unparsed. A number that is not whole is incorrect. `relative` rewards guessing the usual number:
prefer `exact` where counts vary little.

Limits. Number words are English up to twenty and Chinese up to ten: "a dozen", "forty-two" and
other languages' words are not read.

Measured: eight worked counts and 13 written forms of numbers
(`tests/unit/test_verifier_geometry.py`). Misread real responses: not yet, because no labelled ones
are at hand.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from assay.math.extraction import MODES, FoundAnswer, Nothing, look
from assay.reward_server import Component, JsonValue, Judgement, OneOf, VerifierItem, verifier
from assay.verifiers_extra.geometry.reference import unusable

MAX_COUNT = 10**9
_SHOWN_CHARS = 200
_NUMBER = re.compile(
    r"(?<![\w.])[+-]?(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:\.\d{1,15})?(?!\w)(?!\.\d)"
)
_DIGITS = re.compile(r"\d")
_NAMES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
_WORDS = {word: number for number, word in enumerate(_NAMES.split())}
_CHARACTERS = {character: number for number, character in enumerate("零一二三四五六七八九十")}
_CHARACTERS["两"] = 2
_WORD = re.compile(r"[A-Za-z]+|[零一二三四五六七八九十两]+")


@verifier(
    "count",
    tasks=("count", "counting"),
    verdicts=("correct", "close", "incorrect", "unparsed"),
    isolation="inline",
    cacheable=False,
)
def count(
    item: VerifierItem,
    *,
    reward: Annotated[
        Literal["exact", "relative"], "1 for the same number, or one less the relative error."
    ] = "exact",
    extract: Annotated[str, OneOf(MODES), "Where the answer stands in the response."] = "auto",
) -> Judgement:
    """The response names the right number of things.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a reference that is no whole number.
    """
    expected = _expected(item.document())
    found = look(item.response(), extract)
    if isinstance(found, Nothing):
        return _unparsed(found.why, None)
    number = read_count(found.text)
    if number is None:
        return _unparsed("the answer holds no number, or several", found)
    score = _score(number, expected, reward)
    verdict = "correct" if number == expected else "close" if score > 0 else "incorrect"
    return Judgement.composed(
        verdict,
        (Component("count", score),),
        extracted_answer=f"{number:g}",
        explanation=f"{number:g} where {expected} are right",
    )


def read_count(text: str) -> float | None:
    """The one number that a text names; None for none or several different ones."""
    values = {float(number.replace(",", "")) for number in _NUMBER.findall(text)}
    if not values and not _DIGITS.search(text):
        words = [word.lower() for word in _WORD.findall(text)]
        values = {float(_WORDS[word]) for word in words if word in _WORDS}
        values |= {float(_CHARACTERS[word]) for word in words if word in _CHARACTERS}
    return values.pop() if len(values) == 1 else None


def _score(number: float, expected: int, kind: str) -> float:
    if kind == "exact":
        return float(number == expected)
    return max(0.0, 1.0 - abs(number - expected) / max(expected, 1))


def _expected(document: JsonValue) -> int:
    value = document.get("count") if isinstance(document, dict) else document
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        unusable(f'the reference must be a whole number from 0 to {MAX_COUNT} or {{"count": it}}')
    return value


def _unparsed(why: str, found: FoundAnswer | None) -> Judgement:
    return Judgement.composed(
        "unparsed",
        (Component("count", 0.0),),
        extracted_answer=found.text[:_SHOWN_CHARS] if found else None,
        explanation=why,
    )
