"""Typed equality of two readings.

Lists are compared as multisets, tuples in order, intervals with their brackets, equations by
proportionality, inequalities by their direction, quantities with their units; what is left are
expressions, for `terms.same`. A type meets another type only where a convention makes them one
answer (x = 5 and 5, an interval and an inequality, a column and a tuple).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.math import conditions, families, renaming
from assay.math.matching import Exhausted, Matcher
from assay.math.nodes import (
    Call,
    Chain,
    Group,
    Mul,
    Node,
    Number,
    Quantity,
    Symbol,
    Text,
)
from assay.math.policy import Policy
from assay.math.reading import DEFAULT, Reading
from assay.math.signs import expanded
from assay.math.terms import Verdict
from assay.math.text import bare

_CHOICES = re.compile(
    r"(?:(?:option|choice|answer|the answer is|选项?|答案[是为]?)\s?:?\s?)?"
    r"\(?([A-Za-z])(?:\)|\.|:)?(?=$|\s|[^\w\s^_+*/=-])",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    r"\(?([A-J])[.):](?=[\s\\\d(-])"
    r"(?!\s*(?:(?:or|and|not|is|but|nor|maybe|plus)\b|[,;/&]))"
)
_WRAPPED_LETTER = re.compile(
    r"\\(?:text|textbf|textrm|mathrm|mathbf)\s?\{\s?\(?([A-J])[.):]\)?\s?\}\s?"
    r"(?=[\d(-]|\\(?!text|mathrm|lor|land))"
)
_DISCLAIMED = re.compile(r"\b(?:not the answer|wrong|incorrect)\b")
_FURTHER_LABEL = re.compile(r"(?:^|[\s,;(])([A-J])\s?[.):](?=\s|$)")
_NUMERIC_MARKS = re.compile(
    r"[\d+*/^=<>_|!]|(?<![A-Za-z])-|-(?![A-Za-z])|\\[a-z]+|(?<![A-Za-z])[A-Za-z]'(?![a-z])"
)
_DIGITS_APART = re.compile(r"(?<=\d) (?=\d)")
_MARKS = ("'", '"', "\\prime", "\\prime}", "^")
_LETTERS = re.compile(r"[A-G](?:[\s,;]*(?:and)?[\s,;]*[A-G]){0,6}")
_NAME = re.compile(r"[A-Z]{2,8}")
_EMPTY = frozenset(
    [
        "nosolution",
        "solutionsetisempty",
        "setofsolutionsisempty",
        "setisempty",
        "nosolutionexists",
        "theequationhasnosolution",
        "theequationhasnosolutions",
        "equationhasnosolution",
        "systemhasnosolution",
        "systemhasnosolutions",
        "theequationhasnorealsolutions",
        "equationhasnorealsolutions",
        "thesystemhasnosolution",
        "thesystemhasnosolutions",
        "thereisnorealsolution",
        "therearenorealsolutions",
        "emptyset",
        "theemptyset",
        "nosolutions",
        "norealsolution",
        "norealsolutions",
        "emptyset",
        "varnothing",
        "nosuchsolution",
        "thereisnosolution",
        "therearenosolutions",
        "无解",
        "空集",
        "nosolutionsexist",
    ]
)
_ENDLESS = frozenset(
    [
        "infinitelymany",
        "infinitelymanysolutions",
        "thereareinfinitelymanysolutions",
        "infinitesolutions",
        "infinitenumberofsolutions",
        "无数解",
        "有无数个解",
    ]
)
_PLAIN = (Number, Symbol, Text)
_ABSENT = frozenset(["dne", "doesnotexist", "undefined", "notexist", "limitdoesnotexist"])


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Equal, unequal, or undecided (None: ask the slow tier), by which tier, and why."""

    equal: bool | None
    tier: str
    note: str


_SAME_INTEGER = Equivalence(True, "exact", "the same whole number")
_OTHER_INTEGER = Equivalence(False, "exact", "different whole numbers")


def compare(reference: Reading, answer: Reading, policy: Policy = DEFAULT) -> Equivalence:
    """Whether an answer is the reference's answer.

    Never raises; work is bounded by the limits of `read` and by a number of comparisons.

    Args:
        reference: what is right.
        answer: what is judged.
        policy: the same that both were read with.
    """
    if reference.form == answer.form:
        known = bool(reference.form)
        return Equivalence(known, "text", "the same text" if known else "both are empty")
    exactly = not policy.relative_tolerance and policy.decimals is None
    if exactly and reference.integer is not None and answer.integer is not None:
        return _SAME_INTEGER if reference.integer == answer.integer else _OTHER_INTEGER
    if answer.limited:
        return Equivalence(False, "limits", f"the answer is {answer.trouble}")
    if reference.limited:
        return Equivalence(None, "limits", f"the reference is {reference.trouble}")
    if not answer.form or not reference.form:
        return Equivalence(False, "text", "one side is empty")
    return Equivalence(*_typed(reference, answer, policy))


def _typed(reference: Reading, answer: Reading, policy: Policy) -> Verdict:
    if reference.kind == "boolean":
        same = answer.says_yes is not None and reference.says_yes == answer.says_yes
        return Verdict(same, "text", "yes or no")
    if reference.letter in tuple("ABCDEFGHIJ"):
        return _choice(reference, answer)
    if _NAME.fullmatch(reference.form):
        return _name(reference, answer)
    return _best(reference, answer, policy)


def _choice(reference: Reading, answer: Reading) -> Verdict:
    """A choice letter against a letter, alone or before the text of its choice."""
    form = bare(answer.form)
    named = answer.letter or (form.upper() if len(form) == 1 else "")
    if not named:
        match = (
            _LABELLED.match(form) or _CHOICES.fullmatch(form) or _WRAPPED_LETTER.match(answer.form)
        )
        further = match and _FURTHER_LABEL.search(form, match.end())
        if match and not further and not _DISCLAIMED.search(form):
            named = match[1].upper()
    if not named:
        return Verdict(False, "text", "the answer names no choice")
    return Verdict(named == reference.letter, "text", f"choice {named}")


def _name(reference: Reading, answer: Reading) -> Verdict:
    """Capitals that are a name, IV or ABC, and no product; in rising order they may be choices."""
    ours, theirs = bare(reference.form), bare(answer.form)
    if _LETTERS.fullmatch(theirs) and list(ours) == sorted(set(ours)) and _LETTERS.fullmatch(ours):
        same = sorted(set(re.findall("[A-G]", theirs))) == list(ours)
        return Verdict(same, "text", "several choices")
    same = "".join(ours.split()) == "".join(theirs.split())
    return Verdict(same, "text", "the same name" if same else "another name")


def _best(reference: Reading, answer: Reading, policy: Policy) -> Verdict:
    """The first acceptance among the readings of both sides; else the first verdict."""
    matcher = Matcher(reference, answer, policy)
    first: Verdict | None = None
    undecided: Verdict | None = None
    for left in _nodes(reference):
        for right in _nodes(answer):
            if _drops_variable(reference, answer, left, right) or _both_unusual(
                reference, answer, left, right
            ):
                continue
            try:
                verdict = matcher.match(left, right)
            except (Exhausted, RecursionError):
                return Verdict(None, "limits", "too many comparisons")
            if verdict.equal:
                return verdict
            if left is reference.node and right is answer.node:
                verdict = _renamed(matcher, left, right) or verdict
                if verdict.equal:
                    return verdict
            first = first or verdict
            if verdict.equal is None:
                undecided = undecided or verdict
    if first is not None and reference.kind == answer.kind == "number":
        return undecided or first
    text = _text(reference, answer, policy)
    if text.equal or first is None:
        return text
    return undecided or first


def _renamed(matcher: Matcher, left: Node, right: Node) -> Verdict | None:
    """The acceptance under other letters for what is free to be named; None if there is none."""
    if isinstance(left, _PLAIN) or isinstance(right, _PLAIN):
        return None
    if _is_said(left) or _is_said(right):
        equal = families.same(left, right, matcher.equal, lambda node: expanded(node, joint=False))
        if equal:
            return Verdict(True, "structural", "the same family of solutions")
        if conditions.same(left, right, lambda a, b: matcher.match(a, b).equal is True):
            return Verdict(True, "structural", "the same value where the condition holds")
    for one, other in renaming.alternatives(left, right):
        verdict = matcher.match(one, other)
        if verdict.equal:
            return Verdict(True, verdict.tier, f"with other letters: {verdict.note}")
    return None


def _is_said(node: Node) -> bool:
    """Whether a node may say something about its letters: k is an integer, x is positive."""
    if isinstance(node, Mul):
        return isinstance(node.factors[-1], Chain)
    return isinstance(node, Group) or (isinstance(node, Call) and node.name == "builder")


def _nodes(reading: Reading) -> list[Node]:
    first = [] if reading.node is None or isinstance(reading.node, Text) else [reading.node]
    return [*first, *reading.others]


def _drops_variable(reference: Reading, answer: Reading, left: Node, right: Node) -> bool:
    """Whether a letter or a prime, perhaps no unit, passes as a unit that may be missing.

    In `3s^2` of the reference s may be a second or a variable; an answer without it must not pass.
    """
    if isinstance(right, Quantity) and not isinstance(left, Quantity):
        return answer.form.endswith(_MARKS)  # 5'' may be an angle and 5^ a power, and is no 5
    if left is reference.node or not isinstance(left, Quantity):
        return False
    return not isinstance(right, Quantity) and not re.search("[A-Za-z]{2}", left.unit)


def _both_unusual(reference: Reading, answer: Reading, left: Node, right: Node) -> bool:
    """Whether both sides are taken otherwise than they look, such as 20,30 and 20,3 as decimals."""
    for other, reading, counterpart in ((left, reference, right), (right, answer, left)):
        listed = other is not reading.node and isinstance(other, Group) and not other.opening
        if listed and isinstance(counterpart, Group) and counterpart.opening:
            return True  # 12,345 as two numbers is no tuple
    quantities = isinstance(left, Quantity) and isinstance(right, Quantity)
    return left is not reference.node and right is not answer.node and not quantities


def _text(reference: Reading, answer: Reading, policy: Policy) -> Verdict:
    """Answers in words: without case, articles and punctuation."""
    left, right = (
        "emptyset" if _is_empty(reading) else reading.spoken for reading in (reference, answer)
    )
    for synonyms in (_EMPTY, _ENDLESS, _ABSENT):
        if left in synonyms and right in synonyms and not _nests(reference) and not _nests(answer):
            return Verdict(True, "text", "two ways to say that there is none")
    forms = (bare(reference.form), bare(answer.form))
    if all(map(_LETTERS.fullmatch, forms)):
        chosen = [sorted(set(re.findall("[A-G]", form))) for form in forms]
        return Verdict(chosen[0] == chosen[1], "text", "several choices")
    if policy.case_sensitive_text or any(map(_NUMERIC_MARKS.search, forms)):
        same = _joined(forms[0]) == _joined(forms[1])
        return Verdict(same, "text", "the same characters" if same else "different texts")
    same = bool(left) and left == right and _wordy(reference) and _wordy(answer)
    return Verdict(same, "text", "the same words" if same else "different texts")


def _joined(form: str) -> str:
    """The form without spaces, apart from those between digits: 2 3 is not 23."""
    return "".join(_DIGITS_APART.sub("|", form).split())


def _is_empty(reading: Reading) -> bool:
    """Whether an answer is the empty set, or that a name is in it."""
    node = reading.node
    if (
        isinstance(node, Chain)
        and node.operators == ("in",)
        and isinstance(node.operands[0], Symbol)
    ):
        node = node.operands[1]
    return node == Symbol("emptyset")


def _nests(reading: Reading) -> bool:
    """Whether it may be a set that holds the empty set."""
    return "\\{" in reading.form and not _is_empty(reading)


def _wordy(reading: Reading) -> bool:
    """Whether a reading is words, or letters that could be a word."""
    node = reading.node
    if node is None or isinstance(node, Text):
        return True
    if isinstance(node, Group):
        return all(isinstance(item, Text) for item in node.items)
    return reading.kind != "choice" and not isinstance(node, Symbol)
