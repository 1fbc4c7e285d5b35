"""Which format a response speaks, and the calls that it makes in it. Pure and bounded.

Marks (`<tool_call>`, `[TOOL_CALLS]`, ...) are read from left to right; what a mark announces is
read whole, so that a mark inside an argument or in a message of another kind is none. Without a
mark, the first of these that is there: `Action:` with `Action Input:`; the last fenced block; the
whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from assay.kit.fences import Block, fenced_blocks
from assay.kit.json_text import MAX_CHARS
from assay.kit.tool_calls import payloads
from assay.kit.tool_calls.calls import (
    MaybeCall,
    calls_of,
    has_shape,
    json_at,
    json_sequence,
    skip_space,
    with_arguments,
)
from assay.kit.tool_calls.pythonic import read_python

MAX_CALLS: Final = 64


class Mark(NamedTuple):
    """What opens calls.

    Attributes:
        dialect: the format that it belongs to.
        opens: a pattern.
        closes: the text that ends it; empty where nothing does.
        read: what stands behind it.
    """

    dialect: str
    opens: str
    closes: str
    read: payloads.Reader


MARKS: Final = (
    Mark("hermes", "<tool_call>", "</tool_call>", payloads.tool_call_element),
    Mark("qwen-coder", "<function=", "</function>", payloads.function_element),
    Mark(
        "anthropic",
        r"<(?P<prefix>(?:[A-Za-z]\w{0,30}:|\uff5cDSML\uff5c)?)invoke\s",
        "</invoke>",
        payloads.invoke_element,
    ),
    Mark("mistral", r"\[TOOL_CALLS\]", "", payloads.mistral_calls),
    Mark("llama", r"<\|python_tag\|>", "", payloads.llama_calls),
    Mark(
        "deepseek",
        payloads.DEEPSEEK.format("tool▁call▁begin"),
        payloads.DEEPSEEK.format("tool▁call▁end"),
        payloads.deepseek_call,
    ),
    Mark("kimi", r"<\|tool_call_begin\|>", "<|tool_call_end|>", payloads.kimi_call),
    Mark("harmony", r"<\|channel\|>", "", payloads.harmony_message),
    Mark("harmony", r"<\|start\|>assistant", "", payloads.harmony_message),
    Mark("granite", r"<\|tool_call\|>", "", payloads.json_calls),
    Mark("granite", "<function_call>", "", payloads.json_calls),
    Mark("phi", r"functools(?=\s?\[)", "", payloads.json_calls),
    Mark("nemotron", "<TOOLCALL>", "</TOOLCALL>", payloads.json_calls),
    Mark("jamba", "<tool_calls>", "</tool_calls>", payloads.json_calls),
    Mark("cohere", r"<\|START_ACTION\|>", "<|END_ACTION|>", payloads.json_calls),
    Mark("internlm", r"<\|action_start\|><\|plugin\|>", "<|action_end|>", payloads.json_calls),
    Mark("gemma", r"<start_function_call>|<\|tool_call>(?=\s{0,9}call:)", "", payloads.gemma_call),
    Mark("qwen-agent", "✿FUNCTION✿:", "", payloads.qwen_agent_call),
    Mark("pythonic", r"<\|python_start\|>", "<|python_end|>", payloads.python_calls),
    Mark("pythonic", r"<\|tool_call_start\|>", "<|tool_call_end|>", payloads.python_calls),
    Mark("pythonic", r"<function_calls>(?!\s*<)", "</function_calls>", payloads.python_calls),
)
UNMARKED: Final = ("react", "json", "pythonic")
FORMATS: Final[dict[str, frozenset[str]]] = {
    **{name: frozenset({name}) for name in sorted({*(m.dialect for m in MARKS), *UNMARKED, "glm"})},
    "llama": frozenset({"llama", "json"}),
    "phi": frozenset({"phi", "granite"}),
    "cohere": frozenset({"cohere", "json"}),
    "granite": frozenset({"granite", "hermes"}),
}
"""The dialects that a server of each format takes; Llama 3 and Command R write bare JSON too."""

# Alternatives that begin with letters, and no groups: the engine then skips prose at once.
_ANY = re.compile("|".join(mark.opens.replace("(?P<prefix>", "(?:") for mark in MARKS))
_EACH: Final = tuple((mark, re.compile(mark.opens)) for mark in MARKS)
_THOUGHTS: Final = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
)
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|im_start|endoftext|eot_id|end_of_text|eom_id|END_OF_TURN_TOKEN)\|>"
    r"|<\uff5cend▁of▁sentence\uff5c>|<end_of_turn>|</s>\s*\Z|<\|end\|>\s*\Z"
)
_ACTION = re.compile(r"^[ \t]*Action:[ \t]*([^\n`{}\[\]]{1,256}?)[ \t]*\n", re.MULTILINE)
_INPUT = re.compile(r"[ \t]*Action Input:\s*")
_OBSERVATION = re.compile(r"^[ \t]*Observation:", re.MULTILINE)
_JSON_TAGS: Final = frozenset({"json", ""})
_CALL_TAGS: Final = frozenset({"tool_code", "tool_call", "tool_calls", "tool_use"})
_PYTHON_TAGS: Final = frozenset({"python", "py", ""})


@dataclass(frozen=True, slots=True)
class DialectReading:
    """The calls of a text.

    Attributes:
        calls: in order, None for a malformed one; at most one more than `MAX_CALLS`.
        dialects: the formats that they are written in; empty where there is no call.
        trouble: why nothing can be read; empty where it can.
        written: each call as it stands in the text; for several behind one mark, all of them.
        rest: the text behind the thought, without calls.
    """

    calls: tuple[MaybeCall, ...] = ()
    dialects: frozenset[str] = frozenset()
    trouble: str = ""
    written: tuple[str, ...] = ()
    rest: str = ""


def read_calls(
    response: str, wanted: str = "auto", *, names: bool = False, thoughts: bool = True
) -> DialectReading:
    """The calls that a response makes behind its thought.

    Args:
        response: any text.
        wanted: a key of `FORMATS`, whose marks alone are looked for; or "auto", for all of them.
        names: a bare name in Python's syntax is a text (pythonic.py).
        thoughts: whether the response may have one; else all of it acts.
    """
    text = acting_part(response) if thoughts else response
    if text is None:
        return DialectReading(trouble="the thought is not closed")
    if len(text) > MAX_CHARS:
        return DialectReading(
            trouble=f"what follows the thought is longer than {MAX_CHARS:,} characters"
        )
    dialects = FORMATS.get(wanted)
    marked = _marked(text, dialects)
    if marked is not None:
        return marked
    fenced = "```" in text or "~~~" in text
    blocks = fenced_blocks(text) if fenced else ()
    for dialect, read in _UNMARKED.items():
        if dialects is None or dialect in dialects:
            calls = read(text, blocks, names)
            if calls is not None:
                calls = calls[: MAX_CALLS + 1]
                return DialectReading(
                    tuple(calls), frozenset({dialect}), written=(text,) * len(calls)
                )
    return DialectReading(rest=text)


def acting_part(response: str) -> str | None:
    """What follows the thought, to the end of the turn; None where the thought never ends."""
    for opens, closes in _THOUGHTS:
        before, found, after = response.rpartition(closes)
        if opens in after if found else after.lstrip().startswith(opens):
            return None
        response = after
        del before
    return turn_part(response)


def turn_part(response: str) -> str:
    """A response up to the end of its turn."""
    end = _END_OF_TURN.search(response) if "<" in response else None
    while end is not None and not response[: end.start()].strip():
        end = _END_OF_TURN.search(response, end.end())
    return response[: end.start()] if end is not None else response


def _marked(text: str, dialects: frozenset[str] | None) -> DialectReading | None:
    """The calls behind marks; None where there is no mark, or none of these dialects."""
    calls: list[MaybeCall] = []
    found: set[str] = set()
    silent = False
    written: list[str] = []
    rest: list[str] = []
    at = kept = 0
    while len(calls) <= MAX_CALLS and (somewhere := _ANY.search(text, at)) is not None:
        at = somewhere.start()
        mark, match = next((m, f) for m, one in _EACH if (f := one.match(text, at)))
        payload = mark.read(text, match, mark.closes)
        dialect = payload.dialect or mark.dialect
        at = max(payload.end, at + 1)
        if dialects is None or dialect in dialects:
            calls += payload.calls
            written += [text[somewhere.start() : at]] * len(payload.calls)
            found |= {dialect} if payload.calls else set()
            if payload.calls:
                rest.append(text[kept : somewhere.start()])
                kept = at
            silent = silent or mark.dialect == "harmony"
    if not found and not silent:
        return None
    most = MAX_CALLS + 1
    rest.append(text[kept:])
    return DialectReading(
        tuple(calls[:most]),
        frozenset(found),
        written=tuple(written[:most]),
        rest="".join(rest),
    )


def _react(text: str, blocks: Sequence[Block], names: bool) -> list[MaybeCall] | None:
    """`Action:` and `Action Input:`, before the first observation."""
    del blocks, names
    end = _OBSERVATION.search(text)
    text = text[: end.start()] if end else text
    calls: list[MaybeCall] = []
    at = 0
    while len(calls) <= MAX_CALLS and (action := _ACTION.search(text, at)) is not None:
        at = action.end()
        opened = _INPUT.match(text, at)
        if opened is None:
            continue
        found = json_at(text, opened.end())
        line = text.find("\n", found[1] if found else opened.end())
        line = len(text) if line < 0 else line
        whole = found is not None and not text[found[1] : line].strip()
        calls.append(with_arguments(action[1], found[0]) if found and whole else None)
        at = line
    return calls or None


def _json(text: str, blocks: Sequence[Block], names: bool) -> list[MaybeCall] | None:
    """The last fenced block, or the whole text: objects with the shape of calls."""
    del names
    inside = _last_block(blocks, _JSON_TAGS | _CALL_TAGS)
    text = text if inside is None else inside
    values, end = json_sequence(text, skip_space(text, 0))
    if not values or text[end:].strip(" \t\r\n;"):
        return None
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return calls_of(values) if all(has_shape(one) for one in flat) else None


def _python(text: str, blocks: Sequence[Block], names: bool) -> list[MaybeCall] | None:
    """The last fenced block, or the whole text: a list of calls, or (bare) calls."""
    inside = _last_block(blocks, _PYTHON_TAGS | _CALL_TAGS)
    if inside is not None and not inside.strip().startswith("["):
        inside = _last_block(blocks, _CALL_TAGS)
        if inside is None:
            return None
    whole = text.strip().strip("`")  # a model may quote its line of code
    calls = read_python(whole if inside is None else inside, names=names)
    return calls if calls or (inside or text).strip() == "[]" else None


def _last_block(blocks: Sequence[Block], tags: frozenset[str]) -> str | None:
    """The last fenced block with one of the tags; None without one."""
    return next((block.code for block in reversed(blocks) if block.tag in tags), None)


_Unmarked = Callable[[str, Sequence[Block], bool], "list[MaybeCall] | None"]
_UNMARKED: Final[dict[str, _Unmarked]] = {"react": _react, "json": _json, "pythonic": _python}
