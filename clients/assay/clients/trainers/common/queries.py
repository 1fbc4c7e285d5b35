"""The response in a decoded text of prompt and response, with special tokens. Pure."""

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
"""Special tokens that may end a decoded response."""


def response_of(query: str, prompt: str, after: str = "") -> str | None:
    """The policy's text, without the end-of-turn tokens behind it.

    It follows the last occurrence of `after`, if given, or else the prompt as sent; with both empty
    it is the whole query. None where the query does not hold the text before the response: an
    answer read from the prompt would be rewarded.
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
