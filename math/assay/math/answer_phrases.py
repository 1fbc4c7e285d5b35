"""How answers are announced in thirteen languages: the patterns of `extraction`, rule 2.

All are linear: alternatives that begin with different words, no repetition inside a repetition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ANNOUNCED = re.compile(
    r"""
      final\ (?:answer|result)(?:\ is)?(?![a-z])
    | (?:correct|right|best)\ (?:answer|option|choice)\ is(?![a-z])
    | answer(?:\ (?:is|would\ be|must\ be|should\ be)|s\ are)(?![a-z])
    | answer\ (?:isn.t|can(?:no|.)t\ be)
    | answer\ to\ (?:the|this)\ (?:question|problem)\ is(?![a-z])
    | (?<![a-z])(?:answer|ans\.?)\**[ ]?[:=\uff1a]
    | ^[ ]*a:
    | (?:respuesta|réponse|reponse|resposta)(?:\ (?:final|finale|correcta|correcte))?\**
      \ ?(?:\ es\b|\ est\b|\ é\b|:)
    | (?<![a-zäöü])antwort(?:\ (?:ist|lautet))?\**\ ?(?:\b|:)
    | ответ\**\ ?[:\uff1a\u2014\u2013-]
    | 【答案】 | 答案(?:不是|并非)
    | 最终答案(?:[是为]|[:\uff1a]) | 答案(?:应?[是为選选]|[:\uff1a]|[ ]?=)
    | 故选 | 应选 | 正确(?:答案|选项)[是为] | 故答案为?
    | (?:الإجابة|الجواب)(?:\ النهائية|\ النهائي)?(?:\ (?:هي|هو)|\ ?:)
    | 答え(?:は|[:\uff1a]) | (?:解答|答)[:\uff1a]
    | คำตอบ(?:สุดท้าย)?(?:คือ|\ ?[:\uff1a])
    | উত্তর(?:\ ?[:\uff1a]|\ হল|\ হলো)
    | (?<![a-z])jibu(?:\ ni|\ la\ mwisho\ ni|\ ?[:\uff1a])
    | సమాధానం\ ?[:\uff1a]?
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
ANCHORS = (
    "ans",
    "a:",
    "final result",
    "option is",
    "choice is",
    "respuesta",
    "reponse",
    "resposta",
    "antwort",
    "jibu",
)
"""Lower-case: a line of ASCII in which `ANNOUNCED` matches holds one of them."""
FINAL = re.compile(r"final answer(?: is|\**:)(?![a-z])|【答案】", re.IGNORECASE)
LEAD = re.compile(
    r"(?:\s|[:=>*_`\"'\uff1a\u201c\u201d]"
    r"|(?:is|to the (?:question|problem) is|es|est|ist|lautet)(?=[:\s])"
    r"|(?:therefore|thus|hence|then|simply)(?=[:\s])"
    r"|(?:option|choice|选项)(?=[\s(:\uff1aA-Z]))*",
    re.IGNORECASE,
)
NO_ANSWER = re.compile(
    r"as follows|in the form|(?:correct|right|wrong|incorrect|below|above|given|reasonable"
    r"|consistent|verified|clear|obvious|therefore|found|expected|unique)"
    r"\b(?=\s*(?:[.,:;!)]|\Z|\n|because|since|and|as|when|if|by|in|from|that))",
    re.IGNORECASE,
)
NO_PROSE = re.compile(r"[\\()\[\]{}*^_+<>|]")
NEGATION = re.compile(r"\b(?:not|cannot|nicht|kein)\b|n[\'\u2019]t\b|不是|并非")
SENTENCE_END = re.compile(
    r"\n|[\u3002\uff1b\uff01]|[.!](?=[\s*\"'`)]*(?:\n|\Z|[A-Z][a-z]|I |A ))|<eo[ahs]>|</"
    r"|;(?=\s)|,?\s(?:because|since|which|where|as (?:required|desired|claimed|expected|needed))\b"
)


def announced(text: str) -> Iterator[re.Match[str]]:
    """The matches of `ANNOUNCED`, the last first; only lines that can hold one are searched."""
    for start, end in _likely_lines(text) if text.isascii() else _lines(text):
        yield from reversed(list(ANNOUNCED.finditer(text, start, end)))


def _likely_lines(text: str) -> Iterator[tuple[int, int]]:
    """Where each line with an anchor begins and ends, the last first; the text is ASCII.

    It looks at the last lines first, and at more of them each time: mostly they have it.
    """
    end, size = len(text), 512
    while end > 0:
        start = text.rfind("\n", 0, max(0, end - size)) + 1
        yield from _with_anchors(text, start, end)
        end, size = start - 1, 2 * size


def _with_anchors(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The same of the lines between two places."""
    low = text[begin:end].lower()
    anchors = [anchor for anchor in ANCHORS if anchor in low]
    places = [low.rfind(anchor) for anchor in anchors]
    while (last := max(places, default=-1)) >= 0:
        start = low.rfind("\n", 0, last) + 1
        stop = low.find("\n", last)
        yield begin + start, end if stop < 0 else begin + stop
        places = [
            low.rfind(anchor, 0, start) if place >= start else place
            for anchor, place in zip(anchors, places, strict=True)
        ]


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """The same of a text that is not ASCII: lines that are not have no anchors."""
    end = len(text)
    while end >= 0:
        start = text.rfind("\n", 0, end) + 1
        if end > start:
            line = text[start:end].lower()
            if not line.isascii() or any(anchor in line for anchor in ANCHORS):
                yield start, end
        end = start - 1
