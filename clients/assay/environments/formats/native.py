"""The chat template's own format of calls, recognised from an example that the template renders.

The template is shown a tool, a call of it and a result. Its format is native where all that must
be there is, and what it writes for the call is read back as that call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.environments.formats.replies import read_reply
from assay.environments.types import EpisodeMessage, Reply
from assay.kit.tool_calls.calls import UntypedText, WrittenCall
from assay.kit.tool_calls.dialects import FORMATS, MARKS, read_calls

_TOOL, _ARGUMENT, _VALUE, _RESULT = "assay_probe", "assay_argument", "assay value", "assay result"
_ABOUT, _ASKED = "An example that assay shows.", "Assay asks."
CALL_ID = "assay0001"
"""Nine letters and digits, as Mistral's templates want them."""
_SCHEMA: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": _TOOL,
        "description": _ABOUT,
        "parameters": {
            "type": "object",
            "properties": {_ARGUMENT: {"type": "string", "description": "A text."}},
            "required": [_ARGUMENT],
        },
    },
}
_HOW = "You can call tools. The tools, as JSON:\n"


@dataclass(frozen=True, slots=True)
class CallShape:
    """How a template takes an assistant's message with calls.

    Attributes:
        text: arguments are the text of their JSON; else an object.
        nothing: what stands for no content: None, or an empty text.
    """

    text: bool = False
    nothing: str | None = ""

    def message(self, calls: Sequence[tuple[str, str, Mapping[str, Any]]]) -> dict[str, Any]:
        """The message of calls: (name, id, arguments) each."""
        return {
            "role": "assistant",
            "content": self.nothing,
            "tool_calls": [
                {
                    "type": "function",
                    "id": id_ or CALL_ID,
                    "function": {
                        "name": name,
                        "arguments": json.dumps(given, ensure_ascii=False) if self.text else given,
                    },
                }
                for name, id_, given in calls
            ],
        }


@dataclass(slots=True)
class NativeFormat:
    """A chat template's own format: a turn ends where the policy ends it, after any calls.

    Attributes:
        dialect: a key of assay.kit.tool_calls.dialects.FORMATS.
        shape: how the template takes calls.
    """

    name: str
    dialect: str
    offers: bool
    tags: tuple[str, ...]
    shape: CallShape
    stops: tuple[str, ...] = ()
    native: bool = True

    def system(self, tools: Sequence[dict[str, Any]]) -> str:
        """See Format."""
        if self.offers or not tools:
            return ""
        return _HOW + "\n".join(json.dumps(one["function"], ensure_ascii=False) for one in tools)

    def read(self, text: str, *, truncated: bool = False) -> Reply:
        """See Format."""
        reply = read_reply(text, self.dialect, self.stops, truncated=truncated)
        if self.dialect != "harmony":
            return reply
        answer = "" if reply.calls else _final(text)
        return replace(reply, answer=answer, void=not reply.calls and not answer)

    def shown(self, messages: Sequence[EpisodeMessage]) -> list[EpisodeMessage]:
        """See Format: the template takes them as they are."""
        return list(messages)


CALL_SHAPES = (
    CallShape(),
    CallShape(nothing=None),
    CallShape(text=True),
    CallShape(text=True, nothing=None),
)


def native_format(tokenizer: Any, dialect: str = "") -> NativeFormat | str:
    """The template's format; or, in a clause, why it has none that can be read.

    Args:
        tokenizer: of transformers, with a chat template.
        dialect: a key of FORMATS; empty for the one that reads the template's example.
    """
    why = "the chat template shows no calls of tools"
    for shape in CALL_SHAPES:
        whole = _rendered(tokenizer, shape)
        if whole is None or _TOOL not in whole[0] or _VALUE not in whole[0]:
            continue
        written, offers, answered = whole
        if not answered:
            why = "the chat template shows no results of tools"
            continue
        names = (dialect,) if dialect else (*_marked(written), "json", "pythonic", "react")
        for name in names:
            if _reads_back(written, name):
                source = str(tokenizer.chat_template)
                return NativeFormat(
                    name="native",
                    dialect="llama" if name == "json" and not dialect else name,
                    offers=offers,
                    tags=_tags(source, written),
                    shape=shape,
                )
        why = "no known format reads the calls that the chat template writes"
    return why


def _rendered(tokenizer: Any, shape: CallShape) -> tuple[str, bool, bool] | None:
    """What the template writes for a call; whether it tells of the tool, and of the result."""
    asked = {"role": "user", "content": _ASKED}
    call = shape.message([(_TOOL, CALL_ID, {_ARGUMENT: _VALUE})])
    result = {"role": "tool", "content": _RESULT, "name": _TOOL, "tool_call_id": CALL_ID}
    try:
        begun = _render(tokenizer, [asked], generation=True)
        called = _render(tokenizer, [asked, call])
        whole = _render(tokenizer, [asked, call, result], generation=True)
    except Exception:  # noqa: BLE001  # whatever a template raises
        return None
    return _behind(called, begun), _ABOUT in begun, _RESULT in whole


def _behind(called: str, begun: str) -> str:
    """What the template writes for the assistant's turn: from where it leaves `begun` on."""
    pairs = zip(called, begun, strict=False)
    alike = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(called), len(begun)))
    head = called.rfind(_ASKED) + len(_ASKED)
    opened = max(called.rfind(one, head, alike) for one in "<[")
    inside = alike < len(begun) and opened >= 0 and not set(called[opened:alike]) & set(">]")
    return called[opened if inside else alike :]


def _final(text: str) -> str:
    """The message of harmony's final channel."""
    _, found, message = text.rpartition("<|channel|>final<|message|>")
    return message.partition("<|")[0].strip() if found else ""


def _render(tokenizer: Any, messages: Sequence[dict[str, Any]], *, generation: bool = False) -> str:
    text: str = tokenizer.apply_chat_template(
        list(messages),
        tools=[dict(_SCHEMA)],
        tokenize=False,
        add_generation_prompt=generation,
    )
    return text


def _marked(written: str) -> list[str]:
    """The dialects whose marks read the example, in the order of the table."""
    found = sorted(read_calls(written).dialects)
    known = [mark.dialect for mark in MARKS] + ["glm"]
    return [name for name in found if name in known]


def _reads_back(written: str, dialect: str) -> bool:
    if dialect not in FORMATS:
        return False
    for text in (written, *_tails(written)):
        calls = read_calls(text, dialect).calls
        if len(calls) == 1 and (call := calls[0]) is not None and _is_example(call):
            return True
    return False


def _is_example(call: WrittenCall) -> bool:
    given = {
        name: value.value if isinstance(value, UntypedText) else value
        for name, value in call.arguments.items()
    }
    return call.name == _TOOL and given == {_ARGUMENT: _VALUE}


def _tails(written: str) -> list[str]:
    """The example from its first bracket on: what a policy writes where no mark opens a call."""
    return [written[at:] for at in (written.find("{"), written.find("[")) if at >= 0]


def _tags(source: str, written: str) -> tuple[str, ...]:
    """The control texts of a template and of its calls that are no special tokens anyway."""
    known = (
        *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
        *("<function=", "</function>", "<parameter=", "</parameter>"),
        *("<think>", "</think>", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    )
    return tuple(tag for tag in known if tag in source or tag in written)
