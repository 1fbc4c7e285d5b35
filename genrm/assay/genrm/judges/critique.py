"""Critiques: a verdict on each step and one on the whole, and what several of them agree on.

The judge writes freely, and gives each verdict on a line of its own:

    The sum is right.
    Step 1: correct
    It divides by zero.
    Step 2: wrong
    Verdict: wrong

Strict in what is said: each step once, in order, one closing verdict, and nothing after it but the
end of a fence. Tolerant in its dress, for models put verdicts in bold, in lists, under headings,
and say "Final verdict: incorrect": `read_line` has the forms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.genrm.domain import CRITIQUE_CHARS

FORM = '"Step k: correct" or "Step k: wrong" on a line for each step, then "Verdict: correct|wrong"'
_LINE_CHARS = 120
_DRESS = re.compile(r"[*_`#|~\s]+|\\(?:boxed|text|textbf)\{|[{}]")
_LIST = re.compile(r"\A(?:[-+\u2022]|[0-9]{1,4}[.)])\s+")
_WORDS = {"correct": True, "right": True, "wrong": False, "incorrect": False}
_WORD = "|".join(_WORDS)
_STEP = re.compile(rf"step ([0-9]{{1,4}}) ?(?:[:=\u2013\u2014-]|is) ?({_WORD})")
_FINAL = re.compile(
    rf"(?:my |the )?(?:final |overall |closing )?verdict ?(?:[:=\u2013\u2014-]|is) ?({_WORD})"
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


def parse_critique(text: str, step_count: int) -> Critique | None:
    """The verdicts of a critique of `step_count` steps; None where it does not keep to the form."""
    steps: list[bool] = []
    notes: list[str] = []
    final: bool | None = None
    note: list[str] = []
    for line in text.split("\n"):
        if final is not None:
            if line.strip().strip("`"):
                return None
            continue
        match read_line(line):
            case (0, right):
                final = right
            case (number, right):
                steps.append(right)
                notes.append("\n".join(note).strip()[:CRITIQUE_CHARS])
                note = []
                if number != len(steps):
                    return None
            case None:
                note.append(line)
    if final is None or len(steps) != step_count:
        return None
    return Critique(tuple(steps), final, tuple(notes), text)


def read_line(line: str) -> tuple[int, bool] | None:
    """A verdict on a line of its own: the step's number, 0 for the whole, and whether it is right.

    Ignored: letter case, marks of Markdown and of LaTeX's box, a list's bullet, a full stop.
    """
    if len(line) > _LINE_CHARS:
        return None
    said = _LIST.sub("", line.strip(), count=1)
    said = " ".join(_DRESS.sub(" ", said).lower().split()).rstrip(" .!").replace(" :", ":")
    if match := _STEP.fullmatch(said):
        return int(match[1]), _WORDS[match[2]]
    if match := _FINAL.fullmatch(said):
        return 0, _WORDS[match[1]]
    return None


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
