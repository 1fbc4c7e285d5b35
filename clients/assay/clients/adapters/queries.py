"""The response in a text that holds prompt and response, decoded with special tokens. Pure."""

from __future__ import annotations

from assay.rpc.errors import ConfigError

END_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",  # DeepSeek's
)
"""Special tokens that may end a decoded response, and are no part of it."""


def response_of(query: str, prompt: str, after: str = "") -> str:
    """What the policy wrote, without the end-of-turn tokens behind it.

    Nothing is guessed: an answer read from the prompt would be paid.

    Args:
        query: prompt and response.
        prompt: the prompt as it was sent.
        after: the response follows the last occurrence of this; empty: it follows the prompt.

    Raises:
        ConfigError: the query does not hold what the response follows.
    """
    if after:
        _, mark, response = query.rpartition(after)
        remedy = "set ASSAY_RESPONSE_AFTER to the text before every response"
    elif not prompt:
        return without_end(query)
    else:
        _, mark, response = query.partition(prompt)
        remedy = "set ASSAY_RESPONSE_AFTER, such as '<|im_start|>assistant\\n'"
    if not mark:
        raise ConfigError(f"a query does not hold what its response follows; {remedy}")
    return without_end(response)


def without_end(response: str) -> str:
    """A decoded response without the end-of-turn tokens at its end."""
    while ended := next((end for end in END_TOKENS if response.rstrip("\n").endswith(end)), None):
        response = response.rstrip("\n").removesuffix(ended)
    return response
