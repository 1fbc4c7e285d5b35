"""The response in a text that holds prompt and response, decoded with special tokens. Pure."""

from __future__ import annotations

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


def response_of(query: str, prompt: str, after: str = "") -> str | None:
    """What the policy wrote, without the end-of-turn tokens behind it.

    Args:
        query: prompt and response.
        prompt: the prompt as it was sent; empty: all of the query is the response.
        after: the response follows the last occurrence of this; empty: it follows the prompt.

    Returns:
        The response; None where the query does not hold what it follows. Nothing is guessed: an
        answer read from the prompt would be paid.
    """
    if after:
        _, mark, response = query.rpartition(after)
        return without_end(response) if mark else None
    if not prompt:
        return without_end(query)
    _, mark, response = query.partition(prompt)
    return without_end(response) if mark else None


def without_end(response: str) -> str:
    """A decoded response without the end-of-turn tokens at its end."""
    while ended := next((end for end in END_TOKENS if response.rstrip("\n").endswith(end)), None):
        response = response.rstrip("\n").removesuffix(ended)
    return response
