"""What a turn's text says: calls, an answer, or neither. Pure; linear in the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from assay.environments.types import Reply
from assay.kit.tool_calls import ToolCall
from assay.kit.tool_calls.calls import MaybeCall, UntypedText
from assay.kit.tool_calls.dialects import MAX_CALLS, DialectReading, read_calls, turn_part

_SHOWN = 400
"""Characters of what could not be read, for the refusal."""


def read_reply(text: str, dialect: str, stops: Sequence[str], *, truncated: bool) -> Reply:
    """A turn in one of the dialects of assay.kit.tool_calls.

    A call inside a thought counts where the turn ends with it: a stop text ended the turn there.
    """
    found = read_calls(text, dialect)
    thinking = bool(found.trouble)
    if thinking and not truncated and ends_with(text, stops):
        found = _inside_thought(text, dialect) or found
    calls = [
        _tool_call(call, written)
        for call, written in zip(found.calls[:MAX_CALLS], found.written, strict=False)
    ]
    answer = "" if thinking else found.rest.strip()
    return reply_of(text, calls, answer, truncated=truncated)


def reply_of(text: str, calls: Iterable[ToolCall], answer: str, *, truncated: bool) -> Reply:
    """The turn; void where it has neither a call nor an answer.

    A cut turn has no broken last call: nobody knows how it would have ended.
    """
    kept = tuple(calls)
    if truncated and kept and not kept[-1].name:
        kept = kept[:-1]
    return Reply(text, kept, answer, void=not kept and not answer, truncated=truncated)


def ends_with(text: str, stops: Sequence[str]) -> bool:
    """Whether a turn ends with a stop text, up to white space."""
    tail = text[-400:].rstrip()
    return any(tail.endswith(stop.strip()) for stop in stops)


def _inside_thought(text: str, dialect: str) -> DialectReading | None:
    """The calls of a thought that never ends."""
    found = read_calls(turn_part(text), dialect, thoughts=False)
    return found if found.calls else None


def _tool_call(call: MaybeCall, written: str) -> ToolCall:
    if call is None:
        return ToolCall("", text=written[:_SHOWN])
    return ToolCall(call.name, {name: _plain(value) for name, value in call.arguments.items()})


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, UntypedText) else value
