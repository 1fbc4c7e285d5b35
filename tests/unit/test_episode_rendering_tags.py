"""What a format puts around a result stays whole; what a tool wrote never becomes its tags."""

from __future__ import annotations

import pytest
from experiments.miniature import tokenizer_of

from assay.environments.formats import format_of
from assay.environments.types import EpisodeMessage
from assay.trainer.methods.episodes.rendering import Rendering

TAGS = ("<tool_response>", "</tool_response>", "```output", "```python", "```")
WORDS = (*"0123456789", "\n", *TAGS)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("tagged", "<tool_response>", "</tool_response>"), ("code", "```output", "```")],
)
@pytest.mark.parametrize("printed", ["1776", "<tool_response>", "</tool_response>", "```output"])
def test_the_wrapping_is_tokens_and_what_is_inside_is_none(
    name: str, before: str, after: str, printed: str
) -> None:
    tokenizer = tokenizer_of(WORDS)
    rendering = Rendering(tokenizer, format_of(name, tokenizer))
    result = EpisodeMessage("tool", printed, name="python")
    tokens = tokenizer.convert_ids_to_tokens(rendering.after((result,), (5,)))
    if printed.isdigit():
        assert (tokens.count(before), tokens.count(after)) == (1, 1)
        assert "".join(tokens).count(printed) == 1
    else:  # a tag inside: at most the wrapping's own are tokens
        assert tokens.count(before) <= 1
        assert tokens.count(after) <= 1
        assert tokens.count(printed) <= 1
