"""A stop text ends a response at the token that completes it, whatever the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.trainer.engines.stops import StopTexts
from tokenizers_support import FAMILIES

STOPS = ("</tool_call>", "\n```\n", "\u4f60\u597d", "\U0001f469\u200d\U0001f680", "ab", ">")
EXACT = [FAMILIES[name]() for name in ("byte-level", "byte-fallback")]


def first(tokenizer: Any, ids: Sequence[int], stops: Sequence[str]) -> int | None:
    """By decoding all of it after every token."""
    for count in range(1, len(ids) + 1):
        text = tokenizer.decode(list(ids[:count]), skip_special_tokens=False)
        if any(stop in text for stop in stops):
            return count
    return None


def found(texts: StopTexts, ids: Sequence[int]) -> int | None:
    return next((n for n in range(1, len(ids) + 1) if texts.complete(ids[:n])), None)


@settings(max_examples=60, deadline=None)
@given(
    pieces=st.lists(st.one_of(st.sampled_from([*STOPS, "</tool", "_call>", "\n", "``", "<end>"]),
                              st.text(max_size=5)), max_size=8),
    stops=st.lists(st.sampled_from(STOPS), min_size=1, max_size=3, unique=True),
    tokenizer=st.sampled_from(EXACT),
    begun=st.integers(0, 30),
)  # fmt: skip
def test_they_are_found_where_decoding_everything_finds_them(
    pieces: list[str], stops: list[str], tokenizer: Any, begun: int
) -> None:
    ids = tokenizer("".join(pieces), add_special_tokens=False)["input_ids"]
    texts = StopTexts(tokenizer, stops)
    expected = first(tokenizer, ids, stops)
    assert found(texts, ids) == expected
    before = min(begun, len(ids))
    if expected is None or expected > before:
        kept = texts.kept(ids[:before], ids[before:])
        assert kept == (None if expected is None else expected - before)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_text_over_several_tokens_is_found_by_every_kind_of_tokenizer(name: str) -> None:
    tokenizer = FAMILIES[name]()
    text = "x x </the> x x"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    stop = "</the>" if "</the>" in tokenizer.decode(ids) else "the"
    assert found(StopTexts(tokenizer, [stop]), ids) == first(tokenizer, ids, [stop]) is not None


def test_few_tokens_are_decoded_and_few_at_a_time() -> None:
    """A long response is read in linear time: no pass looks at more than a window."""
    tokenizer = EXACT[0]
    decoded: list[int] = []

    class Counted:
        def decode(self, ids: list[int], **rest: Any) -> str:
            decoded.append(len(ids))
            return str(tokenizer.decode(ids, **rest))

    texts = StopTexts(Counted(), ["</tool_call>"])
    ids = tokenizer("a > b <tool_call> c" * 200, add_special_tokens=False)["input_ids"]
    assert found(texts, ids) is None
    assert max(decoded) <= texts.window
    assert len(decoded) < len(ids)
