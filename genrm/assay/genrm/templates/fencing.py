"""Puts other people's text into a prompt so that it cannot speak for us.

A fenced text stands between two lines that carry a code derived from it:

    [RESPONSE 5be01f9c begins]
    ...
    [RESPONSE 5be01f9c ends]

No text holds its own code (assay.clients.judging.fencing). Equal texts get equal fences, so prompts
are reproducible and beginnings shared.

Covered: closing the fence from within; lines that look like a fence but lack the code. Special
tokens in fenced text are the engine's part (`PromptPiece.trusted`). Not covered: text that
persuades the model; bench/judge_injection measures how often it does.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.clients.judging.fencing import code_of
from assay.genrm.domain import TrajectoryTurn
from assay.genrm.engines.base import PromptPiece


def fence(label: str, text: str, *, cuttable: bool = False) -> tuple[PromptPiece, ...]:
    """A text, which may be empty, between two lines that name it by the label."""
    return _between(label, code_of(text), (PromptPiece(text, trusted=False, cuttable=cuttable),))


def fence_steps(
    label: str, steps: Sequence[str], *, cuttable: bool = False
) -> tuple[PromptPiece, ...]:
    """A text in steps, each under a line of ours that numbers it from 1."""
    code = code_of("\n".join(steps))
    inner: list[PromptPiece] = []
    for number, step in enumerate(steps, start=1):
        heading = f"[Step {number} {code}]\n"
        inner.append(PromptPiece(heading if number == 1 else "\n" + heading))
        inner.append(PromptPiece(step.strip("\r\n"), trusted=False, cuttable=cuttable))
    return _between(label, code, inner)


def fence_turns(
    label: str, turns: Sequence[TrajectoryTurn], *, cuttable: bool = False
) -> tuple[PromptPiece, ...]:
    """A trajectory, each turn and each call under a line of ours.

    Roles are ours; what is said, tools' names and arguments are data.
    """
    code = code_of("\n".join(text for turn in turns for text in turn.texts))
    inner = [
        PromptPiece(f"[{label} {code} is a trajectory: judge what ASSISTANT says and calls in it]")
    ]
    for number, turn in enumerate(turns, start=1):
        inner.append(PromptPiece(f"\n[Turn {number} by {turn.role.upper()} {code}]"))
        if turn.content:
            inner += [PromptPiece("\n"), PromptPiece(turn.content, False, cuttable)]
        for call in turn.calls:
            inner.append(PromptPiece(f"\n[Turn {number} calls a tool {code}]\n"))
            inner.append(PromptPiece(call.name, trusted=False))
            inner.append(PromptPiece("\n"))
            inner.append(PromptPiece(call.arguments, False, cuttable))
    return _between(label, code, inner)


def one_line(label: str, text: str) -> tuple[PromptPiece, ...]:
    """A text of the caller's, not the candidate's, as one line behind a label.

    A line cannot hold one of ours, and needs a third of a fence's tokens: a rubric's prompts differ
    in nothing else.
    """
    return (PromptPiece(f"{label}:"), PromptPiece(f" {' '.join(text.split())}", trusted=False))


def join(pieces: Sequence[PromptPiece]) -> tuple[PromptPiece, ...]:
    """The same text in fewer pieces: touching trusted ones are merged, empty ones dropped."""
    joined: list[PromptPiece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if joined and piece.trusted and joined[-1].trusted:
            joined[-1] = PromptPiece(joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return tuple(joined)


def _between(label: str, code: str, inner: Sequence[PromptPiece]) -> tuple[PromptPiece, ...]:
    return (
        PromptPiece(f"[{label} {code} begins]\n"),
        *inner,
        PromptPiece(f"\n[{label} {code} ends]"),
    )
