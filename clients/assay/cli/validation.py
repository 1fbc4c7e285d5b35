"""Checks the references of a data set: each gold answer, given as the response, must be right.

A reference that its own verifier cannot read, or does not find right, costs every rollout of its
prompt. A reference that spells no response (data, tests, an anchor) must only be usable: an empty
response gets a judgement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from assay.clients.types import Item, Reference, Result, VerifierInfo, is_texts

FORMS: dict[str, Callable[[str], str]] = {
    "boxed": lambda gold: f"\\boxed{{{gold}}}",
    "answer-line": lambda gold: f"Answer: {gold}",
    "plain": lambda gold: gold,
    "none": lambda _: "",
}
"""How a gold answer is written as a response, by name."""

_FORM_OF_VERIFIER = {"math": "boxed", "choice": "answer-line"}
_SHOWN_CHARS = 60
_EQUAL = 1e-9


def default_form(verifier: str) -> str:
    """The form from which a verifier reads answers."""
    return _FORM_OF_VERIFIER.get(verifier, "plain")


def gold_response(reference: Reference | None, form: str) -> str:
    """The response that a reference spells; the first of several answers, empty for data."""
    if isinstance(reference, str):
        return FORMS[form](reference)
    if is_texts(reference) and reference:
        return FORMS[form](reference[0])  # type: ignore[index]  # a sequence of texts
    return ""


def spells_response(reference: Reference | None, form: str) -> bool:
    """Whether the reference spells a response; otherwise it must only be usable."""
    return form != "none" and (isinstance(reference, str) or is_texts(reference))


@dataclass(frozen=True, slots=True)
class Gold:
    """A reference to check: the gold answer as an item, and whether the reference spells it."""

    id: str
    item: Item
    spelt: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """A reference that cannot be used: the row's id, and why in at most 60 characters."""

    id: str
    why: str


@dataclass(slots=True)
class Validation:
    """Counts over a data set's references.

    Attributes:
        correct: gold answers that were found right.
        usable: references that spell no response, and were judged against.
        wrong: gold answers that were judged, and not found right.
        faults: references without a judgement, by reason.
        failures: the first wrong and faulted ones, at most `keep`.
    """

    correct: int = 0
    usable: int = 0
    wrong: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    keep: int = 1000

    def add(self, gold: Gold, result: Result, info: VerifierInfo) -> None:
        """Counts one reference, judged by the verifier `info`."""
        row_id, judgement, fault = gold.id, result.judgement, result.fault
        if judgement is None:
            reason = fault.reason if fault else "?"
            self.faults[reason] += 1
            self._fail(row_id, f"{reason}: {fault.message if fault else ''}")
        elif not gold.spelt:
            self.usable += 1
        elif judgement.verdict == "correct" or judgement.reward >= info.max_reward - _EQUAL:
            self.correct += 1
        else:
            self.wrong += 1
            self._fail(row_id, f"{judgement.verdict}: {judgement.explanation}")

    @property
    def done(self) -> int:
        """References counted."""
        return self.right + self.wrong + self.faulted

    @property
    def right(self) -> int:
        """References that can be trained on."""
        return self.correct + self.usable

    @property
    def faulted(self) -> int:
        """References without a judgement."""
        return self.faults.total()

    @property
    def rate(self) -> float:
        """The share that can be trained on, 0 to 1; 0 of nothing."""
        return self.right / self.done if self.done else 0.0

    def _fail(self, row_id: str, why: str) -> None:
        if len(self.failures) < self.keep:
            line = " ".join(why.split())
            cut = line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 3] + "..."
            self.failures.append(Failure(row_id, cut))
