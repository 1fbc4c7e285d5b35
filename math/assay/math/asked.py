"""Equations that state what was asked: `x^2 = 5` where the prompt asks for the value of x^2.

Without a prompt such an equation is left to solve (`relations`). With it, what stands before the
equals sign must be what the prompt asks for, character by character, right behind a word that asks.
An equation that the prompt asks to solve is not answered by an equation: that would pay for
repeating the question.

Linear in the texts.
"""

from __future__ import annotations

import re

from assay.math.extraction import FoundAnswer

MAX_PROMPT_CHARS = 20_000
_MAX_ASKED_CHARS = 80
_ASKING = re.compile(
    r"(?:find|compute|determine|evaluate|calculate|what is|what's|value of|sum of|求|计算)"
    r"(?: the)?(?: (?:exact|numerical|possible|smallest|largest))?(?: values? of)?[:\uff1a]?\Z",
    re.IGNORECASE,
)
_ENDS = r"(?=\s*(?:[.?!,;]|\Z|\b(?:if|when|given|where|for|in)\b))"
_BEFORE_CHARS = 60
_MARKS = re.compile(r"\\[()\[\]]|\\displaystyle|\$")


def states(answer: str, prompt: str) -> bool:
    """Whether an answer is an equation whose left side is what the prompt asks for.

    Args:
        answer: the answer as it stands in the response.
        prompt: what was asked; its last `MAX_PROMPT_CHARS` count.
    """
    side, equals, rest = _plain(answer).partition("=")
    side = "".join(side.split())
    if not equals or not side or "=" in rest or len(side) > _MAX_ASKED_CHARS:
        return False
    question = _plain(prompt[-MAX_PROMPT_CHARS:])
    spaced = r"\s*".join(re.escape(character) for character in side)
    for mention in re.finditer(spaced + _ENDS, question):
        before = question[max(0, mention.start() - _BEFORE_CHARS) : mention.start()]
        if _ASKING.search(before.rstrip()):
            return True
    return False


def stated(found: FoundAnswer) -> FoundAnswer:
    """The answer without what stands before its equals sign."""
    text = found.text.partition("=")[2].strip()
    if text.count("$") % 2:
        text = text.replace("$", "")
    return FoundAnswer(text, found.how, found.start, found.end) if text else found


def _plain(text: str) -> str:
    return _MARKS.sub(" ", text)
