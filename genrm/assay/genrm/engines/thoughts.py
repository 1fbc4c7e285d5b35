"""Chat templates that begin the answer inside a thought, or before a channel is chosen. Text only.

A verdict is read where the answer begins. A template that opens a thought there would have it read
inside of the thought, whose end nobody waits for: the thought is closed at once, as templates with
a switch for it do, or goes on where our own prompt begins with one.
"""

from __future__ import annotations

OURS = "<think>"
"""How our prompts open a thought (R1-Reward, arXiv 2505.02835)."""
CLOSERS = {
    OURS: "</think>",  # DeepSeek-R1, QwQ, Qwen3-Thinking, GLM-4.5, Nemotron, MiniMax-M1
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "[THINK]": "[/THINK]",  # Magistral
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command A Reasoning
    "◁think▷": "◁/think▷",  # Kimi-VL-Thinking
}
"""What ends a thought, by what opens it."""
_CHANNELS = {"<|start|>assistant": "<|channel|>final<|message|>"}  # gpt-oss (harmony)


def continued(opened: str, begun: str) -> str:
    """The prompt up to the assistant's answer, and how that begins.

    Args:
        opened: the messages as the chat template writes them, open for the assistant.
        begun: our beginning of the answer.
    """
    end = opened.rstrip()
    for opening, closing in CLOSERS.items():
        if end.endswith(opening):
            if begun.startswith(OURS):
                return opened + begun.removeprefix(OURS).removeprefix("\n")
            return f"{end}\n\n{closing}\n\n{begun}"
    for start, channel in _CHANNELS.items():
        if end.endswith(start):
            return f"{end}{channel}{begun}"
    return opened + begun
