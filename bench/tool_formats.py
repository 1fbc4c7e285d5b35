"""Calls written as each format writes them: what a model of that format would generate.

A renderer takes calls, a name and arguments in JSON's shapes, and gives the response. Where a
format has no types, texts stand as they are and other values as JSON, as chat templates do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Call = tuple[str, dict[str, Any]]
Renderer = Callable[[list[Call]], str]
DEEPSEEK = "<\uff5c{}\uff5c>"


def plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def named(calls: list[Call], key: str = "arguments") -> list[dict[str, Any]]:
    return [{"name": name, key: arguments} for name, arguments in calls]


def objects(calls: list[Call]) -> str:
    return json.dumps(named(calls))


def python(calls: list[Call], between: str = ", ") -> str:
    return between.join(
        f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        for name, arguments in calls
    )


def hermes(calls: list[Call]) -> str:
    return "\n".join(f"<tool_call>\n{json.dumps(c)}\n</tool_call>" for c in named(calls))


def qwen_coder(calls: list[Call]) -> str:
    return "\n".join(
        f"<tool_call>\n<function={name}>\n"
        + "".join(f"<parameter={k}>\n{plain(v)}\n</parameter>\n" for k, v in arguments.items())
        + "</function>\n</tool_call>"
        for name, arguments in calls
    )


def seed(calls: list[Call]) -> str:
    return qwen_coder(calls).replace("tool_call>", "seed:tool_call>")


def glm(calls: list[Call]) -> str:
    return "\n".join(
        f"<tool_call>{name}\n"
        + "".join(
            f"<arg_key>{k}</arg_key>\n<arg_value>{plain(v)}</arg_value>\n"
            for k, v in arguments.items()
        )
        + "</tool_call>"
        for name, arguments in calls
    )


def mistral_named(calls: list[Call]) -> str:
    return "".join(f"[TOOL_CALLS]{name}[ARGS]{json.dumps(given)}" for name, given in calls)


def llama(calls: list[Call]) -> str:
    return "<|python_tag|>" + "; ".join(map(json.dumps, named(calls, "parameters"))) + "<|eom_id|>"


def llama_functions(calls: list[Call]) -> str:
    return "".join(f"<function={name}>{json.dumps(given)}</function>" for name, given in calls)


def deepseek_v3(calls: list[Call]) -> str:
    def call(name: str, given: dict[str, Any]) -> str:
        begin, sep, end = (
            DEEPSEEK.format(f"tool▁{part}") for part in ("call▁begin", "sep", "call▁end")
        )
        return f"{begin}function{sep}{name}\n```json\n{json.dumps(given)}\n```{end}"

    inside = "\n".join(call(name, given) for name, given in calls)
    begin, end = DEEPSEEK.format("tool▁calls▁begin"), DEEPSEEK.format("tool▁calls▁end")
    return f"{begin}{inside}{end}{DEEPSEEK.format('end▁of▁sentence')}"


def deepseek_v31(calls: list[Call]) -> str:
    begin, sep, end = (
        DEEPSEEK.format(f"tool▁{part}") for part in ("call▁begin", "sep", "call▁end")
    )
    return DEEPSEEK.format("tool▁calls▁begin") + "".join(
        f"{begin}{name}{sep}{json.dumps(given)}{end}" for name, given in calls
    )


def harmony(calls: list[Call]) -> str:
    thought = "<|channel|>analysis<|message|>I call <tool_call>x</tool_call>.<|end|>"
    return thought + "".join(
        f"<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json"
        f"<|message|>{json.dumps(given)}<|call|>"
        for name, given in calls
    )


def harmony_role(calls: list[Call]) -> str:
    return "<|start|>assistant".join(
        f" to=functions.{name}<|channel|>commentary json<|message|>{json.dumps(given)}<|call|>"
        for name, given in calls
    )


def invoking(prefix: str, around: str, typed: bool = False) -> Renderer:
    def render(calls: list[Call]) -> str:
        def parameter(key: str, value: Any) -> str:
            kind = f' string="{str(isinstance(value, str)).lower()}"' if typed else ""
            return f'<{prefix}parameter name="{key}"{kind}>{plain(value)}</{prefix}parameter>\n'

        inside = "\n".join(
            f'<{prefix}invoke name="{name}">\n'
            + "".join(parameter(key, value) for key, value in given.items())
            + f"</{prefix}invoke>"
            for name, given in calls
        )
        return f"<{around}>\n{inside}\n</{around}>"

    return render


def kimi(calls: list[Call]) -> str:
    return (
        "<|tool_calls_section_begin|>"
        + "".join(
            f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>"
            f"{json.dumps(given)}<|tool_call_end|>"
            for index, (name, given) in enumerate(calls)
        )
        + "<|tool_calls_section_end|>"
    )


def react(calls: list[Call]) -> str:
    return "\n".join(
        f"Thought: I need it.\nAction: {name}\nAction Input: {json.dumps(given)}"
        for name, given in calls
    )


def gemma_value(value: Any) -> str:
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    if isinstance(value, list):
        return "[" + ",".join(map(gemma_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{gemma_value(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def gemma(calls: list[Call]) -> str:
    return "".join(f"<|tool_call>call:{n}{gemma_value(given)}<tool_call|>" for n, given in calls)


def function_gemma(calls: list[Call]) -> str:
    return (
        gemma(calls)
        .replace("<|tool_call>", "<start_function_call>")
        .replace("<tool_call|>", "<end_function_call>")
        .replace('<|"|>', "<escape>")
    )


def qwen_agent(calls: list[Call]) -> str:
    return "\n".join(f"✿FUNCTION✿: {name}\n✿ARGS✿: {json.dumps(given)}\n" for name, given in calls)


def cohere(calls: list[Call]) -> str:
    listed = [{"tool_name": name, "parameters": given} for name, given in calls]
    return f"<|START_ACTION|>{json.dumps(listed)}<|END_ACTION|>"


def openai(calls: list[Call]) -> str:
    return json.dumps(
        [
            {"type": "function", "function": {"name": n, "arguments": json.dumps(given)}}
            for n, given in calls
        ]
    )


RENDERERS: dict[str, tuple[str, Renderer]] = {
    "hermes": ("hermes", hermes),
    "granite 3.1": ("hermes", lambda calls: "<tool_call>" + objects(calls)),
    "qwen3-coder": ("qwen-coder", qwen_coder),
    "seed-oss": ("qwen-coder", seed),
    "glm": ("glm", glm),
    "mistral": ("mistral", lambda calls: "[TOOL_CALLS]" + objects(calls)),
    "mistral 11": ("mistral", mistral_named),
    "bfcl prompt": ("pythonic", lambda calls: f"[{python(calls)}]"),
    "llama 4": ("pythonic", lambda calls: f"<|python_start|>[{python(calls)}]<|python_end|>"),
    "lfm2": ("pythonic", lambda calls: f"<|tool_call_start|>[{python(calls)}]<|tool_call_end|>"),
    "olmo 3": (
        "pythonic",
        lambda calls: "<function_calls>\n" + python(calls, "\n") + "\n</function_calls>",
    ),
    "tool_code": ("pythonic", lambda calls: "```tool_code\n" + python(calls, "\n") + "\n```"),
    "llama 3.1": ("llama", llama),
    "llama 3.1, custom": ("llama", llama_functions),
    "llama 3.1, bare": ("json", lambda c: "; ".join(map(json.dumps, named(c, "parameters")))),
    "deepseek v3": ("deepseek", deepseek_v3),
    "deepseek v3.1": ("deepseek", deepseek_v31),
    "deepseek v3.2": (
        "anthropic",
        invoking("\uff5cDSML\uff5c", "\uff5cDSML\uff5cfunction_calls", typed=True),
    ),
    "harmony": ("harmony", harmony),
    "harmony, recipient first": ("harmony", harmony_role),
    "anthropic": ("anthropic", invoking("", "function_calls")),
    "anthropic, prefixed": ("anthropic", invoking("ns:", "ns:function_calls")),
    "minimax m2": ("anthropic", invoking("", "minimax:tool_call")),
    "step 3": ("anthropic", invoking("steptml:", "steptml:toolcall")),
    "react": ("react", react),
    "kimi k2": ("kimi", kimi),
    "gemma 4": ("gemma", gemma),
    "functiongemma": ("gemma", function_gemma),
    "qwen-agent": ("qwen-agent", qwen_agent),
    "granite 3.0": ("granite", lambda calls: "<|tool_call|>" + objects(calls)),
    "granite 20b": (
        "granite",
        lambda calls: "\n".join(f"<function_call> {json.dumps(c)}" for c in named(calls)),
    ),
    "phi 4": ("phi", lambda calls: "functools" + objects(calls)),
    "nemotron": ("nemotron", lambda calls: f"<TOOLCALL>{objects(calls)}</TOOLCALL>"),
    "jamba": ("jamba", lambda calls: f"<tool_calls>{objects(calls)}</tool_calls>"),
    "minimax m1": (
        "jamba",
        lambda c: "<tool_calls>\n" + "\n".join(map(json.dumps, named(c))) + "\n</tool_calls>",
    ),
    "cohere": ("cohere", cohere),
    "internlm": (
        "internlm",
        lambda calls: "\n".join(
            f"<|action_start|><|plugin|>{json.dumps(c)}<|action_end|>"
            for c in named(calls, "parameters")
        ),
    ),
    "xlam": ("json", objects),
    "fenced": ("json", lambda calls: f"Here they are:\n```json\n{objects(calls)}\n```\n"),
    "openai": ("json", openai),
}
"""By the name of who writes it: the verifier's name of the format, and the renderer."""

UNTYPED = frozenset({"qwen-coder", "glm", "anthropic"})
