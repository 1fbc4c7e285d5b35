"""Chat templates with tools, as families of models have them: their shapes, our text."""

from __future__ import annotations

from typing import Any

_CALLS = "{% if message.tool_calls %}{% for one in message.tool_calls %}"
HERMES = (
    "{% if tools %}<|im_start|>system\n{% if messages[0].role == 'system' %}"
    "{{ messages[0].content }}\n\n{% endif %}Tools:{% for tool in tools %}\n{{ tool | tojson }}"
    "{% endfor %}<|im_end|>\n{% elif messages[0].role == 'system' %}<|im_start|>system\n"
    "{{ messages[0].content }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}{% if message.role == 'tool' %}"
    "{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}"
    "\n<tool_response>\n{{ message.content }}\n</tool_response>"
    "{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}<|im_end|>\n{% endif %}"
    "{% elif message.role != 'system' %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    + _CALLS
    + '<tool_call>\n{"name": "{{ one.function.name }}", "arguments": '
    "{{ one.function.arguments | tojson }}}\n</tool_call>{% endfor %}{% endif %}<|im_end|>\n"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA = (
    "{% for message in messages %}<|start_header_id|>"
    "{{ 'ipython' if message.role == 'tool' else message.role }}<|end_header_id|>\n\n"
    "{% if loop.first and tools %}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"
    "{% endif %}"
    "{% if message.tool_calls %}"
    "{% if message.tool_calls | length != 1 %}{{ raise_exception('one call') }}{% endif %}"
    '{"name": "{{ message.tool_calls[0].function.name }}", "parameters": '
    "{{ message.tool_calls[0].function.arguments | tojson }}}"
    "{% elif message.role == 'tool' %}{{ message.content | tojson }}"
    "{% else %}{{ message.content | trim }}{% endif %}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
MISTRAL = (
    "{% for message in messages %}{% if message.role == 'user' %}"
    "{% if tools and loop.last %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}"
    "[INST]{{ message.content }}[/INST]"
    "{% elif message.role == 'system' %}{{ raise_exception('no system') }}"
    "{% elif message.role == 'tool' %}"
    "{% if message.tool_call_id | length != 9 %}{{ raise_exception('nine letters') }}{% endif %}"
    "[TOOL_RESULTS]{{ message.content }}[/TOOL_RESULTS]"
    "{% else %}{% if message.tool_calls %}[TOOL_CALLS] ["
    '{% for one in message.tool_calls %}{"name": "{{ one.function.name }}", "arguments": '
    '{{ one.function.arguments | tojson }}, "id": "{{ one.id }}"}'
    "{{ '' if loop.last else ', ' }}{% endfor %}]{% else %}{{ message.content }}{% endif %}</s>"
    "{% endif %}{% endfor %}"
)
SPECIAL = {
    "hermes": ["<|im_start|>", "<|im_end|>"],
    "llama": ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"],
    "mistral": ["[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "</s>"],
}
TEMPLATES = {"hermes": HERMES, "llama": LLAMA, "mistral": MISTRAL}


def with_special(tokenizer: Any, texts: list[str]) -> Any:
    """The tokenizer, with texts as special tokens of its own."""
    tokenizer.add_special_tokens({"additional_special_tokens": texts})
    return tokenizer


def family(name: str) -> Any:
    """A tokenizer of one of these families."""
    from genrm_support import make_tokenizer

    tokenizer = with_special(make_tokenizer(), SPECIAL[name])
    tokenizer.chat_template = TEMPLATES[name]
    if name != "hermes":
        tokenizer.eos_token = "<|eot_id|>" if name == "llama" else "</s>"
    return tokenizer
