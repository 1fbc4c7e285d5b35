"""`tool-call`: the response calls the right tools with the right arguments.

The reference is `{"calls": [{"name": "f", "arguments": {...}}, ...]}`, or a list of calls, or one
call. Beside its arguments a call may name some as `"optional"` (a list of names: they may be left
out), further right values as `"accept"` (`{"city": ["SF", "San Francisco"]}`), and calls of the
list that must come before it as `"after"` (`[0]`). `{"calls": []}` asks for restraint: a response
without any call is right. `{"calls": "any"}` asks for any call. Beside the calls, `"tools"` holds
the tools as OpenAI's API takes them: then arguments have the types of their JSON schemas, a call
that breaks its schema is wrong, and an argument may be left out or given where it is the schema's
default. A row of BFCL is a reference too: `{"ground_truth": [...], "function": [...], "language":
"python"}`, compared by BFCL's own rules (tool_call/bfcl.py); "java" and "javascript" are the other
languages.

Which calls. Structured calls that came with the response (`tool_calls` of an item or of a turn, as
OpenAI's API returns them) are what was called, and no text is searched. Otherwise the text behind
the thought is read, to the end of the turn. Of a dialogue, the policy's turns one behind the other.

Which format. `auto`, the default, takes all of these; a value of `format` takes one:

- `hermes`: JSON in `<tool_call>`; Qwen 2.5 and 3, Hermes.
- `qwen-coder`: `<function=f><parameter=x>`; Qwen3-Coder, Seed-OSS, Nemotron 3.
- `glm`: `<tool_call>f` with `<arg_key>` and `<arg_value>`; GLM 4.5 to 4.7.
- `mistral`: `[TOOL_CALLS][{...}]` and `[TOOL_CALLS]f[ARGS]{...}`.
- `pythonic`: `[f(x=1), g()]`, alone or in the tags of Llama 4, LFM2 and OLMo 3; BFCL's prompt.
- `llama`: `<|python_tag|>{...}; {...}`, `<|python_tag|>f.call(x=1)`, the bare objects, and
  `<function=f>{...}`; Llama 3.
- `deepseek`: between the tokens of DeepSeek V3, R1 and V3.1.
- `harmony`: `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{...}`; gpt-oss.
- `anthropic`: `<invoke name="f">`, with any prefix; Claude, MiniMax M2, DeepSeek V3.2, Step 3.
- `react`: `Action: f` and `Action Input: {...}`.
- `kimi`: `<|tool_call_begin|>functions.f:0`; Kimi K2.
- `gemma`: `call:f{x:1}` in the tags of Gemma 4 and FunctionGemma.
- `qwen-agent`: `✿FUNCTION✿: f` and `✿ARGS✿: {...}`.
- `granite`, `phi`, `nemotron`, `cohere`, `internlm`, and `jamba` (MiniMax M1 and Hunyuan too): JSON
objects behind `<|tool_call|>`, `functools`, `<TOOLCALL>`, `<|START_ACTION|>`, `<|plugin|>` and
`<tool_calls>`.
- `json`: the last fenced block, or the whole text, where it is calls in JSON; xLAM, prompts.
- `structured`: `tool_calls` alone, and no text.

The rules of `auto`. Marks decide before forms without one (`react`, then `json`, then `pythonic`),
and are read from left to right: what a mark announces is read whole, so that text inside an
argument or in gpt-oss's other messages is never a call. A mark counts wherever it stands, in a
fenced block too, as it does for a server. A response speaks one format: calls in two are incorrect
and earn nothing, so that nobody guesses twice. What stands behind a mark and cannot be read, is no
JSON, has an argument twice or is not closed is a call that is made and never right. Nothing is
repaired, and nothing is evaluated: Python's syntax is read as literals.

Verdict or fault. What a policy writes earns a verdict: 0 for no call, a wrong one, or one that
cannot be read. It is the set-up's doing, and the fault `UNSUPPORTED_INPUT`, where a response would
be all right under `auto`, and the format that the parameter names excludes it: every call is right.
So a fault is never cheaper than the reward, for whoever can have it can have a 1; and a model whose
format is not the named one shows as faults, not as zeros. Where the format itself is to be learnt,
`excluded=unparsed` makes a 0 of it. Every format that is recognised is read.

Calls are compared as structures: names exactly; arguments in any order, the same ones and no
others; numbers by value (1 equals 1.0, true does not equal 1); texts exactly, or with strings=loose
without case and outer white space. Where a format has no types (`qwen-coder`, `glm`, `anthropic`),
an argument is read as the schema's type, or as that of the right value. With order=any calls are
paired in any order. The reward is `all`, 1 or 0, or `f1`, 2 * right calls / (calls made + calls
expected).

What a policy could game: `f1` pays for some calls of several, so calls that do harm need `all`;
with an empty reference a response that says nothing is right, and so is one that describes a call
in its prose. `{"calls": "any"}` pays for the cheapest call. BFCL's rules ignore punctuation:
`-5` passes for `5` where an argument is a text. More than 64 calls are incorrect; a thought
that never ends, and more than 200,000 characters behind it, are unparsed, whatever is wanted.

Limits. A format that is not listed is not recognised, and its calls are text: parse them where the
model is served, and send them as `tool_calls`. A mark that is only talked about behind the thought
is a call. Python's names that are no literals (`true`, variables) are read with BFCL's references
only, and arguments without a name never. A tool that is called in Python's syntax has Python's
name: no `-`. Of ReAct, `Action: search[query]` is not read, and JSON without a mark in the middle
of prose is none. Values of Java and JavaScript are read in JSON's formats.

Measured: one right call, written as 40 templates and prompts write it, is correct in 40 (6 before
version 2). Of 48,868 answers to the 2,501 rows of BFCL's AST categories, right and changed, 99.93 %
get the verdict of its own checker; the 35 others are its laxness (24: what follows a list of
JavaScript), a row with a slip (10), and its pairing (1). All 2,280 answers to its rows for
restraint and relevance come out as wanted. Hostile text of a megabyte takes at most 0.09 s of CPU,
two right calls in 12 lines 0.07 ms.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from assay.kit.json_text import MAX_CHARS
from assay.kit.tool_calls.calls import (
    MaybeCall,
    UntypedText,
    WrittenCall,
    with_arguments,
)
from assay.kit.tool_calls.dialects import (
    FORMATS,
    MAX_CALLS,
    DialectReading,
    read_calls,
)
from assay.reward_server.domain import (
    UNSUPPORTED_INPUT,
    UNUSABLE_REFERENCE,
    Candidate,
    Component,
    Judgement,
    ToolCall,
    Unjudgeable,
    VerifierItem,
)
from assay.reward_server.functions import OneOf, verifier
from assay.reward_server.verifiers.text import schemas
from assay.reward_server.verifiers.tool_call.comparison import hits
from assay.reward_server.verifiers.tool_call.reference import (
    ExpectedCalls,
    has_schemas,
    read_reference,
)

_STRUCTURED = "structured"


def _glance(item: VerifierItem, **_: object) -> Judgement | None:
    if sum(len(turn.content) for turn in item.candidate.turns) > MAX_CHARS:
        return None
    return None if has_schemas(item.document()) else tool_call.judge(item)


@verifier(
    "tool-call",
    tasks=("tool-call", "function-call"),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    version="2",
    cacheable=False,
    prepare=lambda: schemas.load(True),
    glance=_glance,
)
def tool_call(
    item: VerifierItem,
    *,
    reward: Annotated[
        Literal["all", "f1"], "1 if all calls are right and no other is made, or F1 of the calls."
    ] = "all",
    order: Annotated[
        Literal["any", "same"],
        "Whether calls must come in the reference's order; `after` of its calls holds with any.",
    ] = "any",
    strings: Annotated[
        Literal["exact", "loose"],
        "How texts are compared: as they are, or without case and outer white space.",
    ] = "exact",
    format: Annotated[  # noqa: A002  # the word that people look for
        str,
        OneOf(("auto", _STRUCTURED, *sorted(FORMATS))),
        "The format of calls in the text; auto: whichever it is.",
    ] = "auto",
    excluded: Annotated[
        Literal["fault", "unparsed"],
        "What right calls in another format than the named one are: a fault; or unparsed, 0, where "
        "the format itself is to be learnt.",
    ] = "fault",
) -> Judgement:
    """The response calls the right tools with the right arguments, whatever its format.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong; UNSUPPORTED_INPUT for right calls in
            a format that is not read.
    """
    reference = read_reference(item.document())
    rules = {"ordered": order == "same", "loose": strings == "loose"}
    restraint = not reference.calls and not reference.anything
    reading = _read(item.candidate, reference, "auto" if restraint else format)
    if reading.trouble:
        return _judgement("unparsed", 0.0, reading.trouble)
    if not reading.calls and not reading.dialects:
        if restraint:
            return _judgement("correct", 1.0, "no call is wanted, and none is made")
        if format != "auto" and excluded == "fault":
            _refuse_right(item, reference, format, rules)
        return _judgement("unparsed", 0.0, "the response makes no call")
    if len(reading.dialects) > 1:
        named = " and ".join(sorted(reading.dialects))
        return _judgement("incorrect", 0.0, f"calls in several formats: {named}")
    made = reading.calls
    if len(made) > MAX_CALLS:
        return _judgement("incorrect", 0.0, f"more than {MAX_CALLS} calls are made")
    found, expected = _hits(made, reference, rules)
    both = len(made) + expected
    f1 = 2 * found / both if both else 1.0
    verdict = "correct" if f1 == 1.0 else "partial" if found else "incorrect"
    score = f1 if reward == "f1" else float(f1 == 1.0)
    how = next(iter(reading.dialects), _STRUCTURED)
    why = f"{found} of {expected} calls are right, {len(made)} made ({how})"
    return _judgement(verdict, score, why, _shown(made))


def _read(candidate: Candidate, reference: ExpectedCalls, wanted: str) -> DialectReading:
    """The calls of a response, or of the policy's turns one behind the other."""
    if not candidate.turns:
        return _read_text(candidate.text or "", candidate.calls, reference, wanted)
    own = [turn for turn in candidate.turns if turn.from_policy]
    readings = [_read_text(turn.content, turn.calls, reference, wanted) for turn in own]
    calls = tuple(call for one in readings for call in one.calls)
    dialects = frozenset(name for one in readings for name in one.dialects)
    trouble = next((one.trouble for one in readings if one.trouble), "")
    return DialectReading(calls, dialects, trouble)


def _read_text(
    text: str, structured: tuple[ToolCall, ...], reference: ExpectedCalls, wanted: str
) -> DialectReading:
    if structured:
        if sum(len(c.arguments) for c in structured if isinstance(c.arguments, str)) > MAX_CHARS:
            return DialectReading(trouble=f"the calls are longer than {MAX_CHARS:,} characters")
        found = [with_arguments(one.name, one.arguments) for one in structured[: MAX_CALLS + 1]]
        return DialectReading(tuple(found), frozenset({_STRUCTURED}))
    if wanted == _STRUCTURED:
        return DialectReading()
    return read_calls(text, wanted, names=reference.names)


def _hits(
    made: tuple[MaybeCall, ...], reference: ExpectedCalls, rules: dict[str, bool]
) -> tuple[int, int]:
    """How many calls are right, and how many there should be."""
    if not reference.anything:
        return hits(made, reference.calls, **rules), len(reference.calls)
    right = sum(call is not None and _is_sound(call, reference) for call in made)
    return right, max(len(made), 1)


def _is_sound(call: WrittenCall, reference: ExpectedCalls) -> bool:
    """Whether a call is one of a tool of the reference, where it has some."""
    if reference.tools is None:
        return True
    tool = reference.tools.get(call.name)
    if tool is None:
        return False
    try:
        typed = tool.typed(dict(call.arguments))
        return tool.fits(
            {n: v.value if isinstance(v, UntypedText) else v for n, v in typed.items()}
        )
    except schemas.SchemaError as error:
        raise Unjudgeable(
            UNUSABLE_REFERENCE, f"the schema of {tool.name[:80]!r} cannot be used: {error}"
        ) from None


def _refuse_right(
    item: VerifierItem, reference: ExpectedCalls, wanted: str, rules: dict[str, bool]
) -> None:
    """Refuses a response that is right, and not read as the set-up has it.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT.
    """
    other = _read(item.candidate, reference, "auto")
    found, expected = _hits(other.calls[:MAX_CALLS], reference, rules)
    if len(other.dialects) == 1 and found == expected == len(other.calls):
        (dialect,) = other.dialects
        raise Unjudgeable(
            UNSUPPORTED_INPUT,
            f"the calls are right and written in the format {dialect!r}, where the parameter "
            f"'format' says {wanted!r}: change it, or leave it at 'auto'",
        )


def _shown(made: tuple[MaybeCall, ...]) -> str | None:
    plain = [
        None
        if call is None
        else {
            "name": call.name,
            "arguments": {
                n: v.value if isinstance(v, UntypedText) else v for n, v in call.arguments.items()
            },
        }
        for call in made[:8]
    ]
    return json.dumps(plain)[:1_000] if plain else None


def _judgement(verdict: str, reward: float, why: str, shown: str | None = None) -> Judgement:
    return Judgement.composed(
        verdict, (Component("calls", reward),), extracted_answer=shown, explanation=why
    )
