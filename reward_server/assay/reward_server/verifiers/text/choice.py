r"""`choice`: the response chooses the right option of a multiple-choice question.

How. The answer is found as the math verifier finds it (`extract`: a box, an answer tag, "the answer
is", 【答案】, the option that the last line names); a response of one short line that is nothing
but an answer is read whole ("B", "b", "B) Paris", "Paris"). It is read from its beginning as
labels: "(B)", "B.", "B) x = -1", "option B", "\textbf{(B) } 5", "AC", "A and C". Given the options'
texts, an answer that is one option's text is that option, or failing that, one that equals exactly
one option mathematically; so a value answers for a letter, and a reference may be a text too. What
names no option is `unparsed`. Linear: at most 2,000 characters are read.

One option is one guess: "A or C", "A, B, C, D, E", "B) 3 or C) 4" are `hedged`, 0, unless `select`
allows several. A label with another option's text is hedged as well, and so are several texts.

What a policy could game. A guess among n options is right with probability 1/n, so do not pay for
an answer as such. With `select=partial`, naming one sure option of several earns its share.
`extract=auto` also reads unmarked answers; `strict` does not.

Limits. An explanation behind an answer that no mark announces has to begin on its line. A letter
followed by a word is a label only where a mark parts them: "C major" names none, nor "B Paris".
A small letter is a label alone, or before its option's own text. Without options, a reference that
is no letter is a fault. Labels are Latin letters; circled and full-width ones are read as such.

Measured: on 2,386 questions with their options' texts, each answered in nine bare forms: 21,468 of
21,474 right answers are accepted, and 2 of 40,562 wrong, contradicting or hedged ones.

Differences from the multiple-choice scorers in use (lighteval's GPQA, slime, NeMo-Skills):
1. Hedges are rejected: several of those take the first letter, or look for the right one anywhere.
2. No letter is looked for inside sentences, so the article "A" is no answer.
3. With options, a text answers for its letter, and contradicting label and text are no answer.

Sources: the forms are those of the responses in the multiple-choice rows of the labelled pairs that
the tests read; AQuA (arXiv 1705.04146), GAOKAO-Bench (arXiv 2305.12474), MMLU (arXiv 2009.03300).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final, Literal

from assay.math import Reading, compare, read
from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNUSABLE_REFERENCE,
    Component,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import OneOf, Range, verifier
from assay.reward_server.verifiers.text import letters
from assay.reward_server.verifiers.text.parts import (
    MARKS,
    JudgedPart,
    NoPart,
    final_text,
    flagged,
    part_of,
    shown,
    unparsed,
)

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_VALUE_CHARS: Final = 300
_MARKED: Final = frozenset({"boxed", "answer-tag", "hash", "answer-line"})


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """The options of a question.

    Attributes:
        letters: their labels, in order.
        texts: in the form that is compared; empty when they are not known.
        raw: without labels; empty when they are not known.
    """

    letters: str
    texts: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()

    def of_text(self, text: str) -> frozenset[str]:
        """The options with this text; several when options are alike."""
        form = text_form(text)
        if not form:
            return frozenset()
        return frozenset(
            letter for letter, own in zip(self.letters, self.texts, strict=False) if own == form
        )

    def listed(self, text: str) -> list[str]:
        """The options whose texts a list holds, "Paris, Lyon"; none for an option's own text."""
        if not self.texts or len(text) > _VALUE_CHARS or self.of_text(text):
            return []
        parts = [self.of_text(part) for part in _LISTED.split(text)]
        return sorted({min(part) for part in parts if part})

    def of_value(self, text: str) -> frozenset[str]:
        """The one option that is mathematically equal to this text; none if several are."""
        if not self.raw or len(text) > _VALUE_CHARS:
            return frozenset()
        answer = read(text)
        equal = [
            letter
            for letter, own in zip(self.letters, self.raw, strict=False)
            if compare(_reading(own), answer).equal
        ]
        return frozenset(equal) if len(equal) == 1 else frozenset()


_LISTED = re.compile(r"[,;、]|\b(?:or|and)\b|或|(?<![A-Za-z])[A-J][).:、]\s")


@lru_cache(maxsize=4096)
def _reading(text: str) -> Reading:
    return read(text[:_VALUE_CHARS])


@lru_cache(maxsize=1024)
def options_of(choices: tuple[str, ...], count: int) -> QuestionOptions:
    """The options of a question whose texts, or whose number, are given."""
    if not choices:
        return QuestionOptions(_ALPHABET[:count])
    raw = tuple(_without_labels(choices))
    return QuestionOptions(_ALPHABET[: len(choices)], tuple(map(text_form, raw)), raw)


_LABEL = re.compile(r"\s*[(\[]?([A-Z])(?:[)\].:、]|\s*$)\s*")


def _without_labels(choices: Sequence[str]) -> list[str]:
    """The texts without "A)", "B)", ..., if every one of them has its own label."""
    marks = [_LABEL.match(choice) for choice in choices]
    bare = []
    for choice, mark, letter in zip(choices, marks, _ALPHABET, strict=False):
        if mark is None or mark[1] != letter:
            return list(choices)
        bare.append(choice[mark.end() :])
    return bare


_LABEL_BEFORE = re.compile(r"[(\[]?([A-Za-z])[)\].:、]\s{0,4}(\S.*)", re.DOTALL)
_LABEL_BEHIND = re.compile(r"\s{0,4}[(\[]([A-Z])[)\]]\.?\Z")
_LATER_LABEL = re.compile(r"(?<![A-Za-z])[A-J][).:、]")
_LONE_LETTER = re.compile(r"(?<![A-Za-z'\u2019])[A-J](?![A-Za-z])")
_MARKUP = re.compile(
    r"\\left(?![a-z])|\\right(?![a-z])|\\[,;:! ]|\\displaystyle|\\\(|\\\)|\\\[|\\\]|\s"
    r"|[$~*`\"\u201c\u201d]"
)
_TEXT = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox)\{([^{}]*)\}")


def text_form(text: str) -> str:
    r"""An option's text in the form in which it is compared.

    White space, dollars and spacing commands are left out, `\\text{...}` is its content, case does
    not count; braces stay, because they tell \frac{1}{11} from \frac{11}{1}.
    """
    text = _TEXT.sub(r"\1", text[: letters.READ_CHARS]).replace("\\dfrac", "\\frac")
    text = _MARKUP.sub("", text.replace("\\tfrac", "\\frac"))
    return text.casefold().rstrip(".。;,")


@verifier(
    "choice",
    tasks=("multiple-choice",),
    verdicts=("correct", "partial", "incorrect", "hedged", "unparsed"),
    isolation="inline",
    version="3",
)
def choice(
    item: VerifierItem,
    *,
    choices: Annotated[
        tuple[str, ...],
        "The options' texts, A first, at most 26; with or without their labels. Empty: only "
        "letters are read.",
    ] = (),
    options: Annotated[
        int, Range(2, 26), "How many letters are options when choices is empty: 4 is A to D."
    ] = 10,
    select: Annotated[
        Literal["one", "all", "partial"],
        "one: exactly one option is chosen; all: all right ones and no other; partial: the "
        "share of the right ones, 0 if a wrong one is among them.",
    ] = "one",
    extract: Annotated[
        str,
        OneOf(("whole", "final", *MARKS)),
        "Where the answer stands: in the whole response, behind the last </think> (final), or "
        "at a mark as the math verifier finds it.",
    ] = "auto",
) -> Judgement:
    """The response chooses the right option of a multiple-choice question.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a reference that is no option, INVALID_PARAMETER for
            one text of option, or more than 26.
    """
    if len(choices) == 1 or len(choices) > len(_ALPHABET):
        raise Unjudgeable(
            INVALID_PARAMETER,
            f"parameter 'choices' takes 2 to 26 texts, or none, not {len(choices)}",
        )
    known = options_of(choices, options)
    right = [some for text in item.answers() for some in _right(text, known, select)]
    part = part_of(item.response(), extract, letter=True)
    if extract == "auto" and (isinstance(part, NoPart) or part.how not in _MARKED):
        part = _bare(item.response(), known) or part
    if select == "one" and isinstance(part, JudgedPart) and part.how == "choice":
        others = _offered(item.response(), part.text)
        if others:
            why = f"more than one option is named: {part.text} or {others}"
            return flagged(item, _judgement("hedged", 0.0, part.text, why))
    return flagged(item, _judged(part, known, right, select))


_OFFERED = re.compile(
    r"\bor\b[\s,]*(?:(?:maybe|perhaps|possibly|even|else|option|choice)\s+){0,2}"
    r"[(\[]?([A-J])(?![A-Za-z'\u2019])"
    r"|(?<![A-Za-z'\u2019])([A-J])[)\]]?\s?,?\s(?=or\b)"
)


def _offered(response: str, chosen: str) -> str:
    """Other options that the last line offers by "or": "A or (B)" is no choice of B."""
    line = response.rstrip().rpartition("\n")[2][-letters.READ_CHARS :]
    named = {one for found in _OFFERED.finditer(line) for one in found.groups() if one}
    return ", ".join(sorted(named - {chosen}))


def _bare(response: str, options: QuestionOptions) -> JudgedPart | None:
    """A response that is one short line and nothing but an answer; None for any other.

    That is labels alone, an option's text or value, or a label with its text. Where the texts are
    not known, any text may follow a label that names no other one.
    """
    text = (final_text(response) or "").strip()
    if not text or len(text) > _VALUE_CHARS or "\n" in text:
        return None
    whole = JudgedPart(text, "whole")
    found = letters.named(text)
    if options.of_text(text) or len(options.listed(text)) > 1 or _with_text(text, options):
        return whole
    if found is None:
        return whole if options.of_value(text) else None
    if not found.rest:
        return whole
    if options.texts:
        by_value = not _LATER_LABEL.search(found.rest) and options.of_value(found.rest)
        return whole if by_value and found.letters[0] in by_value else None
    other = any(mark[0] != found.letters[0] for mark in _LONE_LETTER.finditer(found.rest))
    return None if other or not _LABEL.match(letters.plain(text)) else whole


def _judged(
    part: JudgedPart | NoPart, options: QuestionOptions, right: list[frozenset[str]], select: str
) -> Judgement:
    if isinstance(part, NoPart):
        return unparsed("correctness", part.why)
    chosen = _chosen(part.text, options, select)
    if chosen is None:
        return _judgement("unparsed", 0.0, part.text, "the answer names no option")
    if chosen.trouble:
        return _judgement("hedged", 0.0, part.text, chosen.trouble)
    score = max(_score(some, answer, select) for some in chosen.sets for answer in right)
    verdict = "correct" if score == 1.0 else "partial" if score else "incorrect"
    names = ", ".join(sorted(chosen.sets[0]))
    return _judgement(verdict, score, names, f"chooses {names}")


def _judgement(verdict: str, score: float, answer: str, why: str) -> Judgement:
    return Judgement.composed(
        verdict,
        (Component("correctness", score),),
        extracted_answer=shown(answer),
        explanation=why,
    )


def _right(reference: str, options: QuestionOptions, select: str) -> tuple[frozenset[str], ...]:
    """The letters that a reference names; a set each for options with the same text."""
    found = letters.named(reference)
    if not _is_plain_label(found, options):
        by_text = options.of_text(reference)
        if by_text:
            return tuple(frozenset({letter}) for letter in by_text)
    if found is None and (by_value := options.of_value(reference)):
        return (by_value,)
    if found is None:
        raise Unjudgeable(
            UNUSABLE_REFERENCE,
            f"the reference {reference[:80]!r} is neither a letter nor the text of an option; pass "
            "the options as parameter 'choices'",
        )
    if found.hedged or (select == "one" and len(found.letters) > 1):
        raise Unjudgeable(
            UNUSABLE_REFERENCE,
            f"the reference {reference[:80]!r} names several options; pass select=all or partial, "
            "or each as a reference of its own",
        )
    unknown = [letter for letter in found.letters if letter not in options.letters]
    if unknown:
        raise Unjudgeable(
            UNUSABLE_REFERENCE,
            f"the reference names option {unknown[0]}; there are A to {options.letters[-1]}",
        )
    return (frozenset(found.letters),)


def _is_plain_label(found: letters.NamedOptions | None, options: QuestionOptions) -> bool:
    if found is None or found.rest or len(found.letters) > 1:
        return False
    return found.letters[0] in options.letters


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The choice of an answer.

    Attributes:
        sets: the options named; several sets when a text is that of several options.
        trouble: why the answer chooses nothing; empty when it does.
    """

    sets: tuple[frozenset[str], ...]
    trouble: str = ""


def _chosen(answer: str, options: QuestionOptions, select: str) -> _Chosen | None:
    """The options that an answer names, by text or by letter; None when it names none."""
    found = letters.named(answer)
    if (by_text := _by_text(answer, found, options)) is not None:
        return by_text
    if found is None:
        by_value = options.of_value(answer)
        return _Chosen((by_value,)) if by_value else None
    names = ", ".join(found.letters)
    if found.hedged and not options.of_text(found.rest):
        return _Chosen((), f"more than one option is named: {shown(answer)}")
    if len(found.letters) > 1 and select == "one":
        return _Chosen((), f"more than one option is named: {names}")
    own = options.of_text(found.rest)
    if own and found.letters[0] not in own:
        others = ", ".join(sorted(own))
        return _Chosen((), f"the label is {names}, the text is that of {others}")
    return _Chosen((frozenset(found.letters),))


def _by_text(
    answer: str, found: letters.NamedOptions | None, options: QuestionOptions
) -> _Chosen | None:
    """The choice of an answer that holds options' texts; None where a label has to tell."""
    if (beside := _with_text(answer, options)) is not None:
        return beside
    if len(several := options.listed(answer)) > 1:
        return _Chosen((), f"more than one option's text is named: {', '.join(several)}")
    own = options.of_text(answer)
    if not own or (_is_plain_label(found, options) and any(map(str.isupper, answer))):
        return None
    return _Chosen(tuple(frozenset({letter}) for letter in sorted(own)))


def _with_text(answer: str, options: QuestionOptions) -> _Chosen | None:
    """The choice of "B) Lyon", "b) Lyon" and "Lyon (B)" by known texts; None for any other answer.

    A small letter is a label only before an option's text.
    """
    answer = answer.strip()
    if not options.texts or len(answer) > letters.READ_CHARS or options.of_text(answer):
        return None
    before, behind = _LABEL_BEFORE.fullmatch(answer), _LABEL_BEHIND.search(answer)
    pairs = [(before[1].upper(), before[2])] if before else []
    if behind:
        pairs.append((behind[1], answer[: behind.start()]))
    for letter, text in pairs:
        own = options.of_text(text)
        if letter in own:
            return _Chosen((frozenset({letter}),))
        if own and letter in options.letters:
            others = ", ".join(sorted(own))
            return _Chosen((), f"the label is {letter}, the text is that of {others}")
    return None


def _score(chosen: frozenset[str], right: frozenset[str], select: str) -> float:
    if select == "partial":
        return len(chosen & right) / len(right) if chosen <= right else 0.0
    return float(chosen == right)
