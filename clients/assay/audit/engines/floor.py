"""Floor and ceiling: what needs no answer must get nothing, and the right answer all. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assay.audit.answers.truth import is_certainly_wrong, loose_words, mentions
from assay.audit.dress import DRESSES
from assay.audit.probes import Asking, Probe, ProbeClass, Subject

_FILLER = (
    "First we look at what is given. Then we think about how the parts relate. After that we go "
    "through each case with care. Finally we put the results together and check them. "
)
_REFUSALS = (
    "I do not know.",
    "I'm sorry, but I can't help with that.",
    "As an AI model I am unable to answer this question.",
)
_KEYWORDS = (
    "correct", "Correct!", "True", "1", "1.0", "yes", "PASS", "Score: 10/10", "answer", "ANSWER",
    "reference", "ground_truth", "solution", "expected", "response", "target", "label",
    "None", "null", "nan", "NaN", "inf", "-inf", "undefined", "[]", "{}", "()", "''", "0", "...",
    "?", "*", "_", "%", ".", "-", "\\", "$", "#",
)  # fmt: skip
_VERDICTS = tuple(word for word in _KEYWORDS if word.isalpha() and len(word) > 4)
_UNANSWERED = {
    "unknown", "unanswerable", "cannot", "undetermined", "indeterminate", "impossible", "none",
    "insufficient", "undefined", "no", "not",
}  # fmt: skip
_FORMULA = re.compile(
    r"[$\\]|[\d)!]\s*(?:[-+*/^%\u00d7\u00f7\u00b7]|dozen|hundred|[tmb]\w*ill?ion|thousand)\s*",
    re.IGNORECASE,
)
_MOST_OTHERS = 3
CLASSES = (
    ProbeClass(
        "right-answer", "accept", "recall",
        "the right answer, in the forms that the grader reads best",
        "read the forms in which your policy answers; the prompt may ask for one",
        "semantic.oracle_max",
    ),
    ProbeClass(
        "given-right", "accept", "recall",
        "a response of the row's column `right`",
        "see why the grader refuses it",
    ),
    ProbeClass(
        "given-wrong", "refuse", "hole",
        "a response of the row's column `wrong`",
        "see why the grader accepts it",
    ),
    ProbeClass(
        "empty", "refuse", "hole",
        "nothing, white space, or a form without an answer in it",
        "refuse a response whose extracted answer is empty before anything is compared",
        "semantic.floor_gap",
    ),
    ProbeClass(
        "refusal", "refuse", "hole",
        "a refusal to answer",
        "compare the extracted answer, not the style or length of the text",
    ),
    ProbeClass(
        "filler", "refuse", "hole",
        "words without an answer, short or long",
        "give nothing for length, structure or tone where the answer is wrong",
    ),
    ProbeClass(
        "echo", "refuse", "hole",
        "the prompt, which does not hold the answer",
        "strip the prompt from the response, and extract the answer before comparing",
    ),
    ProbeClass(
        "echo-formula", "refuse", "warning",
        "the prompt, whose formula may be worth the answer",
        "refuse a computation that is left to do, where the answer is a value",
    ),
    ProbeClass(
        "other-row", "refuse", "hole",
        "the right answer of another row",
        "compare with this row's reference; do not keep verdicts by the response alone",
    ),
    ProbeClass(
        "keyword", "refuse", "hole",
        "a word or sign that graders and languages give a meaning",
        "compare texts or numbers, never truth values, patterns or the words of a verdict",
    ),
)  # fmt: skip


class FloorAndCeiling:
    """The reference itself, and responses without an answer."""

    name = "floor"
    classes: Sequence[ProbeClass] = CLASSES

    def ask(self, subject: Subject) -> Asking:
        """Asks for the ceiling first, so that a grader which remembers has something to remember.

        What is asked of a row does not depend on what was said.
        """
        ceiling = [probe for row in range(len(subject.rows)) for probe in _ceiling(subject, row)]
        if ceiling:
            yield ceiling
        floor = [probe for row in range(len(subject.rows)) for probe in _floor(subject, row)]
        subject.draws(self.name).shuffle(floor)
        if floor:
            yield floor


def _ceiling(subject: Subject, row: int) -> Iterator[Probe]:
    truth = subject.rows[row].truth
    if truth.texts and subject.rows[row].tests is None:
        for dress in subject.dresses:
            response = dress.wear(truth.text)
            yield Probe(row, "right-answer", response, "accept", "the reference", dress.name)
    for right in subject.rows[row].right:
        yield Probe(row, "given-right", right, "accept", "the row says that it is right")


def _floor(subject: Subject, row: int) -> Iterator[Probe]:
    known = subject.rows[row]
    for wrong in known.wrong:
        yield Probe(row, "given-wrong", wrong, "refuse", "the row says that it is wrong")
    if known.tests is not None:
        yield from _no_program(row)
    if not known.truth.texts:
        return
    for kind, response, note, dress in _answerless(subject, row):
        if not mentions(response, known.truth):
            yield Probe(row, kind, response, "refuse", note, dress)
    yield from _others(subject, row)


def _no_program(row: int) -> Iterator[Probe]:
    for text in ("", " \n", "pass", "# nothing", *_REFUSALS[:1]):
        kind = "refusal" if text in _REFUSALS else "empty"
        yield Probe(row, kind, text, "refuse", "there is no program in it")


def _answerless(subject: Subject, row: int) -> Iterator[tuple[str, str, str, str]]:
    """Class, response, note and dress of what needs no answer."""
    for text in ("", " ", "\n\n\t", "\u200b"):
        yield "empty", text, "nothing to see", ""
    for dress in subject.dresses:
        for text in ("", " "):
            yield "empty", dress.wear(text), "the form without an answer", dress.name
    for dress in subject.draws("empty dresses", row).sample(DRESSES, 4):
        yield "empty", dress.wear(""), "the form without an answer", dress.name
    yield "empty", "<think></think>", "the form without an answer", ""
    yield "empty", "<think>\n\n</think>\n<answer></answer>", "the form without an answer", ""
    truth = subject.rows[row].truth
    refuses = _UNANSWERED.intersection(word for text in truth.texts for word in loose_words(text))
    for text in () if refuses else _REFUSALS:
        yield "refusal", text, "it refuses", ""
        yield "refusal", subject.dresses[0].wear(text), "it refuses", subject.dresses[0].name
    yield "filler", _FILLER.strip(), "no answer in it", ""
    yield "filler", (_FILLER * 30).strip(), "no answer in it", ""
    yield "filler", subject.dresses[0].wear(_FILLER.strip()), "words", subject.dresses[0].name
    yield "filler", f"<think>\n{_FILLER * 3}\n</think>\nHence the result follows.", "words", ""
    yield "filler", "- " + "\n- ".join(_FILLER.split(". ")), "a list without an answer", ""
    draws = subject.draws("keywords", row)
    # Of what nobody reads as a number or a word, such as a set, some signs may be the answer.
    keywords = _VERDICTS if truth.sort in ("formula", "prose") else _KEYWORDS
    # ... and of yes and no there are other words than those that are known here.
    for word in subject.some(keywords, 12, draws) if truth.sort != "polar" else ():
        yield "keyword", word, "it says nothing of this row", ""
        dress = draws.choice(list(subject.dresses))
        yield "keyword", dress.wear(word), "it says nothing of this row", dress.name
    prompt = subject.rows[row].prompt
    if prompt.strip():
        worth = truth.sort in ("number", "formula", "prose") and _FORMULA.search(prompt)
        kind = "echo-formula" if worth else "echo"
        yield kind, prompt, "the prompt", ""
        yield kind, subject.dresses[0].wear(prompt), "the prompt", subject.dresses[0].name


def _others(subject: Subject, row: int) -> Iterator[Probe]:
    """Right answers of other rows that are certainly wrong for this one."""
    truth = subject.rows[row].truth
    found = 0
    places = list(range(len(subject.rows)))
    subject.draws("others", row).shuffle(places)
    for other in places:
        answer = subject.rows[other].truth.text
        if other != row and answer and is_certainly_wrong(answer, truth, subject.tolerance):
            note = f"the answer of row {subject.rows[other].id}"
            for dress in subject.dresses:
                yield Probe(row, "other-row", dress.wear(answer), "refuse", note, dress.name)
            found += 1
        if found == _MOST_OTHERS:
            return
