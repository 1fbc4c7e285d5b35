"""The reference of `tool-call`: which calls are right. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from assay.kit.tool_calls.calls import UntypedText, WrittenCall, call_of
from assay.kit.tool_calls.dialects import MAX_CALLS
from assay.reward_server.domain import UNUSABLE_REFERENCE, JsonValue, Unjudgeable
from assay.reward_server.verifiers.text import schemas
from assay.reward_server.verifiers.tool_call import bfcl
from assay.reward_server.verifiers.tool_call.comparison import Expected, ExpectedCall, ToolSchema

MAX_TOOLS: Final = 512
_SHAPE = '{"calls": [{"name": "...", "arguments": {...}}]}'
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema")


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """What is right.

    Attributes:
        calls: those that must be made; none for restraint.
        tools: by name, where the reference has them.
        anything: any call of a tool is right.
        names: a bare name in Python's syntax is a text, as in BFCL.
    """

    calls: tuple[Expected, ...] = ()
    tools: dict[str, ToolSchema] | None = None
    anything: bool = False
    names: bool = False


def has_schemas(document: JsonValue) -> bool:
    """Whether JSON schemas are used, which may take time."""
    return isinstance(document, dict) and bool(document.get("tools"))


def read_reference(document: JsonValue) -> ExpectedCalls:
    """The reference.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    if isinstance(document, dict) and "ground_truth" in document:
        return ExpectedCalls(tuple(_answers(document)), names=True)
    tools = (
        _tools(document["tools"]) if has_schemas(document) and isinstance(document, dict) else None
    )
    listed: JsonValue = document
    if isinstance(document, dict):
        listed = document.get("calls", [document])
    if listed == "any":
        return ExpectedCalls(tools=tools, anything=True)
    if not isinstance(listed, list) or len(listed) > MAX_CALLS:
        raise _unusable(f"must be {_SHAPE} of at most {MAX_CALLS} calls")
    calls = [_expected(entry, index, tools) for index, entry in enumerate(listed)]
    return ExpectedCalls(tuple(calls), tools)


def _expected(entry: JsonValue, index: int, tools: dict[str, ToolSchema] | None) -> ExpectedCall:
    call = call_of(entry)
    if call is None or not isinstance(entry, dict):
        raise _unusable(f"calls[{index}] has no name, or arguments that are no object")
    optional, accept = entry.get("optional", []), entry.get("accept", {})
    after = entry.get("after", [])
    if not isinstance(optional, list) or not isinstance(accept, dict):
        raise _unusable(f"calls[{index}]: optional must be a list and accept an object")
    named = [name for name in (*optional, *accept) if name not in call.arguments]
    if named or not all(isinstance(values, list) for values in accept.values()):
        raise _unusable(f"calls[{index}]: optional and accept name arguments, accept lists")
    if not isinstance(after, list) or not all(
        type(place) is int and 0 <= place < index for place in after
    ):
        raise _unusable(f"calls[{index}]: after lists places of calls before it in the list")
    values = {
        name: [value, *_more(accept.get(name))]
        for name, value in call.arguments.items()
        if not isinstance(value, UntypedText)
    }
    tool = _tool_of(call, index, tools)
    places = tuple(place for place in after if isinstance(place, int))
    return ExpectedCall(call.name, values, frozenset(map(str, optional)), tool, places)


def _more(values: JsonValue) -> list[JsonValue]:
    return values if isinstance(values, list) else []


def _tool_of(
    call: WrittenCall, index: int, tools: dict[str, ToolSchema] | None
) -> ToolSchema | None:
    """The tool that a call of the reference is of, which it must fit."""
    if tools is None:
        return None
    tool = tools.get(call.name)
    if tool is None:
        raise _unusable(f"calls[{index}] calls {call.name[:80]!r}, which is none of its tools")
    try:
        fits = tool.fits(dict(call.arguments))
    except schemas.SchemaError as error:
        raise _unusable(f"the schema of {call.name[:80]!r} cannot be used: {error}") from None
    if not fits:
        raise _unusable(f"calls[{index}] breaks the schema of its tool")
    return tool


def _tools(listed: JsonValue) -> dict[str, ToolSchema]:
    if not isinstance(listed, list) or len(listed) > MAX_TOOLS:
        raise _unusable(f"tools must be a list of at most {MAX_TOOLS} tools")
    tools: dict[str, ToolSchema] = {}
    for index, given in enumerate(listed):
        inner = given.get("function") if isinstance(given, dict) else None
        entry = inner if isinstance(inner, dict) else given
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(name, str) or name in tools:
            raise _unusable(f"tools[{index}] has no name, or one that another has")
        schema = next((entry[key] for key in _SCHEMAS if entry.get(key) is not None), {})
        if not isinstance(schema, dict):
            raise _unusable(f"tools[{index}]: its parameters are no JSON schema")
        tools[name] = ToolSchema(name, schema)
    return tools


def _answers(document: dict[str, JsonValue]) -> list[bfcl.PossibleAnswer]:
    """The answers of a row of BFCL: its `ground_truth` and its `function`."""
    truth, functions = document["ground_truth"], document.get("function", [])
    language = document.get("language", "python")
    if language not in bfcl.LANGUAGES:
        raise _unusable(f"language must be one of {', '.join(bfcl.LANGUAGES)}")
    if not isinstance(truth, list) or not isinstance(functions, list) or len(truth) > MAX_CALLS:
        raise _unusable("ground_truth and function must be lists, as in BFCL's files")
    known = {one["name"]: one for one in functions if isinstance(one, dict) and "name" in one}
    answers = []
    for index, entry in enumerate(truth):
        if not isinstance(entry, dict) or len(entry) != 1:
            raise _unusable(f"ground_truth[{index}] must be an object of one function's name")
        ((name, values),) = entry.items()
        part: Any = known.get(name, {}).get("parameters")
        properties = part.get("properties") if isinstance(part, dict) else None
        lists = isinstance(values, dict) and all(isinstance(v, list) for v in values.values())
        if not lists or not _is_typed(properties, str(language)):
            raise _unusable(
                f"ground_truth[{index}]: {name[:80]!r} needs lists of values, and its entry in "
                "function, with the types of BFCL"
            )
        required = frozenset(map(str, part.get("required", [])))
        answers.append(bfcl.PossibleAnswer(name, values, properties, required, str(language)))  # type: ignore[arg-type]  # checked above
    return answers


def _is_typed(properties: Any, language: str) -> bool:
    return isinstance(properties, dict) and all(
        isinstance(one, dict)
        and one.get("type") in bfcl.TYPES[language]
        and ("items" not in one or isinstance(one["items"], dict))
        for one in properties.values()
    )


def _unusable(trouble: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference of tool-call {trouble}")
