"""Chat templates that begin the answer inside a thought, or before a channel is chosen. Text only.

A verdict is read where the answer begins, so no thought may be open there: the template's own
switch is off, a thought that it opens all the same is closed, and one that it writes empty before
every answer is empty here too. A prompt of ours that begins with a thought has exactly one, between
the tags of the model's family.

Facts of the public templates of Qwen3, QwQ, DeepSeek-R1 and V3.1, GLM-4.5, Seed-OSS, Magistral,
gpt-oss (harmony), Gemma 4, MiniMax-M2, Kimi-K2-Thinking and Nemotron, and from memory of Command A,
SmolLM3, Hunyuan and Ernie 4.5; none of their text.
"""

from __future__ import annotations

import re

OURS = "<think>"
"""How our prompts open a thought (R1-Reward, arXiv 2505.02835)."""
OUR_END = "</think>"
"""How they end it."""
_GEMMA = "<|channel>thought"
_HARMONY = "<|start|>assistant"
_ANALYSIS = "<|channel|>analysis<|message|>"
_FINAL = "<|channel|>final<|message|>"
CLOSERS = {
    OURS: OUR_END,  # DeepSeek, QwQ, Qwen3, GLM, Nemotron, MiniMax, SmolLM3, Hunyuan, Ernie
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "[THINK]": "[/THINK]",  # Magistral
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command A Reasoning
    "◁think▷": "◁/think▷",  # Kimi-VL-Thinking
    _GEMMA: "<channel|>",  # Gemma 4
    _ANALYSIS: f"<|end|>{_HARMONY}{_FINAL}",  # gpt-oss
}
"""What ends a thought, by what opens it."""
MARKS = frozenset(
    [
        *CLOSERS,
        *CLOSERS.values(),
        "<|channel>",
        "<|channel|>",
        "<|message|>",
        "<|start|>",
        "<|end|>",
    ]
)
"""Tokens that tell thought from answer: kept in a judge's text, though special to its tokenizer."""
_REFLECT = "<seed:cot_budget_reflect>"
_EMPTY = {
    _GEMMA: "\n<channel|>",
    _REFLECT: "The current thinking budget is 0, so I will directly start answering the question."
    "</seed:cot_budget_reflect>\n</seed:think>",
}
"""What follows an opened thought that shall be empty, where it is not blank lines and the end."""
_EMPTY_AT_END = re.compile(r"(?:<think>\s*)?</think>\s*\Z|<\|channel>thought\s*<channel\|>\s*\Z")
_WRITES_EMPTY = re.compile(r"<think>(?:\\n|\s)*</think>(?:\\n|\n)*")


def switches(begun: str) -> dict[str, bool | int]:
    """The variables by which chat templates turn thinking on or off, for an answer begun so."""
    if begun.startswith(OURS):
        return {"enable_thinking": True, "thinking": True}
    return {"enable_thinking": False, "thinking": False, "thinking_budget": 0}


def continued(opened: str, begun: str, template: str = "") -> str:
    """The prompt up to the assistant's answer, and how that begins.

    Args:
        opened: the messages as the chat template writes them, open for the assistant.
        begun: our beginning of the answer.
        template: the chat template.
    """
    if begun.startswith(OURS):
        return _thinking(opened, begun.removeprefix(OURS).removeprefix("\n"), template)
    end = opened.rstrip()
    if end.endswith(_HARMONY):
        return f"{end}{_FINAL}{begun}"
    for opening in (*CLOSERS, _REFLECT):
        if end.endswith(opening):
            closing = _EMPTY.get(opening) or f"\n\n{CLOSERS[opening]}\n\n"
            return f"{end}{closing}{begun}"
    empty = _WRITES_EMPTY.search(template)
    if empty and not _EMPTY_AT_END.search(opened):
        return opened + empty[0].replace("\\n", "\n") + begun
    return opened + begun


def _thinking(opened: str, said: str, template: str) -> str:
    """One open thought and what was said in it, its end in the words of the family."""
    end = opened.rstrip()
    if end.endswith(_HARMONY):
        return f"{end}{_ANALYSIS}{_translated(said, _ANALYSIS)}"
    for opening in CLOSERS:
        if end.endswith(opening):
            return opened + _translated(said, opening)
    opening = next((one for one in CLOSERS if one in template), OURS)
    line = "\n" if opening == _GEMMA else ""
    return f"{_EMPTY_AT_END.sub('', opened)}{opening}{line}{_translated(said, opening)}"


def _translated(said: str, opening: str) -> str:
    return said.replace(OUR_END, CLOSERS[opening], 1)
