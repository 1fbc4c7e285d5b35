"""`tool-call`: the response calls the right tools with the right arguments.

The reference is `{"calls": [{"name": "f", "arguments": {...}}, ...]}`, or a list of calls, or one
call. Beside its arguments a call may name some as `"optional"` (a list of names: they may be left
out) and further right values as `"accept"` (`{"city": ["SF", "San Francisco"]}`). `{"calls": []}`
asks for restraint: a response without any call is right.

Calls are read as JSON, never as code, from what follows the thought: the contents of `<tool_call>`
elements (Qwen, Hermes); without one, the last fenced block that holds JSON; without one, the whole
text where it begins with a bracket. A call has a name and `arguments` (or parameters, or input), an
object or the text of one; OpenAI's `{"function": {...}}` is taken too.

Calls are compared as structures: names exactly; arguments in any order, the same ones and no
others; numbers by value (1 equals 1.0, true does not equal 1); texts exactly, or with strings=loose
without case and outer white space. With order=any calls are paired in any order. The reward is
`all`, 1 or 0, or `f1`, 2 * right calls / (calls made + calls expected).

What a policy could game: `f1` pays for some calls of several, so calls that do harm need `all`;
with an empty reference a response that says nothing is right. A call that is no JSON, that has an
argument twice, or of a name that is not a text, counts as made and is never right. More than 64
calls are incorrect. Known limits: no Python syntax (`f(x=1)`), no schemas: for those of arguments
there is `json-schema`.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from assay.math.extraction import final_part
from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import verifier
from assay.reward_server.verifiers.assignment import assign
from assay.reward_server.verifiers.code_text import fenced_blocks

MAX_CALLS = 64
_OPENS, _CLOSES = "<tool_call>", "</tool_call>"
_ARGUMENTS = ("arguments", "parameters", "input", "args")
_SHAPE = '{"calls": [{"name": "...", "arguments": {...}}]}'


class _Malformed(ValueError):
    """A call is expected and there is none."""


def _glance(item: VerifierItem, **_: object) -> Judgement:
    return tool_call.judge(item)


@verifier(
    "tool-call",
    tasks=("tool-call", "function-call"),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    cacheable=False,
    glance=_glance,
)
def tool_call(
    item: VerifierItem,
    *,
    reward: Annotated[
        Literal["all", "f1"], "1 if all calls are right and no other is made, or F1 of the calls."
    ] = "all",
    order: Annotated[
        Literal["any", "same"], "Whether calls must come in the reference's order."
    ] = "any",
    strings: Annotated[
        Literal["exact", "loose"],
        "How texts are compared: as they are, or without case and outer white space.",
    ] = "exact",
) -> Judgement:
    """The response calls the right tools with the right arguments, compared as JSON.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong.
    """
    expected = _expected(item.document())
    made = find_calls(item.response())
    if made is None and expected:
        return _judgement("unparsed", 0.0, "the response makes no call")
    made = made or []
    if len(made) > MAX_CALLS:
        return _judgement("incorrect", 0.0, f"more than {MAX_CALLS} calls are made")
    loose = strings == "loose"
    hits = _hits(made, expected, ordered=order == "same", loose=loose)
    both = len(made) + len(expected)
    f1 = 2 * hits / both if both else 1.0
    verdict = "correct" if f1 == 1.0 else "partial" if hits else "incorrect"
    score = f1 if reward == "f1" else float(f1 == 1.0)
    why = f"{hits} of {len(expected)} calls are right, {len(made)} made"
    shown = json.dumps(made[:8])[:1_000] if made else None
    return _judgement(verdict, score, why, shown)


def find_calls(response: str) -> list[JsonValue] | None:
    """The calls of a response; None where it makes none. What is no call is null."""
    start, text = final_part(response)
    if start < 0:
        return None
    pieces = _tagged(text)
    if not pieces:
        blocks = [block.code for block in fenced_blocks(text) if block.tag in ("json", "")]
        bare = text.strip()
        pieces = blocks[-1:] or ([bare] if bare.startswith(("{", "[")) else [])
    if not pieces:
        return None
    calls: list[JsonValue] = []
    for piece in pieces:
        try:
            value = _parsed(piece)
        except _Malformed:
            calls.append(None)
            continue
        calls.extend(value if isinstance(value, list) else [value])
    return [_normal(call) for call in calls]


def equal(found: JsonValue, wanted: JsonValue, *, loose: bool = False) -> bool:
    """Whether two JSON values are the same: numbers by value, objects whatever their order."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        return found == wanted
    if isinstance(found, str) and isinstance(wanted, str):
        same = found.strip().casefold() == wanted.strip().casefold()
        return found == wanted or (loose and same)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            equal(a, b, loose=loose) for a, b in zip(found, wanted, strict=True)
        )
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(
            equal(found[key], wanted[key], loose=loose) for key in wanted
        )
    return found is None and wanted is None


def _tagged(text: str) -> list[str]:
    """The contents of the elements of calls; one that is not closed reaches to the end."""
    pieces = []
    position = text.find(_OPENS)
    while position >= 0:
        start = position + len(_OPENS)
        end = text.find(_CLOSES, start)
        pieces.append(text[start : end if end >= 0 else len(text)])
        position = text.find(_OPENS, end) if end >= 0 else -1
    return pieces


def _parsed(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise _Malformed(str(error)) from None
    return value


def _no_constant(name: str) -> None:
    raise _Malformed(f"{name} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _Malformed("a name stands twice in an object")
    return fields


def _normal(call: JsonValue) -> JsonValue:
    """A call as `{"name": ..., "arguments": {...}}`; null for what is none."""
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = next((call[key] for key in _ARGUMENTS if key in call), {})
    if isinstance(arguments, str):
        try:
            arguments = _parsed(arguments or "{}")
        except _Malformed:
            return None
    if not isinstance(arguments, dict):
        return None
    return {"name": call["name"], "arguments": arguments}


def _hits(
    made: list[JsonValue], expected: list[dict[str, Any]], *, ordered: bool, loose: bool
) -> int:
    if ordered:
        pairs = zip(made, expected, strict=False)
        return sum(_right(call, wanted, loose=loose) for call, wanted in pairs)
    table = [[-float(_right(call, wanted, loose=loose)) for call in made] for wanted in expected]
    return sum(table[row][column] < 0 for row, column in assign(table))


def _right(call: JsonValue, wanted: dict[str, Any], *, loose: bool) -> bool:
    if not isinstance(call, dict) or call["name"] != wanted["name"]:
        return False
    arguments = call["arguments"]
    if not isinstance(arguments, dict) or arguments.keys() - wanted["arguments"].keys():
        return False
    for name, value in wanted["arguments"].items():
        if name not in arguments:
            if name not in wanted["optional"]:
                return False
            continue
        choices = [value, *wanted["accept"].get(name, [])]
        if not any(equal(arguments[name], choice, loose=loose) for choice in choices):
            return False
    return True


def _expected(document: JsonValue) -> list[dict[str, Any]]:
    if isinstance(document, dict):
        document = document.get("calls", [document])
    if not isinstance(document, list) or len(document) > MAX_CALLS:
        raise _unusable(f"must be {_SHAPE} of at most {MAX_CALLS} calls")
    expected = []
    for index, entry in enumerate(document):
        call = _normal(entry)
        if not isinstance(call, dict) or not isinstance(entry, dict):
            raise _unusable(f"calls[{index}] has no name, or arguments that are no object")
        optional, accept = entry.get("optional", []), entry.get("accept", {})
        if not isinstance(optional, list) or not isinstance(accept, dict):
            raise _unusable(f"calls[{index}]: optional must be a list and accept an object")
        arguments = call["arguments"]
        names = arguments if isinstance(arguments, dict) else {}
        named = [name for name in (*optional, *accept) if name not in names]
        if named or not all(isinstance(values, list) for values in accept.values()):
            raise _unusable(f"calls[{index}]: optional and accept name arguments, accept lists")
        expected.append({**call, "optional": optional, "accept": accept})
    return expected


def _unusable(trouble: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference of tool-call {trouble}")


def _judgement(verdict: str, reward: float, why: str, shown: str | None = None) -> Judgement:
    return Judgement.composed(
        verdict, (Component("calls", reward),), extracted_answer=shown, explanation=why
    )
