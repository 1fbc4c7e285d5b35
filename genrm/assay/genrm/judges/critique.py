"""Critiques: a verdict on each step and one on the whole, and what several of them agree on.

The judge writes freely, and gives each verdict on a line of its own:

    The sum is right.
    Step 1: correct
    It divides by zero.
    Step 2: wrong
    Verdict: wrong

Strict in what is said: each step once, in order, one closing verdict, and nothing after it but the
end of a fence. Tolerant in how: verdicts in bold, in lists and tables, under headings, with emoji,
"Step 2 is not correct", "Final verdict: incorrect". Every dialect is a row of
tests/dialects/critiques.toml, beside what must stay unread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.genrm.domain import CRITIQUE_CHARS
from assay.genrm.judges.dress import bare, marks, unwrapped
from assay.genrm.judges.parsing import spoken

FORM = '"Step k: correct" or "Step k: wrong" on a line for each step, then "Verdict: correct|wrong"'
_LINE_CHARS = 120
_ROW_CHARS = 600
_NUMBERED = re.compile(r"\A[0-9]{1,4}[.)]\s+(?=\S*(?:step|verdict|final|overall))", re.IGNORECASE)
_WORDS = {
    "correct": True,
    "right": True,
    "valid": True,
    "wrong": False,
    "incorrect": False,
    "invalid": False,
    "not correct": False,
    "not right": False,
    "not valid": False,
}
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_SAID = rf"(?:(?:this|the|it)(?: step| response| solution| answer)? is )?[(\[]?({_WORD})?[)\]]?"
_STEP = re.compile(
    rf"(?:verdict (?:on|for|of) )?[(\[]?step #?([0-9]{{1,4}})[)\]]?(?:'s)?(?: verdict)?"
    rf"(?: ?[:.] ?| is | - | )?{_SAID}"
)
_NUMBER = re.compile(rf"([0-9]{{1,4}}) ?[.):] ?({_WORD})")
_NAME = (
    r"(?:my |the |our )?"
    r"(?:(?:final |overall |closing )?verdict|(?:final|overall|closing) (?:judge?ment|assessment))"
    r"(?: (?:on|for|of) the (?:whole|response|solution))?"
)
_FINAL = re.compile(rf"{_NAME}(?: ?[:.] ?| is | - )?{_SAID}")
_WHOLE = re.compile(
    rf"(?:(?:overall|conclusion|result|in conclusion|final answer)[:,]? ?)?"
    rf"(?:the (?:whole |overall |entire )?(?:response|solution|answer)(?: as a whole)? is )?"
    rf"(?:overall )?({_WORD})"
)


@dataclass(frozen=True, slots=True)
class Critique:
    """One critique, read: whether each step (`steps`) and the whole (`final`) is right.

    `notes` are the texts before each step's verdict, cut to 2,000 characters; `text` is all of it.
    """

    steps: tuple[bool, ...]
    final: bool
    notes: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Majority:
    """What critiques agree on.

    Attributes:
        steps: whether more than half call each step right.
        shares: the share that calls each step right, in [0, 1].
        final: more than half call every step right, and more than half the whole.
        share: the least share, the whole's included; above 0.5 where `final`.
    """

    steps: tuple[bool, ...]
    shares: tuple[float, ...]
    final: bool
    share: float


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """A line that gives a verdict, or announces one.

    `number` is the step's, 0 for the whole; `right` is None for a heading, whose verdict follows.
    """

    number: int
    right: bool | None


class _Reading:
    """Takes up a critique line by line; `failed` once it does not keep to the form."""

    def __init__(self, step_count: int) -> None:
        self.steps: list[bool] = []
        self.notes: list[str] = []
        self.final: bool | None = None
        self.failed = False
        self._count = step_count
        self._note: list[str] = []
        self._heading: int | None = None

    def take(self, line: str) -> None:
        """The next line, which is not blank."""
        if self.final is not None:
            self.failed = self.failed or bool(line.strip().strip("`"))
            return
        found = read_line(line) or self._under_heading(line)
        if found is None:
            self._note.append(line)
        elif found.right is None:
            self._heading = found.number
            self._note.append(line)
        else:
            self._verdict(found.number, found.right)

    def _under_heading(self, line: str) -> VerdictLine | None:
        """A verdict's word alone is that of the heading before it."""
        word = _word(line)
        if word is None or self._heading is None:
            return None
        return VerdictLine(self._heading, word)

    def _verdict(self, number: int, right: bool) -> None:
        if number == 0 and self._heading and len(self.steps) + 1 == self._heading:
            number = self._heading  # "Verdict: correct" under "Step 2" is that of the step
        self._heading = None
        if number == 0:
            self.final = right
            return
        self.steps.append(right)
        self.notes.append("\n".join(self._note).strip()[:CRITIQUE_CHARS])
        self._note = []
        self.failed = self.failed or number != len(self.steps)

    def close(self) -> None:
        """At the end: the last line may say of the whole what it is, without the word verdict."""
        last = next((line for line in reversed(self._note) if line.strip().strip("`")), "")
        if self.final is None and len(self.steps) == self._count and self._note:
            self.final = _of_whole(last)


def parse_critique(text: str, step_count: int) -> Critique | None:
    """The verdicts of a critique of `step_count` steps; None where it does not keep to the form."""
    said = spoken(text)
    if said is None:
        return None
    reading = _Reading(step_count)
    for line in said.split("\n"):
        if line.strip():
            reading.take(line)
    reading.close()
    if reading.failed or reading.final is None or len(reading.steps) != step_count:
        return None
    return Critique(tuple(reading.steps), reading.final, tuple(reading.notes), text)


def read_line(line: str) -> VerdictLine | None:
    """A verdict on a line of its own, or a heading for one; None for any other line.

    Where a line's signs (a check mark, a cross) contradict its word, it is none.
    """
    if line.count("|") > 1 and len(line) <= _ROW_CHARS:
        return _of_row(line)
    if len(line) > _LINE_CHARS:
        return None
    said = _lower(_NUMBERED.sub("", line.strip(), count=1))
    if match := _STEP.fullmatch(said):
        return _line(int(match[1]), match[2], line)
    if match := _FINAL.fullmatch(said):
        return _line(0, match[1], line)
    if match := _NUMBER.fullmatch(said):
        return _line(int(match[1]), match[2], line)
    return None


def _lower(text: str) -> str:
    return bare(text).lower().replace("isn't", "is not").replace("isn\u2019t", "is not")


def _line(number: int, word: str | None, line: str) -> VerdictLine | None:
    signs = marks(line)
    right = None if word is None else _WORDS[word]
    if right is None and len(signs) == 1:
        right = next(iter(signs))
    if right is None:
        return None if signs else VerdictLine(number, None)
    return VerdictLine(number, right) if signs <= {right} else None


def _of_row(line: str) -> VerdictLine | None:
    """A row of a table: what it is about first, its verdict last, and no other one between."""
    first, *between = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if not between:
        return read_line(first)
    last = between.pop()
    right = _word(last)
    if right is None or any(_word(cell) is not None for cell in between):
        return None
    name = unwrapped(bare(first)).lower()
    if match := re.fullmatch(r"(?:step )?#?([0-9]{1,4})", name):
        return VerdictLine(int(match[1]), right)
    return VerdictLine(0, right) if re.fullmatch(f"{_NAME}|overall|whole", name) else None


def _word(text: str) -> bool | None:
    """What a text of one verdict's word, or one sign, says."""
    if len(text) > _LINE_CHARS:
        return None
    said, signs = bare(text).lower(), marks(text)
    if said in _WORDS:
        return _WORDS[said] if signs <= {_WORDS[said]} else None
    return next(iter(signs)) if not said and len(signs) == 1 else None


def _of_whole(line: str) -> bool | None:
    match = _WHOLE.fullmatch(_lower(line)) if len(line) <= _LINE_CHARS else None
    if match is None:
        return None
    right = _WORDS[match[1]]
    return right if marks(line) <= {right} else None


def majority(critiques: Sequence[Critique]) -> Majority:
    """The majority of each step, and of the whole, which needs every step (SPARK).

    Raises:
        ValueError: there are no critiques, or they are of different lengths.
    """
    if not critiques or len({len(critique.steps) for critique in critiques}) > 1:
        raise ValueError("a majority needs critiques of the same steps, and at least one")
    count = len(critiques)
    by_step = zip(*(critique.steps for critique in critiques), strict=True)
    shares = tuple(sum(verdicts) / count for verdicts in by_step)
    share = min((*shares, sum(critique.final for critique in critiques) / count))
    return Majority(tuple(part > 0.5 for part in shares), shares, share > 0.5, share)
