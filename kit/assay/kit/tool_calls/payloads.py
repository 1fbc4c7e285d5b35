"""What stands behind a mark: one small reader for each shape that models write. Pure.

A reader gets the text, the match of the mark, and the mark that closes; it gives the calls, and
where to read on. What cannot be read is one malformed call, up to the closing mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from assay.kit.json_text import NotJson, read_json
from assay.kit.tool_calls.calls import (
    Argument,
    MaybeCall,
    UntypedText,
    WrittenCall,
    calls_of,
    json_at,
    json_sequence,
    skip_space,
    with_arguments,
)
from assay.kit.tool_calls.pythonic import read_python


class Payload(NamedTuple):
    """What a mark announces.

    Attributes:
        calls: in order; None for a malformed one. Empty where the message is not for a tool.
        end: where reading goes on.
        dialect: whose it is, where the mark alone does not tell.
    """

    calls: list[MaybeCall]
    end: int
    dialect: str = ""


DEEPSEEK: Final = "<\uff5c{}\uff5c>"
"""A token of DeepSeek's, in its wide bars."""
Reader = Callable[[str, "re.Match[str]", str], Payload]

_NAME = re.compile(r"[\w.\-/:]{1,256}")
_FUNCTION = re.compile(r"<function=([^<>\s]{1,256})>")
_PARAMETER = re.compile(r"<parameter=([^<>\n]{1,256})>")
_TO = re.compile(r"\bto=([^\s<]{1,256})")
_FIRST_TO = re.compile(r"\s{0,9}(?:assistant)?\s?to=([^\s<]{1,256})\s{0,9}\Z")
_END_OF_MESSAGE = re.compile(r"<\|(?:call|end|return|start)\|>")
_GEMMA_CALL = re.compile(r"\s{0,9}call:([\w.\-]{1,256})\{")
_GEMMA_TOKEN = re.compile(
    r"""\s*(?:<\|"\|>(?P<text>(?:(?!<\|"\|>).)*)<\|"\|>|<escape>(?P<escaped>(?:(?!<escape>).)*)<escape>
    |(?P<bare>[^\s{}\[\],:<]+)|[{}\[\],:])""",
    re.DOTALL | re.VERBOSE,
)
_GEMMA_PLAIN = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ATTRIBUTE = re.compile(r"""\s*([\w-]{1,64})\s*=\s*(?:"([^"<>]{0,256})"|'([^'<>]{0,256})')""")


def json_calls(text: str, mark: re.Match[str], close: str) -> Payload:
    """JSON objects, or a list of them."""
    values, end = json_sequence(text, mark.end())
    end_of_all = _closed(text, end, close)
    if not values or end_of_all is None:
        return _malformed(text, mark, close)
    return Payload(calls_of(values), end_of_all)


def python_calls(text: str, mark: re.Match[str], close: str) -> Payload:
    """Python's calls, up to the closing mark."""
    end = text.find(close, mark.end()) if close else -1
    stop = end if end >= 0 else len(text)
    calls = read_python(text[mark.end() : stop])
    return Payload([None] if calls is None else calls, stop + len(close) if end >= 0 else stop)


def tool_call_element(text: str, mark: re.Match[str], close: str) -> Payload:
    """`<tool_call>`: JSON (Hermes), `<function=` (Qwen3-Coder), or a name and `<arg_key>` (GLM)."""
    start = skip_space(text, mark.end())
    if text.startswith("<function=", start):
        return Payload([], start, "qwen-coder")
    if text.startswith(("<invoke", "<tool_call"), start):
        return Payload([], start)
    if (name := _NAME.match(text, start)) is None:
        return json_calls(text, mark, close)._replace(dialect="hermes")
    arguments: dict[str, Argument] = {}
    at = skip_space(text, name.end())
    while (key := _between(text, at, "<arg_key>", "</arg_key>")) is not None:
        value = _between(text, skip_space(text, key[1]), "<arg_value>", "</arg_value>")
        if value is None or key[0].strip() in arguments:
            return _malformed(text, mark, close)._replace(dialect="glm")
        arguments[key[0].strip()] = UntypedText(value[0])
        at = skip_space(text, value[1])
    end = _closed(text, at, close)
    if end is None:
        return _malformed(text, mark, close)._replace(dialect="glm")
    return Payload([WrittenCall(name[0], arguments)], end, "glm")


def function_element(text: str, mark: re.Match[str], close: str) -> Payload:
    """`<function=NAME>` with `<parameter=x>` elements, or with JSON (Llama 3.1)."""
    opened = _FUNCTION.match(text, mark.start())
    if opened is None:
        return _malformed(text, mark, close)
    at = skip_space(text, opened.end())
    if text.startswith("{", at):
        return _with_json(opened[1], text, at, mark, close)._replace(dialect="llama")
    arguments: dict[str, Argument] = {}
    while (parameter := _PARAMETER.match(text, at)) is not None:
        end = text.find("</parameter>", parameter.end())
        if end < 0 or parameter[1] in arguments:
            return _malformed(text, mark, close)
        arguments[parameter[1]] = UntypedText(_lines_off(text[parameter.end() : end]))
        at = skip_space(text, end + len("</parameter>"))
    stop = _closed(text, at, close)
    if stop is None:
        return _malformed(text, mark, close)
    after = skip_space(text, stop)
    stop = after + len("</tool_call>") if text.startswith("</tool_call>", after) else stop
    return Payload([WrittenCall(opened[1], arguments)], stop)


def invoke_element(text: str, mark: re.Match[str], close: str) -> Payload:
    """`<invoke name="f">` with `<parameter name="x">` elements or JSON, whatever their prefix."""
    prefix = mark["prefix"] or ""
    close = f"</{prefix}invoke>"
    opened = _tag(text, mark.start(), f"<{prefix}invoke")
    if opened is None or "name" not in opened[0]:
        return _malformed(text, mark, close)
    name, at = opened[0]["name"], skip_space(text, opened[1])
    if text.startswith("{", at):
        return _with_json(name, text, at, mark, close)
    arguments: dict[str, Argument] = {}
    ends = f"</{prefix}parameter>"
    while (parameter := _tag(text, at, f"<{prefix}parameter")) is not None:
        attributes, start = parameter
        end = text.find(ends, start)
        key = attributes.get("name")
        if end < 0 or key is None or key in arguments:
            return _malformed(text, mark, close)
        try:
            arguments[key] = _of_kind(text[start:end], attributes.get("string"))
        except NotJson:
            return _malformed(text, mark, close)
        at = skip_space(text, end + len(ends))
    stop = _closed(text, at, close)
    if stop is None:
        return _malformed(text, mark, close)
    return Payload([WrittenCall(name, arguments)], stop)


def deepseek_call(text: str, mark: re.Match[str], close: str) -> Payload:
    """`function<sep>NAME` and fenced JSON (V3, R1), or `NAME<sep>` and JSON (V3.1)."""
    separator = DEEPSEEK.format("tool▁sep")
    at = text.find(separator, mark.end(), mark.end() + 300)
    if at < 0:
        return _malformed(text, mark, close)
    name, start = text[mark.end() : at].strip(), skip_space(text, at + len(separator))
    if name != "function" or text.startswith("{", start):
        return _with_json(name, text, start, mark, close)
    line = text.find("\n", start, start + 300)
    fence = skip_space(text, line)
    if line < 0 or not text.startswith("```json", fence):
        return _malformed(text, mark, close)
    name, start = text[start:line].strip(), skip_space(text, fence + len("```json"))
    found = json_at(text, start)
    after = skip_space(text, found[1]) if found else -1
    if found is None or not text.startswith("```", after):
        return _malformed(text, mark, close)
    stop = _closed(text, after + 3, close)
    call = with_arguments(name, found[0]) if name else None
    return _malformed(text, mark, close) if stop is None else Payload([call], stop)


def gemma_call(text: str, mark: re.Match[str], close: str) -> Payload:
    """`call:NAME{key:<|"|>text<|"|>,other:1}`; FunctionGemma's texts stand between `<escape>`s."""
    close = "<tool_call|>" if mark[0].startswith("<|") else "<end_function_call>"
    opened = _GEMMA_CALL.match(text, mark.end())
    if opened is None:
        return _malformed(text, mark, close)
    pieces: list[str] = []
    depth, at = 0, opened.end() - 1
    for token in _GEMMA_TOKEN.finditer(text, at):
        if token.start() != at:
            break
        at = token.end()
        bare = token["bare"]
        if bare is None and (quoted := token["text"] or token["escaped"]) is not None:
            pieces.append(json.dumps(quoted))
        elif bare is None:
            pieces.append('""' if len(token[0]) > 1 else token[0])
            depth += (token[0] in "{[") - (token[0] in "}]")
        else:
            pieces.append(bare if _GEMMA_PLAIN.fullmatch(bare) else json.dumps(bare))
        if depth <= 0:
            break
    stop = _closed(text, at, close)
    try:
        arguments = read_json("".join(pieces))
    except NotJson:
        return _malformed(text, mark, close)
    if stop is None or depth:
        return _malformed(text, mark, close)
    return Payload([with_arguments(opened[1], arguments)], stop)


def qwen_agent_call(text: str, mark: re.Match[str], close: str) -> Payload:
    """A name, then `✿ARGS✿:` and JSON."""
    at = text.find("✿ARGS✿:", mark.end(), mark.end() + 300)
    if at < 0:
        return _malformed(text, mark, close)
    start = skip_space(text, at + len("✿ARGS✿:"))
    return _with_json(text[mark.end() : at].strip(), text, start, mark, close)


def kimi_call(text: str, mark: re.Match[str], close: str) -> Payload:
    """`functions.NAME:0<|tool_call_argument_begin|>` and JSON."""
    separator = "<|tool_call_argument_begin|>"
    at = text.find(separator, mark.end(), mark.end() + 300)
    name, colon, number = text[mark.end() : max(at, 0)].strip().rpartition(":")
    if at < 0 or not colon or not number.isdecimal():
        return _malformed(text, mark, close)
    start = skip_space(text, at + len(separator))
    return _with_json(name.removeprefix("functions."), text, start, mark, close)


def mistral_calls(text: str, mark: re.Match[str], close: str) -> Payload:
    """A list of JSON objects, or `NAME[ARGS]` and JSON."""
    start = skip_space(text, mark.end())
    if text.startswith(("[", "{"), start):
        return json_calls(text, mark, close)
    name = _NAME.match(text, start)
    if name is None:
        return _malformed(text, mark, close)
    at = name.end()
    if text.startswith("[CALL_ID]", at):
        identity = _NAME.match(text, at + len("[CALL_ID]"))
        at = identity.end() if identity else at
    at += len("[ARGS]") if text.startswith("[ARGS]", at) else 0
    return _with_json(name[0], text, skip_space(text, at), mark, close)


def harmony_message(text: str, mark: re.Match[str], close: str) -> Payload:
    """One message of gpt-oss: a call where its header names a tool (`to=functions.NAME`)."""
    del close
    body = text.find("<|message|>", mark.end(), mark.end() + 600)
    if body < 0:
        return Payload([], mark.end())
    first = _FIRST_TO.match(text, 0, mark.start())
    to = first or _TO.search(text, mark.start(), body)
    start = skip_space(text, body + len("<|message|>"))
    if to is None:
        ends = _END_OF_MESSAGE.search(text, start)
        return Payload([], ends.start() if ends else len(text))
    found = json_at(text, start)
    ends = _END_OF_MESSAGE.search(text, found[1] if found else start)
    end = ends.start() if ends else len(text)
    if found is None or text[found[1] : end].strip():
        return Payload([None], end)
    return Payload([with_arguments(to[1].removeprefix("functions."), found[0])], end)


def llama_calls(text: str, mark: re.Match[str], close: str) -> Payload:
    """JSON objects with `;` between, or a call in Python's syntax, to the end of the text.

    A built-in tool is called as `brave_search.call(query="...")`: its name is before `.call`.
    """
    del close
    values, end = json_sequence(text, mark.end())
    if values and not text[end:].strip():
        return Payload(calls_of(values), len(text))
    calls = None if values else read_python(_TAG_ENDS.sub("", text[mark.end() :]))
    return Payload([None] if calls is None else list(map(_built_in, calls)), len(text))


_TAG_ENDS = re.compile(r"<\|(?:eom_id|eot_id)\|>\s*\Z")


def _built_in(call: MaybeCall) -> MaybeCall:
    """A call of Llama's own tools by the tool's name."""
    if call is None or not call.name.endswith(".call"):
        return call
    return replace(call, name=call.name.removesuffix(".call"))


def _of_kind(value: str, is_text: str | None) -> Argument:
    """A parameter of DeepSeek's, which says whether it is a text; others do not."""
    if is_text is None:
        return UntypedText(value)
    return value if is_text == "true" else read_json(value)


def _with_json(name: str, text: str, at: int, mark: re.Match[str], close: str) -> Payload:
    """The call whose arguments are the object at a place."""
    found = json_at(text, at)
    stop = _closed(text, found[1], close) if found else None
    if found is None or stop is None or not name:
        return _malformed(text, mark, close)
    return Payload([with_arguments(name, found[0])], stop)


def _closed(text: str, at: int, close: str) -> int | None:
    """Behind the closing mark, or the text's end in its place; None where neither follows."""
    if not close:
        return at
    at = skip_space(text, at)
    if text.startswith(close, at):
        return at + len(close)
    return at if at == len(text) else None


def _malformed(text: str, mark: re.Match[str], close: str) -> Payload:
    end = text.find(close, mark.end()) if close else -1
    return Payload([None], end + len(close) if end >= 0 else len(text))


def _between(text: str, at: int, opens: str, closes: str) -> tuple[str, int] | None:
    if not text.startswith(opens, at) or (end := text.find(closes, at)) < 0:
        return None
    return text[at + len(opens) : end], end + len(closes)


def _tag(text: str, at: int, opens: str) -> tuple[dict[str, str], int] | None:
    """The attributes of a tag, and where its content begins."""
    if not text.startswith(opens, at):
        return None
    at += len(opens)
    attributes: dict[str, str] = {}
    while (found := _ATTRIBUTE.match(text, at)) is not None:
        attributes[found[1]] = found[2] if found[2] is not None else found[3]
        at = found.end()
    at = skip_space(text, at)
    return (attributes, at + 1) if text.startswith(">", at) else None


def _lines_off(value: str) -> str:
    """A value without the line breaks that Qwen3-Coder puts around it."""
    return value.removeprefix("\n").removesuffix("\n")
