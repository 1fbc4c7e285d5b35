r"""Rewrites: those that keep the meaning must be accepted, near misses refused. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence, Set

from assay.audit.answers.truth import STRUCTURED, Truth
from assay.audit.answers.vocabulary import KIND, Vocabulary
from assay.audit.answers.wrong import frame_of, near_misses, plain_wrong, spliced
from assay.audit.dress import DRESSES, PLAIN, Dress
from assay.audit.probes import Asking, AuditRow, Probe, ProbeClass, Subject

_MOST_REPEATS = 64
_MOST_ALIKE = 2
_SPLICED = ("words", "number", "list", "formula", *STRUCTURED)
_OF_PARTS = ("words", "list", "formula", "prose", *STRUCTURED)
_FULL_WIDTH = str.maketrans("0123456789", "".join(chr(0xFF10 + digit) for digit in range(10)))
_WHOLE = "compare numbers as numbers, exactly (fractions.Fraction), after all of the answer is read"
CLASSES = (
    ProbeClass(
        "dress", "accept", "recall",
        "the right answer in a form that the grader does not read best",
        "say the form in the prompt, or read more of them",
    ),
    ProbeClass(
        "rewrite", "accept", "recall",
        "the right answer, written otherwise: spaces, case, separators, signs of other scripts",
        "normalise both sides in the same way before they are compared",
    ),
    ProbeClass(
        "corrected", "accept", "recall",
        "a wrong answer is taken back for the right one",
        "read the last answer that a response gives",
    ),
    ProbeClass("sign", "refuse", "hole", "the right number with the other sign",
               "let the pattern that finds numbers take the sign along"),
    ProbeClass("off-by-one", "refuse", "hole", "a value close to the right one",
               "make the tolerance as small as the reference's last digit; none for whole numbers"),
    ProbeClass("scaled", "refuse", "hole", "the right digits, another magnitude", _WHOLE),
    ProbeClass("digits", "refuse", "hole", "some of the right characters, or all in another order",
               "compare whole answers: no substring, prefix, set of characters or ratio"),
    ProbeClass("read-in-part", "refuse", "hole", "it begins as the right number and is another",
               "match the whole of the answer (re.fullmatch), not its beginning"),
    ProbeClass("cut", "refuse", "hole", "a part of the right number", _WHOLE),
    ProbeClass("upside-down", "refuse", "hole", "the reciprocal", _WHOLE),
    ProbeClass("unit", "refuse", "hole", "the right number of another unit",
               "compare units, too, where the reference has one"),
    ProbeClass("qualified", "refuse", "warning", "the right number, and % or a magnitude",
               "compare the whole answer, with what stands behind its number"),
    ProbeClass("other-name", "refuse", "hole", "another name that has a word of the right one",
               "compare whole names, not the words that they share"),
    ProbeClass("look-alike", "refuse", "warning", "it looks like the right number to a normaliser",
               "do not normalise exponents into digits (NFKC does)"),
    ProbeClass("another-choice", "refuse", "hole", "another letter of the choice",
               "take the letter that is chosen, not any that occurs"),
    ProbeClass("opposite", "refuse", "hole", "the opposite of yes or no",
               "compare the answer's word, not whether one occurs"),
    ProbeClass("fragment", "refuse", "hole", "one or two letters of the right words",
               "never ask whether the response is in the reference"),
    ProbeClass("another-word", "refuse", "hole", "another word", "compare with the reference"),
    ProbeClass("list-part", "refuse", "hole", "a list with a part too few, too many, or another",
               "compare as many parts as there are on both sides"),
    ProbeClass("order", "refuse", "hole", "the right parts in another order, where it matters",
               "compare sequences as sequences, not as sets or sorted"),
    ProbeClass("order-unsaid", "refuse", "warning", "the right parts in another order, or twice",
               "say in the prompt whether order matters, and compare lists or sets accordingly"),
    ProbeClass("run-together", "refuse", "hole", "what parts its numbers is left out",
               "compare the parts; do not delete blanks, commas and points before"),
    ProbeClass("field-value", "refuse", "hole", "JSON with one value changed",
               "parse both sides and compare them whole; pay nothing for a part"),
    ProbeClass("field", "refuse", "hole", "JSON with a field left out, renamed or exchanged",
               "compare the sets of keys of both sides, then each value with its own key's"),
    ProbeClass("extra-field", "refuse", "hole", "JSON with a field more, against the prompt",
               "compare the sets of keys of both sides"),
    ProbeClass("typed", "refuse", "hole",
               "JSON with a text for a number, where the prompt says that it is a number",
               "compare types, too: a number is no text"),
    ProbeClass("unbroken", "refuse", "hole",
               "blanks for line breaks, where the prompt asks for lines",
               "compare line by line: split lines before words"),
    ProbeClass("key-twice", "refuse", "hole", "JSON that gives a key twice, the last time wrong",
               "refuse an object with a key twice (object_pairs_hook)"),
    ProbeClass("lax-data", "refuse", "warning",
               "JSON with other types, a field more, a key twice, or a misspelt text",
               "see whether the task allows it; a schema says so"),
    ProbeClass("component", "refuse", "hole",
               "a date, interval, formula, numeral, number to dial or other code with a component "
               "changed or left out",
               "parse both sides and compare all components; no prefix, and no similarity"),
    ProbeClass("term", "refuse", "hole", "a formula with a sign, number or term changed",
               "compare formulas by a symbolic difference, or at many points, of random size"),
    ProbeClass("dotless", "refuse", "hole", "another sign stands where a point belongs",
               "a reference is no pattern: compare texts, or re.escape it"),
    ProbeClass("lax-form", "refuse", "warning",
               "a code in another case, without what parts it, with text behind it, or a date in "
               "another order",
               "say the form in the prompt, and match the whole of the answer"),
    ProbeClass("line", "refuse", "hole", "lines of which one is changed, left out or too many",
               "compare as many lines as there are on both sides, each whole"),
    ProbeClass("beside", "refuse", "warning", "the right data or lines, and wrong ones beside them",
               "refuse a response that gives two answers, or say which one counts"),
    ProbeClass("neighbour", "refuse", "hole", "one more or less than a large whole number",
               "compare whole numbers as such: no relative tolerance, no float"),
    ProbeClass("neighbour-unsaid", "refuse", "warning",
               "one more or less than a large whole number that may be a measurement",
               "compare whole numbers as such, or say the tolerance in the prompt"),
    ProbeClass("unit-case", "refuse", "warning", "the unit in another case, which is another unit",
               "compare units with their case: mW is not MW"),
    ProbeClass("namesake", "refuse", "hole", "what has the right name in its own, and is another",
               "compare whole names, with what stands behind them"),
    ProbeClass("splice", "refuse", "hole",
               "a part of another row's answer in the right one, or of the right one in that",
               "compare all parts of an answer, each as a whole"),
    ProbeClass(KIND, "refuse", "hole",
               "the right answer with a part that stands in its place in other rows' answers",
               "compare all parts of an answer, each as a whole", likely=True),
    ProbeClass("case", "refuse", "hole", "other capitals, where the prompt says that they count",
               "compare texts as they are: no lower(), no casefold()"),
    ProbeClass("altered", "refuse", "hole",
               "a letter, sign or word is another, where the prompt asks for the words as they are",
               "compare texts exactly, but for what the prompt leaves free; no similarity"),
    ProbeClass("day-month", "refuse", "hole", "day and month exchanged, where the prompt says "
               "which of them is first", "parse dates in the one order that the prompt names"),
    ProbeClass("numbers-used", "refuse", "hole",
               "an expression of the right value that does not use the numbers that were given",
               "compare the numbers of the expression with the given ones, each as often"),
    ProbeClass("doubt", "refuse", "hole", "a wrong answer, and how sure or unsure it is of itself",
               "pay nothing for a wrong answer, however small the confidence beside it"),
    ProbeClass("rounded", "refuse", "hole", "a decimal near the right number, not exactly it",
               "compare exactly (fractions.Fraction, sympy) where the prompt asks for it"),
    ProbeClass("repeat", "refuse", "hole", "what was refused before, asked again",
               "a reward may depend on nothing but its arguments: no state, no random numbers",
               "semantic.verifier_determinism"),
)  # fmt: skip


class Metamorphic:
    """The right answer, changed so that the verdict must stay, or must turn."""

    name = "metamorphic"
    classes: Sequence[ProbeClass] = CLASSES

    def ask(self, subject: Subject) -> Asking:
        """Asks all, then some of the refused ones again.

        Near misses of structured answers are asked in forms in which that row's reference is
        accepted: else it may be no answer, but what a grader makes one of.
        """
        plain = _as_given(subject)
        said = (yield plain) if plain else []
        read = {
            (probe.row, probe.dress)
            for probe, one in zip(plain, said, strict=False)
            if subject.scale.accepts(one)
        }
        alike = _alike(subject)
        others = _vocabulary(subject)
        probes = [
            probe
            for row in range(len(subject.rows))
            for probe in (
                *_of_row(subject, row, read, alike.get(row, ())),
                *_of_parts(subject, row, read, others),
            )
        ]
        if not probes:
            return
        draws = subject.draws(self.name)
        draws.shuffle(probes)
        said = yield probes
        refused = [
            probe
            for probe, one in zip(probes, said, strict=False)
            if probe.wants == "refuse" and one.reward is not None and not subject.scale.accepts(one)
        ]
        again = draws.sample(refused, min(_MOST_REPEATS, len(refused)))
        if again:
            yield [
                Probe(one.row, "repeat", one.response, "refuse", f"{one.kind}, again", one.dress, 1)
                for one in again
            ]


def _as_given(subject: Subject) -> list[Probe]:
    """The structured references as they stand."""
    return [
        Probe(place, "rewrite", dress.wear(row.truth.text), "accept", "as it is", dress.name)
        for place, row in enumerate(subject.rows)
        if row.truth.sort in STRUCTURED and row.tests is None
        for dress in subject.dresses
    ]


def _alike(subject: Subject) -> dict[int, list[Truth]]:
    """For each row a few others whose answer has the same shape."""
    groups: dict[object, list[int]] = {}
    for place, row in enumerate(subject.rows):
        truth = row.truth
        if truth.texts and row.tests is None and truth.sort in _SPLICED:
            groups.setdefault((truth.sort, frame_of(truth)), []).append(place)
    found: dict[int, list[Truth]] = {}
    for places in groups.values():
        for number, place in enumerate(places):
            others = [*places[number + 1 :], *places[:number]][:_MOST_ALIKE]
            found[place] = [subject.rows[other].truth for other in others]
    return found


def _vocabulary(subject: Subject) -> Vocabulary:
    """Of the rows whose answer has parts that nobody need read."""
    return Vocabulary([row.truth.text for row in subject.rows if _has_parts(row)])


def _has_parts(row: AuditRow) -> bool:
    return bool(row.truth.texts) and row.tests is None and row.truth.sort in _OF_PARTS


def _of_parts(
    subject: Subject, row: int, read: Set[tuple[int, str]], others: Vocabulary
) -> Iterator[Probe]:
    known = subject.rows[row]
    if not _has_parts(known):
        return
    draws, worn = subject.draws(KIND, row), _worn(subject, row, read)
    for kind, answer, note in others.misses(known.truth.text, known.prompt, draws):
        for dress in worn if answer not in known.truth.texts else ():
            yield Probe(row, kind, dress.wear(answer), "refuse", note, dress.name)


def _worn(subject: Subject, row: int, read: Set[tuple[int, str]]) -> Sequence[Dress]:
    """The forms that a row's near misses wear."""
    if subject.rows[row].truth.sort not in STRUCTURED:
        return subject.dresses
    return [dress for dress in subject.dresses if (row, dress.name) in read]


def _of_row(
    subject: Subject, row: int, read: Set[tuple[int, str]], alike: Sequence[Truth]
) -> Iterator[Probe]:
    known = subject.rows[row]
    truth = known.truth
    if not truth.texts or known.tests is not None:
        return
    worn_here = _worn(subject, row, read)
    misses = list(near_misses(truth, subject.tolerance)) if worn_here else []
    if worn_here:
        misses += spliced(truth, alike, subject.tolerance)
    for kind, answer, note in misses:
        for dress in worn_here:
            yield Probe(row, kind, dress.wear(answer), "refuse", note, dress.name)
    yield from _doubted(subject, row)
    others = [dress for dress in DRESSES if dress not in subject.dresses]
    for dress in others:
        yield Probe(row, "dress", dress.wear(truth.text), "accept", "the reference", dress.name)
    draws = subject.draws("other dresses", row)
    for dress in draws.sample(others, 3) if misses else ():
        kind, answer, note = draws.choice(misses)
        yield Probe(row, kind, dress.wear(answer), "refuse", note, dress.name)
    for text, note in _qualified(truth, known.prompt):
        for dress in subject.dresses:
            yield Probe(row, "qualified", dress.wear(text), "refuse", note, dress.name)
    for text, note in _rewritten(truth):
        dress = subject.dresses[0]
        yield Probe(row, "rewrite", dress.wear(text), "accept", note, dress.name)
    if misses:
        worn = subject.dresses[-1] if subject.dresses[0] == PLAIN else subject.dresses[0]
        wrong, right = (worn.wear(one) for one in (misses[0][1], truth.text))
        text = f"{wrong}\n\nNo, wait, that is wrong. My answer is different:\n\n{right}"
        yield Probe(row, "corrected", text, "accept", "the last answer is right")


def _doubted(subject: Subject, row: int) -> Iterator[Probe]:
    """Wrong answers, and how sure they are of themselves: not at all, or wholly."""
    truth = subject.rows[row].truth
    for dress in (one for one in subject.dresses if one.doubts):
        for wrong in plain_wrong(truth, 1):
            for form in dress.doubts:
                response = form.replace("{}", wrong)
                yield Probe(row, "doubt", response, "refuse", f"it answers {wrong}", dress.name)


def _qualified(truth: Truth, prompt: str) -> Iterator[tuple[str, str]]:
    """A whole number made another by what is put behind it, unless the prompt speaks of that."""
    if truth.sort != "number" or truth.unit or truth.places or not truth.value:
        return
    said = prompt.casefold()
    for mark, note in (("%", "percent"), (" million", "million"), (" dozen", "dozen")):
        if mark.strip() not in said and note not in said:
            yield f"{truth.text}{mark}", f"{note} of it"


def _rewritten(truth: Truth) -> Iterator[tuple[str, str]]:
    """Other ways to write the first right answer."""
    text = truth.text
    yield f"  {text} ", "spaces around it"
    yield f"{text}\n", "a line break behind it"
    if truth.sort in ("words", "polar"):
        yield text.upper(), "in capitals"
        yield text.lower(), "in small letters"
        yield f"{text}.", "a full stop behind it"
    if truth.sort == "choice":
        yield f"({text.strip('().')})", "in brackets"
        yield text.lower(), "in small letters"
    if truth.sort == "number" and truth.value is not None:
        yield f"${text}$", "in dollars"
        if truth.places == 0:
            core = text.removesuffix(truth.unit)
            yield f"{core}.0{truth.unit}", "with a decimal place"
            yield text.translate(_FULL_WIDTH), "in full-width digits"
            if abs(truth.value) >= 1000:
                yield f"{int(truth.value):,}{truth.unit}", "thousands are separated"
        if truth.value < 0:
            yield text.replace("-", "\u2212"), "with the sign for minus"
    if truth.sort == "list" and truth.mark == ", ":
        yield text.replace(", ", ","), "without spaces"
    if truth.sort == "json":
        value = json.loads(text)
        yield json.dumps(value, indent=2, ensure_ascii=False), "indented"
        yield json.dumps(value, separators=(",", ":"), ensure_ascii=False), "without blanks"
        if isinstance(value, dict):
            turned = dict(reversed(value.items()))
            yield json.dumps(turned, ensure_ascii=False), "its keys in reverse"
    if truth.sort == "lines":
        yield text.replace("\n", "\r\n"), "with carriage returns"
        yield text.replace("\n", "  \n"), "blanks behind its lines"
