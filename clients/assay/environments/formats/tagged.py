"""The format `tagged`: JSON between tags, results as the user's words. For any template, or none.

<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>

<tool_response>
3
</tool_response>
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from assay.environments.formats.replies import read_reply
from assay.environments.types import EpisodeMessage, Reply, ToolCall

OPEN, CLOSE = "<tool_call>", "</tool_call>"
RESULT, RESULT_END = "<tool_response>", "</tool_response>"
_HOW = f"""You can call tools. To call one, write a JSON object with its name and its arguments
between tags, as in

{OPEN}{{"name": "NAME", "arguments": {{"ARGUMENT": "VALUE"}}}}{CLOSE}

The result follows between {RESULT} and {RESULT_END}. You may call tools again and again; when you
know the answer, write it without a call. The tools, as JSON:
"""
_FORGED = re.compile("|".join(map(re.escape, (OPEN, CLOSE, RESULT, RESULT_END))))


class TaggedFormat:
    """See the module."""

    name = "tagged"
    native = False
    offers = False
    stops: tuple[str, ...] = (CLOSE,)
    tags: tuple[str, ...] = (OPEN, CLOSE, RESULT, RESULT_END)

    def system(self, tools: Sequence[dict[str, Any]]) -> str:
        """See Format."""
        if not tools:
            return ""
        return _HOW + "\n".join(json.dumps(one["function"], ensure_ascii=False) for one in tools)

    def read(self, text: str, *, truncated: bool = False) -> Reply:
        """See Format."""
        return read_reply(text, "hermes", self.stops, truncated=truncated)

    def shown(self, messages: Sequence[EpisodeMessage]) -> list[EpisodeMessage]:
        """See Format; a result that holds the tags has `&lt;` in their place."""
        return results_as_words(messages, _result, _call)


def _result(message: EpisodeMessage) -> str:
    return f"{RESULT}\n{_FORGED.sub(_escaped, message.content)}\n{RESULT_END}"


def _call(call: ToolCall) -> str:
    said = {"name": call.name, "arguments": call.arguments or {}}
    return f"{OPEN}{json.dumps(said, ensure_ascii=False)}{CLOSE}"


def _escaped(tag: re.Match[str]) -> str:
    return "&lt;" + tag[0][1:]


def results_as_words(
    messages: Sequence[EpisodeMessage],
    result: Callable[[EpisodeMessage], str],
    call: Callable[[ToolCall], str],
) -> list[EpisodeMessage]:
    """Results that follow one another become one message of the user, calls the assistant's text.

    Args:
        messages: of any roles.
        result: writes a result.
        call: writes a call.
    """
    said: list[EpisodeMessage] = []
    results: list[str] = []
    for message in messages:
        if message.role == "tool":
            results.append(result(message))
            continue
        if results:
            said.append(EpisodeMessage("user", "\n".join(results)))
            results = []
        parts = [message.content, *map(call, message.calls)]
        text = "\n".join(part for part in parts if part)
        said.append(EpisodeMessage(message.role, text))
    if results:
        said.append(EpisodeMessage("user", "\n".join(results)))
    return said
