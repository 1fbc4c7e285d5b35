"""Rollouts of search agents: who wrote which part, and whether the parts are in order.

A rollout is one text with the marks of its kind, or a dialogue whose messages say who wrote them.
What a tool returned in a dialogue is one block of information, whatever marks stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.reward_server.domain import Candidate

THOUGHT, QUERY, FOUND, ANSWER = "thought", "query", "found", "answer"

_START, _BETWEEN, _THOUGHT_DONE, _QUERY_DONE, _END = (
    "at start",
    "read",
    "thought done",
    "asked",
    "at end",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One format of rollouts.

    Attributes:
        marks: the opening and the closing mark of each part, by THOUGHT, QUERY, FOUND and ANSWER.
        inside: queries and what they found stand inside of the thought.
        boxed: the answer holds a box, which is what counts.
    """

    marks: dict[str, tuple[str, str]]
    inside: bool = False
    boxed: bool = False

    @property
    def steps(self) -> dict[tuple[str, str], str]:
        """Where each mark leads: from a state and a mark to the next state."""
        (think, thought), (ask, asked), (read, done), (say, said) = (
            self.marks[part] for part in (THOUGHT, QUERY, FOUND, ANSWER)
        )
        steps = {
            (_START, think): THOUGHT,
            (THOUGHT, thought): _THOUGHT_DONE,
            (THOUGHT if self.inside else _THOUGHT_DONE, ask): QUERY,
            (QUERY, asked): _QUERY_DONE,
            (_QUERY_DONE, read): FOUND,
            (FOUND, done): THOUGHT if self.inside else _BETWEEN,
            (_THOUGHT_DONE, say): ANSWER,
            (ANSWER, said): _END,
        }
        return steps if self.inside else {**steps, (_BETWEEN, think): THOUGHT}


def _tags(*names: str) -> dict[str, tuple[str, str]]:
    parts = (THOUGHT, QUERY, FOUND, ANSWER)
    return {part: (f"<{n}>", f"</{n}>") for part, n in zip(parts, names, strict=True)}


KINDS = {
    "search-r1": Kind(_tags("think", "search", "information", "answer")),
    "research": Kind(_tags("think", "search", "result", "answer"), boxed=True),
    "r1-searcher": Kind(
        {
            **_tags("think", "search", "information", "answer"),
            QUERY: ("<|begin_of_query|>", "<|end_of_query|>"),
            FOUND: ("<|begin_of_documents|>", "<|end_of_documents|>"),
        },
        inside=True,
    ),
}


@dataclass(frozen=True, slots=True)
class SearchRollout:
    """What a rollout consists of.

    Attributes:
        answers: what stands in marks of the answer outside of what was found, in order.
        found: what tools returned; in one text, what stands in its marks.
        said: the text outside of what was found.
        trouble: why its parts are not in order; empty when they are.
        is_split: it is a dialogue: what tools returned is known to be theirs.
    """

    answers: tuple[str, ...]
    found: tuple[str, ...]
    said: str
    trouble: str
    is_split: bool


def read(candidate: Candidate, kind: Kind, *, opened: bool) -> SearchRollout:
    """The parts of a rollout.

    Args:
        candidate: one text, or a dialogue.
        kind: its format.
        opened: the prompt ends with the mark that opens a thought, which may then be missing.
    """
    marks = [mark for pair in kind.marks.values() for mark in pair]
    pattern = re.compile("(" + "|".join(map(re.escape, marks)) + ")")
    begin, end = kind.marks[FOUND]
    pieces: list[str] = []
    returned: list[str] = []
    trouble = ""
    for message in candidate.turns:
        parts = pattern.split(message.content)
        if message.from_policy:
            written = begin if begin in parts else end
            trouble = f"the policy wrote {written}" if written in parts else trouble
            pieces += parts
        else:
            returned.append(" ".join(parts[::2]))
            pieces += [begin, returned[-1], end]
    if candidate.text is not None:
        pieces = pattern.split(candidate.text)
        returned = _blocks(pieces, (begin, end))
    first = next((piece for piece in pieces if piece.strip()), "")
    if opened and first != kind.marks[THOUGHT][0]:
        pieces.insert(0, kind.marks[THOUGHT][0])
    said = _outside(pieces, (begin, end))
    return SearchRollout(
        tuple(_blocks(said, kind.marks[ANSWER])),
        tuple(returned),
        "".join(said),
        trouble or _disorder(pieces, kind, set(marks)),
        bool(candidate.turns),
    )


def _outside(pieces: Sequence[str], marks: tuple[str, str]) -> list[str]:
    """What stands outside of the blocks between two marks."""
    outside: list[str] = []
    is_inside = False
    for piece in pieces:
        if piece in marks:
            is_inside = piece == marks[0]
        elif not is_inside:
            outside.append(piece)
    return outside


def _blocks(pieces: Sequence[str], marks: tuple[str, str]) -> list[str]:
    """The texts from each opening mark to the next closing one, marks of others included."""
    blocks: list[str] = []
    inside: list[str] | None = None
    for piece in pieces:
        if inside is None:
            inside = [] if piece == marks[0] else None
        elif piece == marks[1]:
            blocks.append("".join(inside).strip())
            inside = None
        else:
            inside.append(piece)
    return blocks


def _disorder(pieces: Sequence[str], kind: Kind, marks: set[str]) -> str:
    """What is out of order first; empty for nothing."""
    state, steps = _START, kind.steps
    for piece in pieces:
        if piece in marks:
            if (state, piece) not in steps:
                return f"{piece} stands where it may not"
            state = steps[state, piece]
        elif piece.strip() and state not in kind.marks:
            return "there is text between the parts"
    return "" if state == _END else "the answer is missing or not closed"
