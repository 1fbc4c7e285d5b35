"""Cutting the middle out of data, and breaking up what looks like a special token: text only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from assay.genrm.engines.base import Prompt, PromptPiece

CHARS_PER_TOKEN = 16
"""No text worth judging has more characters a token. A longer one is cut, or refused, before its
tokens are counted, so that a text of megabytes costs nobody's time."""
LEFT_OUT = "\n[... {} characters left out ...]\n"


def level(lengths: Sequence[int], room: int) -> int:
    """The greatest cap under which ascending lengths add up to at most `room`; may be below 1."""
    for index, length in enumerate(lengths):
        share = room // (len(lengths) - index)
        if length > share:
            return share
        room -= length
    return max(lengths, default=0)


def ends(piece: PromptPiece, kept: int) -> tuple[PromptPiece, ...]:
    """The first and last characters of a piece, `kept` in all, and a line of ours between."""
    head, tail = (kept + 1) // 2, kept // 2
    text = piece.text
    return (
        PromptPiece(text[:head], trusted=piece.trusted),
        PromptPiece(LEFT_OUT.format(len(text) - head - tail)),
        PromptPiece(text[len(text) - tail :], trusted=piece.trusted),
    )


def broken(looks: re.Pattern[str], text: str) -> Iterator[str]:
    """The text in parts, cut behind the first character of whatever the pattern finds."""
    start = position = 0
    while found := looks.search(text, position):
        position = found.start() + 1
        yield text[start:position]
        start = position
    yield text[start:]


def without_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """Merges a leading system message into the user's message behind it."""
    roles = [message["role"] for message in messages[:2]]
    if roles != ["system", "user"]:
        return messages
    content = f"{messages[0]['content']}\n\n{messages[1]['content']}"
    return [{"role": "user", "content": content}, *messages[2:]]


def skeleton(prompt: Prompt) -> tuple[object, ...]:
    """The trusted part of a prompt: equal for prompts that differ in their data only."""
    messages = ((message.role, *_ours(message.pieces)) for message in prompt.messages)
    return (prompt.prefill, _ours(prompt.lead), *messages)


def pieces_of(prompt: Prompt) -> list[PromptPiece]:
    """All pieces in order."""
    pieces = [piece for message in prompt.messages for piece in message.pieces]
    return [*pieces, *prompt.lead]


def without(prompt: Prompt) -> Prompt:
    """The prompt with nothing in its cuttable pieces."""
    messages = tuple(
        replace(
            message,
            pieces=tuple(replace(p, text="") if p.cuttable else p for p in message.pieces),
        )
        for message in prompt.messages
    )
    return replace(prompt, messages=messages)


def _ours(pieces: Iterable[PromptPiece]) -> tuple[str | None, ...]:
    return tuple(piece.text if piece.trusted else None for piece in pieces)


def mark_for(prompt: Prompt, template: str) -> str:
    """A format of marks that no trusted text holds: letters and digits, so nothing trims them."""
    ours = [template, prompt.prefill]
    ours += [piece.text for piece in pieces_of(prompt) if piece.trusted]
    whole = "\n".join(ours)
    number = 0
    while f"Qx{number}z" in whole:
        number += 1
    return f"Qx{number}z{{}}zQ"
