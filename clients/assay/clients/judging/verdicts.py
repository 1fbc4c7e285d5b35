"""The verdict in a verification: the closing sentence of PAG, read strictly and tolerantly. Pure.

Strict: the text ends with `The answer is correct.` or `The answer is wrong.`, letter for letter, at
most one line break behind it, and no other such sentence before it. Tolerant: a strict verdict, or
else the last clear one in other words ("the solution is incorrect", "Verdict: **correct**", a last
line that is just "Wrong"); questions, conditions and verdicts on a part are not clear ("if the
answer is correct", "is the answer wrong?", "step 1 is correct").

Differences from the paper's protocol (arXiv 2506.10406):

1. A strict verdict must be the only closing sentence of the text; the authors read its end only.
2. A verdict that cannot be read is "unparsed"; the authors take it as "wrong".

Model text is hostile: every pattern is bounded, and the work is linear in the text's length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["correct", "wrong", "unparsed"]
Parsing = Literal["strict", "tolerant"]

CLOSING = "The answer is"
OPTIONS = (" correct", " wrong")

_SENTENCE = re.compile(r"The answer is (correct|wrong)\.")
_AT_END = re.compile(r"\n?\Z")
_WORD = (
    r"(?:[*_`\"'\u201c\u2018$]{0,6}(?:\\[a-z]{4,8}\{){0,2}(?P<word>correct|incorrect|wrong)\b"
    r"[}*_`\"'\u201d\u2019$)\]]{0,8}"
    r"(?=[ \t]{0,8}(?:[.!;]|\r?\n|\Z|(?:because|since|as|due)\b)))"
)
_CLAIM = re.compile(
    r"(?P<other>\b(?:if|whether|unless|suppose|assuming|why|of|in|for)[ \t]{1,4}"
    r"(?:that[ \t]{1,4})?)?"
    r"\b(?P<start>(?:the|this|that|my|its|your|their|his|her)[ \t]{1,4}"
    r"(?:(?:final|given|proposed|stated|above|previous|boxed|student['\u2019]s)[ \t]{1,4}){0,2}"
    r"(?:answer|solution|response|verdict|conclusion))"
    r"(?:[ \t]{1,4}(?:is|was)(?P<negation>n't|n\u2019t|[ \t]{1,4}not)?:?[ \t]{1,4}|:[ \t]{1,4})"
    r"(?:(?:therefore|thus|hence|indeed|clearly|definitely|actually|also)[ \t]{1,4})?" + _WORD,
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^[ \t>#*_-]{0,8}(?P<start>(?:(?:final|overall)[ \t]{1,4})?"
    r"(?:verdict|conclusion|judge?ment|assessment))[*_]{0,3}[ \t]{0,4}:[ \t]{0,4}[*_]{0,3}"
    r"[ \t]{0,4}(?P<negation>not[ \t]{1,4})?" + _WORD,
    re.IGNORECASE | re.MULTILINE,
)
_LAST_LINE_CHARS = 200
_LAST_LINE = re.compile(
    r"[ \t>#*_`\"'\u201c\\]{0,8}(?:boxed\{)?(?P<negation>not[ \t]{1,4})?" + _WORD + r"[ \t.!]{0,4}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Found:
    """A verdict in a text, and where the sentence that holds it begins."""

    verdict: Verdict
    start: int


def parse_verdict(text: str, strict: bool = True) -> Verdict:
    """The verdict on the attempt before this turn; "unparsed" where none can be read.

    A strict verdict is also the tolerant one.
    """
    found = _find_strict(text) or (None if strict else _find_tolerant(text))
    return found.verdict if found else "unparsed"


def before_verdict(text: str) -> str:
    """A verification up to its verdict, read tolerantly; all of it where it has none."""
    found = _find_strict(text) or _find_tolerant(text)
    return text[: found.start] if found else text


def _find_strict(text: str) -> Found | None:
    sentences = list(_SENTENCE.finditer(text))
    if len(sentences) != 1 or not _AT_END.match(text, sentences[0].end()):
        return None
    verdict: Verdict = "correct" if sentences[0][1] == "correct" else "wrong"
    return Found(verdict, sentences[0].start())


def _find_tolerant(text: str) -> Found | None:
    """The last clear verdict, in the order in which they end."""
    matches = [match for match in _CLAIM.finditer(text) if not match["other"]]
    matches += _LABEL.finditer(text)
    if last := _match_last_line(text):
        matches.append(last)
    if not matches:
        return None
    match = max(matches, key=lambda one: (one.end("word"), -one.start()))
    right = (match["word"].lower() == "correct") != bool(match["negation"])
    start = match.start("start") if "start" in match.re.groupindex else match.start()
    return Found("correct" if right else "wrong", start)


def _match_last_line(text: str) -> re.Match[str] | None:
    """The last line that is not blank, where it is a verdict alone."""
    end = len(text.rstrip())
    start = text.rfind("\n", max(0, end - _LAST_LINE_CHARS), end) + 1
    if start == 0 and end > _LAST_LINE_CHARS:
        return None
    return _LAST_LINE.fullmatch(text, start, end)
