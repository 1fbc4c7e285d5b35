r"""A response against its references: what the service's verifier `math` and `grade` both ask.

The answer is read out of one place of the response (`extraction`), each reference is read once and
kept, and the two are compared in tiers, the first that decides wins:

 1. *text*: the same normal form;
 2. *exact*: both are numbers that rational arithmetic decides;
 3. *structural*: element by element, by type: tuples, sets, intervals, matrices, equations;
 4. *numeric*: values at fixed points, with a tolerance for floating point only;
 5. *symbolic*: sympy, on trees of our own reader. What it cannot decide either is incorrect, and
    the explanation says so.

Tiers 1 to 4 are bounded and run here; whoever calls says who runs the fifth (`Ask`), because it has
to be a process that can be killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from assay.math import asked, extraction, linear
from assay.math.compare import Equivalence, compare
from assay.math.nodes import Based, Call, Node, Symbol, rebuilt, symbols
from assay.math.outcomes import UNUSABLE_REFERENCE, Fault, Judgement, Outcome
from assay.math.policy import Policy
from assay.math.reading import DEFAULT, Reading, read
from assay.math.undone_work import is_whole_arithmetic, leaves_work_undone

TIERS_DISAGREE = "tiers-disagree"
UNDONE_WORK = "undone-work"
UNDONE_WORK_CHOICES = ("auto", "reject", "accept")

Ask = Callable[[Reading, Reading, Policy], Equivalence]
"""Compares a reference with an answer by the symbolic tier, `symbolic.compare` or who asks it."""

_PLAIN_DIGITS = 18
_SAME_WHOLE = "equal to the reference (exact tier: the same whole number)"
_OTHER_WHOLE = "differs from the reference (exact tier: different whole numbers)"
_LEFT_TO_DO = "the answer is a computation that is left to do"

_REFERENCES_KEPT = 8_192
_ANSWERS_KEPT = 2_048
_WORDS = ("text", "nothing", "choice")
_SENTENCES = ("answer-line", "answer-tag", "hash", "last-line")


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """How answers are found and compared. Compared by identity: keep one for many responses.

    Attributes:
        extract: where the answer is read, one of `extraction.MODES`.
        undone_work: whether a computation that is left to do, such as 4 * 7 for 28, is a right
            answer: `reject`, `accept`, or `auto`, which rejects it where the prompt is known and
            else rejects what is nothing but whole numbers under + - * / and accepts 1.2^2 for 1.44.
        slow_tier: whether the symbolic tier is asked where the quick ones cannot decide; without it
            such an answer is incorrect.
        cross_check: whether it is also asked where they decided; their word holds, a disagreement
            is the sign `tiers-disagree`.
        policy: what counts as the same answer.
        exactly: whether that compares numbers without a tolerance.
    """

    extract: str = "auto"
    undone_work: str = "auto"
    slow_tier: bool = True
    cross_check: bool = False
    policy: Policy = DEFAULT
    exactly: bool = field(init=False)

    def __post_init__(self) -> None:
        exactly = not self.policy.relative_tolerance and self.policy.decimals is None
        object.__setattr__(self, "exactly", exactly)


@dataclass(frozen=True, slots=True)
class _Finding:
    """How an answer compares with the references, before it is judged.

    Attributes:
        comparison: with the reference that it equals, else the last one.
        reference: the text of that reference.
        open: the references that no quick tier could decide.
    """

    comparison: Equivalence
    reference: str
    open: tuple[tuple[Reading, Reading], ...] = ()


def judged(
    response: str,
    references: Sequence[str],
    rules: Rules,
    ask: Ask | None = None,
    *,
    truncated: bool = False,
    prompt: str | None = None,
) -> Outcome | None:
    """The judgement; None when the symbolic tier has to be asked and there is nobody to ask.

    Args:
        response: the policy's text, any at all.
        references: right answers, any of which will do; at least one.
        rules: how the answer is found and compared.
        ask: who runs the symbolic tier. What it raises comes through.
        truncated: the response was cut at the generation limit: an unmarked answer does not count.
        prompt: what was asked, where that is known: `undone_work` looks at whether it is, `x^2 = 5`
            answers 5 where it asks for x^2, and it may say that x > 0 or that any base will do.

    Returns:
        A fault, UNUSABLE_REFERENCE, when a reference holds nothing that can be compared.
    """
    mode = "strict" if truncated and rules.extract == "auto" else rules.extract
    if len(references) == 1 and is_whole(references[0]):  # so it is no letter
        found = extraction.look(response, mode)
        if rules.exactly and isinstance(found, extraction.FoundAnswer) and is_whole(found.text):
            return _whole(found.text, references[0], found.how)
        readings = [_reference(references[0], rules)]
    else:
        readings = [_reference(text, rules) for text in references]
        for reading in readings:
            if reading.kind == "nothing":
                return Fault(
                    UNUSABLE_REFERENCE, f"no answer can be read from the reference {reading.text!r}"
                )
        letter = any(reading.kind == "choice" for reading in readings)
        found = extraction.look(response, mode, letter=letter)
    if isinstance(found, extraction.Nothing):
        return Judgement("unparsed", None, "", "", found.why)
    if prompt and asked.states(found.text, prompt):
        found = asked.stated(found)
    return _compared(readings, found, rules, ask, prompt=prompt)


@lru_cache(maxsize=_ANSWERS_KEPT)
def _whole(answer: str, reference: str, how: str) -> Judgement:
    """The judgement on two whole numbers; the samples of a group repeat a few answers."""
    if int(answer) == int(reference):
        return Judgement("correct", answer, how, "exact", _SAME_WHOLE)
    return Judgement("incorrect", answer, how, "exact", _OTHER_WHOLE)


def is_whole(text: str) -> bool:
    """Whether a text is a whole number in plain digits, which most answers of training data are."""
    return text.isdigit() and text.isascii() and len(text) <= _PLAIN_DIGITS


def _compared(
    references: list[Reading],
    found: extraction.FoundAnswer,
    rules: Rules,
    ask: Ask | None,
    *,
    prompt: str | None,
) -> Judgement | None:
    """The judgement on an answer that was found; None as for `judged`."""
    finding = _finding(references, found, rules)
    if prompt and finding.comparison.equal is not True:
        finding = _as_asked(references, found, rules, prompt) or finding
    if finding.open and rules.slow_tier:
        if ask is None:
            return None
        finding = _asked(finding, rules.policy, ask)
    comparison = finding.comparison
    explanation = _explanation(finding, len(references))
    tier = comparison.tier
    signs: tuple[str, ...] = ()
    if rules.cross_check and ask is not None:
        against = _cross_checked(references, found, rules, finding, ask)
        explanation += against
        signs += (TIERS_DISAGREE,) if against else ()
    equal = comparison.equal is True
    if equal and leaves_work_undone(found.text, finding.reference):
        signs += (UNDONE_WORK,)
        if _refuses_undone(rules, found.text, prompted=prompt is not None):
            equal, tier, explanation = False, UNDONE_WORK, _LEFT_TO_DO
    return Judgement(
        "correct" if equal else "incorrect", found.text, found.how, tier, explanation, signs
    )


def _refuses_undone(rules: Rules, answer: str, *, prompted: bool) -> bool:
    """Whether an answer that is a computation left to do is not paid for."""
    if rules.undone_work == "auto":
        return prompted or is_whole_arithmetic(answer)
    return rules.undone_work == "reject"


@lru_cache(maxsize=_REFERENCES_KEPT)
def _reference(text: str, rules: Rules) -> Reading:
    """A reference, read once; of the kind `nothing`, with its whole text, when it is no answer."""
    reading = _answer(_reference_text(text, rules), rules)  # what is right is often answered so
    if reading.kind == "nothing":
        return Reading(text[:80], reading.form, "nothing", None, trouble=reading.trouble)
    return reading


def _reference_text(text: str, rules: Rules) -> str:
    """The answer in a reference: after the last `####`, else in its boxes, else all of it."""
    if "####" in text:
        text = text.rpartition("####")[2]
    boxed = extraction.all_boxed(text)
    if not boxed:
        return extraction.bare(text)
    different: list[Reading] = []  # 25/13 = 1 12/13, each in a box, is one answer
    for content in boxed:
        reading = _answer(content, rules)
        if not any(compare(one, reading, rules.policy).equal for one in different):
            different.append(reading)
    return ", ".join(reading.text for reading in different)


@lru_cache(maxsize=_ANSWERS_KEPT)
def _answer(text: str, rules: Rules) -> Reading:
    """An answer, read once for the samples of a group, which repeat a few answers."""
    return read(text, rules.policy)


def _finding(references: list[Reading], found: extraction.FoundAnswer, rules: Rules) -> _Finding:
    """The answer against each reference, by the quick tiers."""
    undecided = []
    last = Equivalence(False, "text", "there is no reference")
    for reference in references:
        answer = _reading_for(reference, found, rules)
        last = compare(reference, answer, rules.policy)
        if last.equal:
            return _Finding(last, reference.text)
        if last.equal is None:
            undecided.append((reference, answer))
    return _Finding(last, references[-1].text, tuple(undecided))


def _as_asked(
    references: list[Reading], found: extraction.FoundAnswer, rules: Rules, prompt: str
) -> _Finding | None:
    """The acceptance under what the prompt says of all answers; None where it gives none."""
    for reference in references:
        answer = _reading_for(reference, found, rules)
        for one, other in _restated(reference, answer, prompt):
            verdict = compare(one, other, rules.policy)
            if verdict.equal:
                return _Finding(verdict, reference.text)
    return None


def _restated(
    reference: Reading, answer: Reading, prompt: str
) -> Iterator[tuple[Reading, Reading]]:
    """Reference and answer as the prompt allows to take them."""
    left, right = reference.node, answer.node
    if left is None or right is None:
        return
    if answer.kind == "equation":
        if reference.kind == "equation" and asked.wants_figure(prompt):
            yield _made(reference, asked.general(left)), answer
        names = symbols(right)
        if len(names) == 1 and asked.wants_equation(prompt):
            equation = asked.solved_by(left, next(iter(names)))
            if equation is not None:
                yield _made(reference, equation), answer
    if (isinstance(left, Based) or isinstance(right, Based)) and asked.allows_any_base(prompt):
        values = linear.rational(left), linear.rational(right)
        if values[0] is not None and values[1] is not None:
            yield (
                _made(reference, linear.number(values[0])),
                _made(answer, linear.number(values[1])),
            )
    if reference.kind == answer.kind == "expression" and (names := asked.positive(prompt)):
        yield _made_positive(reference, names), _made_positive(answer, names)


def _made_positive(reading: Reading, names: frozenset[str]) -> Reading:
    """A reading in which names stand for their absolute values."""

    def change(part: Node) -> Node:
        inside = isinstance(part, Symbol) and part.name in names
        return Call("abs", (part,)) if inside else part

    return reading if reading.node is None else _made(reading, rebuilt(reading.node, change))


def _made(reading: Reading, node: Node) -> Reading:
    """A reading with another tree alone; its form is no text's."""
    return Reading(reading.text, f"{reading.form} \x00{id(node)}", reading.kind, node)


def _reading_for(reference: Reading, found: extraction.FoundAnswer, rules: Rules) -> Reading:
    """The answer, or the formula or number in it when it is a sentence and no words are wanted."""
    answer = _answer(found.text, rules)
    if answer.kind != "text" or reference.kind in _WORDS or found.how not in _SENTENCES:
        return answer
    inner = extraction.narrowed(found.text)
    return answer if inner is None else _answer(inner, rules)


def _asked(finding: _Finding, policy: Policy, ask: Ask) -> _Finding:
    """What the symbolic tier makes of the open references."""
    decided = finding.comparison
    for reference, answer in finding.open:
        decided = ask(reference, answer, policy)
        if decided.equal:
            return _Finding(decided, reference.text)
    return _Finding(decided, finding.reference)


def _cross_checked(
    references: list[Reading],
    found: extraction.FoundAnswer,
    rules: Rules,
    finding: _Finding,
    ask: Ask,
) -> str:
    """How the symbolic tier disagrees with the finding; empty when it does not."""
    if finding.comparison.tier == "symbolic" or finding.comparison.equal is None:
        return ""
    verdicts = [
        ask(reference, _reading_for(reference, found, rules), rules.policy).equal
        for reference in references
    ]
    other = True if True in verdicts else None if None in verdicts else False
    if other is None or other == finding.comparison.equal:
        return ""
    return f"; the symbolic tier says that it {'is equal' if other else 'differs'}"


def _explanation(finding: _Finding, count: int) -> str:
    """One line: the outcome, the tier, and its reason."""
    comparison = finding.comparison
    reason = f"({comparison.tier} tier: {comparison.note[:300]})"
    if comparison.equal:
        return f"equal to the reference {reason}"
    known = "the reference" if count == 1 else f"each of {count} references"
    if comparison.equal is None:
        return f"could not be shown to equal {known} {reason}"
    return f"differs from {known} {reason}"
