"""A prompt template: our words, places for other people's text, and the verdicts to choose from.

A line `{name}` is the place of a fenced text, and `{name?}` of one that may be absent. What the
candidates of one prompt have in common comes first: beginnings are shared.

A template with `letters` names no option: the judge answers with a letter that is drawn anew for
each judgement, and the line `{verdicts}`, behind all places, says which letter means what.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from assay.genrm.domain import (
    ChatMessage,
    TrajectoryTurn,
)
from assay.genrm.engines.base import Prompt, PromptMessage, PromptPiece
from assay.genrm.templates.fencing import fence, fence_steps, fence_turns, join, one_line
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

Kind = Literal[
    "pointwise",
    "pairwise",
    "critique",
    "meta-critique",
    "self-verification",
    "criterion",
    "evidence",
]
Style = Literal["direct", "reasoned"]
Slot = str | tuple[str, ...] | tuple[ChatMessage, ...] | tuple[TrajectoryTurn, ...] | None

PLACE = re.compile(r"\{([a-z_]{1,32})(\??)\}")
ROLES = ("system", "user", "assistant", "tool")
LABELS = {
    "question": "QUESTION",
    "response": "RESPONSE",
    "response_a": "RESPONSE A",
    "response_b": "RESPONSE B",
    "ground_truth": "REFERENCE ANSWER",
    "rubric": "RUBRIC",
    "steps": "RESPONSE",
    "critique": "CRITIQUE",
    "criterion": "Criterion",
}
PLACED_LABELS = {"response_a": "FIRST RESPONSE", "response_b": "SECOND RESPONSE"}
VERDICTS = "{verdicts}"
NUMBERED_LABELS = {"response_a": "RESPONSE 1", "response_b": "RESPONSE 2"}
LEAST_MASS = 0.5
ANY_RUBRIC = "The response is right, and answers what was asked."
CUTTABLE = frozenset({"response", "response_a", "response_b", "steps"})
NEEDED: dict[Kind, frozenset[str]] = {
    "pointwise": frozenset({"question", "response"}),
    "pairwise": frozenset({"question", "response_a", "response_b"}),
    "critique": frozenset({"question", "steps"}),
    "meta-critique": frozenset({"question", "steps", "critique"}),
    "self-verification": frozenset({"question", "response"}),
    "criterion": frozenset({"question", "response", "criterion"}),
    "evidence": frozenset({"question", "response", "criterion"}),
}
POSSIBLE: dict[Kind, frozenset[str]] = {
    "pointwise": frozenset({"ground_truth", "rubric"}),
    "pairwise": frozenset({"ground_truth"}),
    "critique": frozenset({"ground_truth"}),
    "meta-critique": frozenset({"ground_truth"}),
    "self-verification": frozenset(),
    "criterion": frozenset(),
    "evidence": frozenset(),
}


@dataclass(frozen=True, slots=True)
class VerdictOption:
    """One verdict.

    Attributes:
        text: what comes after the prefill, or stands in the answer tag; a leading space counts.
        value: in [0, 1]; of a pairwise template, the chance that the first response is better.
        also: other spellings whose probability counts for it, such as a capital letter.
        meaning: what its letter stands for, in a template that draws them; `text` is the letter,
            empty before it is drawn.
    """

    text: str
    value: float
    also: tuple[str, ...] = ()
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A question with a response that is right and one that is wrong, for the self-test.

    Attributes:
        question: what was asked.
        right: a response that any fit judge prefers; its paragraphs are its steps.
        wrong: a response that is wrong.
        ground_truth: the right answer; empty for a template that reads none.
        rubric: what a good response does, in words.
    """

    question: str
    right: str
    wrong: str
    ground_truth: str = ""
    rubric: str = ANY_RUBRIC


@dataclass(frozen=True, slots=True)
class Template:
    """One version of a prompt template.

    Attributes:
        name: lower-case letters, digits and hyphens.
        version: from 1; a change of wording is a new version.
        kind: what it is for.
        description: what it asks, in one sentence.
        system: the system message; empty for none.
        user: the user message.
        verdicts: what the judge chooses from; none for critiques.
        style: "direct": the verdict at once; "reasoned": `<think>...</think>`, then
            `<answer>...</answer>`, as R1-Reward (arXiv 2505.02835).
        prefill: how the judge's answer begins.
        max_tokens: of the answer, where the caller does not say.
        least_mass: the least share of the model's probability, in [0, 1], that the verdicts must
            hold for their probabilities to be a verdict.
        cases: known answers of its own for the self-test; none for the shipped ones.
        letters: its options are letters, which `drawn` gives it before it is rendered.
    """

    name: str
    version: int
    kind: Kind
    description: str
    system: str
    user: str
    verdicts: tuple[VerdictOption, ...] = ()
    style: Style = "direct"
    prefill: str = ""
    max_tokens: int = 1024
    least_mass: float = LEAST_MASS
    cases: tuple[KnownCase, ...] = ()
    letters: bool = False

    @property
    def ref(self) -> str:
        """How it is asked for and reported: "name@version"."""
        return f"{self.name}@{self.version}"

    @property
    def options(self) -> tuple[str, ...]:
        """The texts of the verdicts."""
        return tuple(verdict.text for verdict in self.verdicts)

    @property
    def spellings(self) -> tuple[str, ...]:
        """The texts of the verdicts, then their other spellings, verdict by verdict."""
        return (*self.options, *(text for verdict in self.verdicts for text in verdict.also))

    @property
    def values(self) -> tuple[float, ...]:
        """The values of the verdicts."""
        return tuple(verdict.value for verdict in self.verdicts)

    @property
    def places(self) -> dict[str, bool]:
        """Name of each place, and whether it must be filled."""
        matches = [
            PLACE.fullmatch(line) for text in (self.system, self.user) for line in _lines(text)
        ]
        found = {match[1]: not match[2] for match in matches if match}
        return {name: needed for name, needed in found.items() if name != VERDICTS[1:-1]}

    def drawn(self, letters: Sequence[str], *, turned: bool = False) -> Template:
        """This template with a letter for each verdict, in order; `turned`: in reverse order.

        Its list says the letters in their order, so that turning changes a verdict's letter and its
        place in the list.
        """
        count = len(self.verdicts)
        order = range(count - 1, -1, -1) if turned else range(count)
        space = " " if self.style == "direct" else ""
        listed = [(letters[at], self.verdicts[index]) for at, index in enumerate(order)]
        given = {verdict.meaning: letter for letter, verdict in listed}
        lines = "\n".join(f"{letter}: {verdict.meaning}" for letter, verdict in listed)
        verdicts = tuple(replace(one, text=space + given[one.meaning]) for one in self.verdicts)
        user = "\n".join(lines if line == VERDICTS else line for line in _lines(self.user))
        return replace(self, verdicts=verdicts, user=user)

    def render(self, **slots: Slot) -> Prompt:
        """The prompt with its places filled; None and blank texts are absent.

        `question` is the conversation, `steps` the texts of the steps; the others are texts.

        Raises:
            Unjudgeable: MISSING_REFERENCE, a place that must be filled is not; INVALID_PARAMETER,
                there is no place for something that was given.
            ValueError: its letters are not drawn.
        """
        if self.letters and not all(self.options):
            raise ValueError(f"the letters of template {self.ref} are not drawn")
        given = {name: slot for name, slot in slots.items() if not _absent(slot)}
        places = self.places
        for name in given:
            if name not in places:
                raise Unjudgeable(
                    Reason.INVALID_PARAMETER,
                    f"template {self.ref} has no place for a {_spoken(name)}; choose another "
                    "template, or leave it out",
                )
        for name, needed in places.items():
            if needed and name not in given and name not in ("question", "critique"):
                raise Unjudgeable(
                    Reason.MISSING_REFERENCE,
                    f"template {self.ref} needs a {_spoken(name)}; give one, or choose another "
                    "template",
                )
        messages = [PromptMessage("user", self._fill(self.user, given))]
        if self.system:
            messages.insert(0, PromptMessage("system", self._fill(self.system, given)))
        return Prompt(tuple(messages), self.prefill, template=self.ref, drawn=self.letters)

    def _fill(self, text: str, given: dict[str, Slot]) -> tuple[PromptPiece, ...]:
        pieces: list[PromptPiece] = []
        skip_blank = False
        for line in _lines(text):
            match = PLACE.fullmatch(line)
            if skip_blank and not line:
                skip_blank = False
                continue
            skip_blank = False
            if match and match[2] and match[1] not in given:
                skip_blank = True
                continue
            pieces.extend(
                self._fenced(match[1], given.get(match[1])) if match else (PromptPiece(line),)
            )
            pieces.append(PromptPiece("\n"))
        return join(pieces[:-1])

    def _fenced(self, name: str, slot: Slot) -> tuple[PromptPiece, ...]:
        label, cuttable = self._label(name), name in CUTTABLE
        if name == "question":
            return _conversation(label, slot)
        if name == "criterion":
            return one_line(label, str(slot))
        if isinstance(slot, tuple):
            turns = [part for part in slot if isinstance(part, TrajectoryTurn)]
            if turns:
                return fence_turns(label, turns, cuttable=cuttable)
            return fence_steps(label, [str(step) for step in slot], cuttable=cuttable)
        return fence(label, slot if isinstance(slot, str) else "", cuttable=cuttable)

    def _label(self, name: str) -> str:
        if self.letters:
            return PLACED_LABELS.get(name, LABELS[name])
        numbered = {option.strip() for option in self.options} >= {"1", "2"}
        return (NUMBERED_LABELS if numbered else {}).get(name, LABELS[name])


def _lines(text: str) -> Sequence[str]:
    return text.strip("\n").split("\n")


def _absent(slot: Slot) -> bool:
    return slot is None or not slot or (isinstance(slot, str) and not slot.strip())


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _conversation(label: str, slot: Slot) -> tuple[PromptPiece, ...]:
    if isinstance(slot, str) or not slot:
        return fence(label, slot if isinstance(slot, str) else "")
    messages = [
        turn if isinstance(turn, ChatMessage) else ChatMessage("user", str(turn)) for turn in slot
    ]
    if [message.role for message in messages] == ["user"]:
        return fence(label, messages[0].content)
    pieces: list[PromptPiece] = []
    for number, message in enumerate(messages, start=1):
        if message.role not in ROLES:
            raise Unjudgeable(
                Reason.INVALID_PARAMETER,
                f"a message of the prompt has the role {message.role[:40]!r}; roles are "
                f"{', '.join(ROLES)}",
            )
        pieces += [PromptPiece("\n")] if pieces else []
        pieces += fence(f"{label}, MESSAGE {number} BY {message.role.upper()}", message.content)
    return tuple(pieces)
