"""Equations that state what was asked: `x^2 = 5` where the prompt asks for the value of x^2.

Without a prompt such an equation is left to solve (`relations`). With it, what stands before the
equals sign must be what the prompt asks for, character by character, right behind a word that asks.
An equation that the prompt asks to solve is not answered by an equation: that would pay for
repeating the question.

What a prompt says of all answers counts too: the names that it says to be positive, that an answer
may be written in any base, and that an equation is asked for: of a line or plane, so that `2z = 4`
is `z = 2`, or one whose solutions are the reference.

Linear in the texts.
"""

from __future__ import annotations

import re

from assay.math.extraction import FoundAnswer
from assay.math.linear import difference, number, rational
from assay.math.nodes import ZERO, Add, Chain, Group, Mul, Node, Symbol
from assay.math.signs import expanded

MAX_PROMPT_CHARS = 20_000
_MAX_ASKED_CHARS = 80
_MAX_SOLUTIONS = 6
_ASKING = re.compile(
    r"(?:find|compute|determine|evaluate|calculate|what is|what's|value of|sum of|求|计算)"
    r"(?: the)?(?: (?:exact|numerical|possible|smallest|largest))?(?: values? of)?[:\uff1a]?\Z",
    re.IGNORECASE,
)
_ENDS = r"(?=\s*(?:[.?!,;]|\Z|\b(?:if|when|given|where|for|in)\b))"
_BEFORE_CHARS = 60
_MARKS = re.compile(r"\\[()\[\]]|\\displaystyle|\$")


_POSITIVE = re.compile(
    r"\b(?:for(?: all)?|where|assum(?:e|ing)|if|given|with|let|suppose|when|and)"
    r"(?: that)?[\s$(\\]{1,4}"
    r"(?P<names>[a-zA-Z](?:\s?,\s?[a-zA-Z]){0,4})\s?(?:>|\\gt|\u2265|>=|\\geq?|\\geqslant)\s?0(?![\d.])"
    r"|\bfor (?:all )?positive(?: real)?(?: numbers?| values of)?[\s$(\\]{1,4}"
    r"(?P<said>[a-zA-Z](?![A-Za-z])(?:\s?,\s?[a-zA-Z](?![A-Za-z])){0,4})"
)
_EQUATION = re.compile(
    r"\b(?:find|give|write|state|determine|construct|form)\b[^.?!]{0,40}\bequation\b[^.?!]{0,60}"
    r"\b(?:solutions?|roots?|zeros?)\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"\bequations? (?:of|for) (?:the|an?|its|this|that|each|every) (?:[a-z-]+ ){0,3}?"
    r"(?:line|plane|circle|parabola|ellipse|hyperbola|curve|tangent|normal|asymptote|locus|axis)",
    re.IGNORECASE,
)
_ANY_BASE = re.compile(
    r"\b(?:in |of )?(?:any|every|whatever|whichever) (?:number |numeral )?"
    r"(?:base|positional notation|positional system)\b(?! \d)",
    re.IGNORECASE,
)


def positive(prompt: str) -> frozenset[str]:
    """The names that a prompt says to be positive, or not negative: `for x > 0`."""
    names: set[str] = set()
    for mention in _POSITIVE.finditer(prompt, max(0, len(prompt) - MAX_PROMPT_CHARS)):
        names.update(re.findall("[a-zA-Z]", mention["names"] or mention["said"]))
    return frozenset(names)


def allows_any_base(prompt: str) -> bool:
    """Whether a prompt takes a number in any base."""
    return _ANY_BASE.search(prompt, max(0, len(prompt) - MAX_PROMPT_CHARS)) is not None


def wants_equation(prompt: str) -> bool:
    """Whether a prompt asks for an equation with given solutions."""
    return _EQUATION.search(prompt, max(0, len(prompt) - MAX_PROMPT_CHARS)) is not None


def wants_figure(prompt: str) -> bool:
    """Whether a prompt asks for the equation of a line, a plane or their like."""
    return _FIGURE.search(prompt, max(0, len(prompt) - MAX_PROMPT_CHARS)) is not None


def general(node: Node) -> Node:
    """An equation with 0 on its right; any other node as it is."""
    match node:
        case Chain((left, right), ("=",)):
            return Chain((difference(left, right), ZERO), ("=",))
        case _:
            return node


def solved_by(values: Node, letter: str) -> Node | None:
    """The equation in a letter that has just these solutions; None where they are not rational.

    Args:
        values: a list, a set, or equations such as `x = 1 or x = 2`.
        letter: the name of the unknown.
    """
    found = [rational(value) for value in _values(values)]
    known = {value for value in found if value is not None}
    if not found or None in found or len(known) > _MAX_SOLUTIONS:
        return None
    factors = [Add((Symbol(letter), number(-value))) for value in sorted(known)]
    product: Node = factors[0] if len(factors) == 1 else Mul(tuple(factors))
    return Chain((product, ZERO), ("=",))


def _values(node: Node) -> list[Node]:
    match node:
        case Chain((Symbol(), right), ("=",)) | Chain((Symbol(), right), ("in",)):
            return _values(right)
        case Group("" | "{", items):
            return [value for item in items for value in _values(item)]
        case _:
            return expanded(node, joint=False) or []


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
