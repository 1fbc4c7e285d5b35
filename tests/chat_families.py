"""Chat templates that end as those of today's families of models do: their switches, our text.

Each is short: the turns in ChatML, and what the family's template does about thinking, as read in
the public templates of November 2026. `direct` is how the prompt ends where a verdict begins at
once, `thinking` where our prompt opens a thought, and `after` where the verdict comes behind one.
"""

from __future__ import annotations

from dataclasses import dataclass

TURNS = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
)
_OFF = "enable_thinking is defined and not enable_thinking"
_BUDGET = "The current thinking budget is 0, so I will directly start answering the question."


@dataclass(frozen=True, slots=True)
class ChatFamily:
    """A family's template, and how it should end before `Verdict:`, in a thought, and behind it."""

    name: str
    template: str
    direct: str
    thinking: str
    after: str


def _plain(name: str, head: str, tail: str, direct: str, thinking: str) -> ChatFamily:
    """Of those whose thought is between <think> and </think>."""
    after = f"{head}{thinking}Two.</think>\n<answer>"
    return ChatFamily(name, TURNS + tail, f"{head}{direct}Verdict:", f"{head}{thinking}", after)


_CHATML, _DEEPSEEK = "<|im_start|>assistant\n", "<\uff5cAssistant\uff5c>"
FAMILIES = (
    _plain("Qwen2.5, Llama 3", _CHATML, _CHATML + "{# #}", "", "<think>"),
    _plain(
        "Qwen3",
        _CHATML,
        _CHATML + "{% if " + _OFF + " %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}",
        "<think>\n\n</think>\n\n",
        "<think>",
    ),
    _plain(
        "Qwen3-Thinking, QwQ, Ernie-4.5-Thinking",
        _CHATML,
        _CHATML + "{{ '<think>\\n' }}",
        "<think>\n\n</think>\n\n",
        "<think>\n",
    ),
    _plain(
        "DeepSeek-R1-Distill",
        _DEEPSEEK,
        _DEEPSEEK + "{{ '<think>\\n' }}",
        "<think>\n\n</think>\n\n",
        "<think>\n",
    ),
    _plain(
        "DeepSeek-V3.1",
        _DEEPSEEK,
        _DEEPSEEK + "{% if thinking %}<think>{% else %}</think>{% endif %}",
        "</think>",
        "<think>",
    ),
    _plain("without a switch, closed", _DEEPSEEK, _DEEPSEEK + "</think>", "</think>", "<think>"),
    _plain(
        "GLM-4.5, GLM-4.6",
        "<|assistant|>",
        "<|assistant|>{% if " + _OFF + " %}{{ '\\n<think></think>' }}{% endif %}",
        "\n<think></think>",
        "<think>",
    ),
    _plain(
        "GLM-4.5, as some servers open it",
        "<|assistant|>",
        "<|assistant|>{{ '\\n<think>' }}",
        "\n<think>\n\n</think>\n\n",
        "\n<think>",
    ),
    _plain(
        "MiniMax-M2",
        "]~b]ai\n",
        "]~b]ai\n{{ '<think>\\n' }}",
        "<think>\n\n</think>\n\n",
        "<think>\n",
    ),
    _plain(
        "Kimi-K2-Thinking",
        "<|im_assistant|>assistant<|im_middle|>",
        "{% if false %}<think></think>{% endif %}<|im_assistant|>assistant<|im_middle|>",
        "<think></think>",
        "<think>",
    ),
    _plain(
        "Kimi-K2.5",
        "<|im_assistant|>assistant<|im_middle|>",
        "<|im_assistant|>assistant<|im_middle|>"
        "{% if thinking is defined and not thinking %}<think></think>{% else %}<think>{% endif %}",
        "<think></think>",
        "<think>",
    ),
    _plain(
        "Nemotron-Nano-v2",
        "<SPECIAL_11>Assistant\n",
        "<SPECIAL_11>Assistant\n{% if '/no_think' in messages[0]['content'] %}<think></think>"
        "{% else %}{{ '<think>\\n\\n' }}{% endif %}",
        "<think>\n\n</think>\n\n",
        "<think>\n\n",
    ),
    _plain(
        "Llama-3.3-Nemotron-Super-v1.5",
        _CHATML,
        _CHATML + "{% if '/no_think' in messages[0]['content'] %}"
        "{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}",
        "<think>\n\n</think>\n\n",
        "<think>",
    ),
    _plain(
        "SmolLM3, Hunyuan",
        _CHATML,
        _CHATML + "{% if " + _OFF + " %}{{ '<think>\\n\\n</think>\\n' }}{% endif %}",
        "<think>\n\n</think>\n",
        "<think>",
    ),
    ChatFamily(
        "Seed-OSS",
        TURNS + "{% if thinking_budget is defined and thinking_budget == 0 %}<seed:bos>system\n"
        "Your thinking budget is 0.<seed:eos>{% endif %}<seed:bos>assistant\n"
        "{% if thinking_budget is defined and thinking_budget == 0 %}"
        "<seed:think><seed:cot_budget_reflect>{% endif %}{# <seed:think> #}",
        f"<seed:bos>assistant\n<seed:think><seed:cot_budget_reflect>{_BUDGET}"
        "</seed:cot_budget_reflect>\n</seed:think>Verdict:",
        "<seed:bos>assistant\n<seed:think>",
        "<seed:bos>assistant\n<seed:think>Two.</seed:think>\n<answer>",
    ),
    ChatFamily(
        "Magistral",
        "{% if messages | length < 1 %}First think: [THINK]so[/THINK]{% endif %}"
        + TURNS
        + "[/INST]",
        "[/INST]Verdict:",
        "[/INST][THINK]",
        "[/INST][THINK]Two.[/THINK]\n<answer>",
    ),
    ChatFamily(
        "Command A Reasoning",
        TURNS + "<|CHATBOT_TOKEN|><|START_THINKING|>",
        "<|CHATBOT_TOKEN|><|START_THINKING|>\n\n<|END_THINKING|>\n\nVerdict:",
        "<|CHATBOT_TOKEN|><|START_THINKING|>",
        "<|CHATBOT_TOKEN|><|START_THINKING|>Two.<|END_THINKING|>\n<answer>",
    ),
    ChatFamily(
        "Kimi-VL-Thinking",
        TURNS + "<|im_assistant|>assistant<|im_middle|>◁think▷",
        "<|im_middle|>◁think▷\n\n◁/think▷\n\nVerdict:",
        "<|im_middle|>◁think▷",
        "<|im_middle|>◁think▷Two.◁/think▷\n<answer>",
    ),
    ChatFamily(
        "gpt-oss (harmony)",
        TURNS + "<|start|>assistant",
        "<|start|>assistant<|channel|>final<|message|>Verdict:",
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|start|>assistant<|channel|>analysis<|message|>Two."
        "<|end|><|start|>assistant<|channel|>final<|message|>\n<answer>",
    ),
    ChatFamily(
        "Gemma 4",
        "{% if enable_thinking %}<|turn>system\n<|think|><turn|>{% endif %}"
        + TURNS
        + "<|turn>model\n{% if not enable_thinking %}"
        "{{ '<|channel>thought\\n<channel|>' }}{% endif %}",
        "<|turn>model\n<|channel>thought\n<channel|>Verdict:",
        "<|turn>model\n<|channel>thought\n",
        "<|turn>model\n<|channel>thought\nTwo.<channel|>\n<answer>",
    ),
)
SPECIAL = (
    "[THINK]",
    "[/THINK]",
    "<|channel|>",
    "<|message|>",
    "<|start|>",
    "<|end|>",
    "<|return|>",
)
"""Tags of thoughts that are special tokens to their tokenizers, and one that is none of them."""
