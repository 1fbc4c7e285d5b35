"""Where span rewards land, over tokenizers of every family and all of Unicode."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.clients import Span
from assay.trainer.methods.dense import spans as dense
from assay.trainer.methods.dense.spans import token_ends
from dense_support import token_rewards
from tokenizers_support import FAMILIES, TEXTS

families = st.sampled_from(sorted(FAMILIES)).map(lambda name: FAMILIES[name]())
pieces = st.one_of(
    st.sampled_from(TEXTS),
    st.text(max_size=30),
    st.text("aé你\U0001f600\u0301\u200d\ufffd \n.'", max_size=30),
    st.just("the do n't x = "),
)


def prefix_ends(ids: list[int], tokenizer: Any) -> list[int]:
    """The definition, in other words: how far each beginning agreed with the text, at best."""
    text = tokenizer.decode(ids, skip_special_tokens=True)
    best, ends = 0, []
    for count in range(1, len(ids) + 1):
        beginning = tokenizer.decode(ids[:count], skip_special_tokens=True)
        while text[: best + 1] == beginning[: best + 1] and best < len(beginning):
            best += 1
        ends.append(best)
    return ends


@st.composite
def written(draw: st.DrawFn) -> tuple[Any, list[int]]:
    """A tokenizer and a response of it: text, with tokens of any kind thrown in."""
    tokenizer = draw(families)
    token = st.integers(0, len(tokenizer) - 1)
    ids: list[int] = []
    for part in draw(st.lists(pieces, max_size=3)):
        ids += tokenizer(part)["input_ids"]
        ids += draw(st.lists(token, max_size=4)) * draw(st.sampled_from([1, 1, 1, 20, 60]))
    return tokenizer, ids[:200]


@st.composite
def judged(draw: st.DrawFn) -> tuple[Any, list[int], str, list[Span]]:
    """A response with spans, in order and apart."""
    tokenizer, ids = draw(written().filter(lambda pair: bool(pair[1])))
    text = tokenizer.decode(ids, skip_special_tokens=True)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    reward = st.floats(-1e3, 1e3)
    spans = [Span(a, b, draw(reward)) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    return tokenizer, ids, text, spans


@given(written())
@settings(max_examples=80)
def test_windows_agree_with_every_beginning_decoded(case: tuple[Any, list[int]]) -> None:
    tokenizer, ids = case
    ends = token_ends(ids, tokenizer)
    assert ends == prefix_ends(ids, tokenizer)
    assert ends == sorted(ends)
    assert len(ends) == len(ids)
    if ids:
        assert ends[-1] == len(tokenizer.decode(ids, skip_special_tokens=True))


@given(judged(), st.booleans())
@settings(max_examples=60)
def test_nothing_is_lost_and_nothing_made_up(
    case: tuple[Any, list[int], str, list[Span]], normalise: bool
) -> None:
    tokenizer, ids, text, spans = case
    rewards = token_rewards(spans, text, ids, tokenizer, normalise=normalise)
    assert len(rewards) == len(ids)
    whole = math.fsum(span.reward for span in spans) / (len(spans) if normalise and spans else 1)
    assert math.fsum(rewards) == pytest.approx(whole, abs=1e-9)
    assert sum(reward != 0 for reward in rewards) <= len(spans)


@given(judged())
@settings(max_examples=30)
def test_a_reward_lies_where_its_last_character_is_completed(
    case: tuple[Any, list[int], str, list[Span]],
) -> None:
    tokenizer, ids, text, spans = case
    ends = prefix_ends(ids, tokenizer)
    for span in spans:
        rewards = token_rewards(
            [Span(span.start, span.end, 1.0)], text, ids, tokenizer, normalise=False
        )
        place = list(rewards).index(1.0)
        assert ends[place] >= span.end
        assert place == 0 or ends[place - 1] < span.end


@given(judged())
@settings(max_examples=30)
def test_the_order_of_spans_does_not_matter(
    case: tuple[Any, list[int], str, list[Span]],
) -> None:
    tokenizer, ids, text, spans = case
    forward = token_rewards(spans, text, ids, tokenizer, normalise=True)
    backward = token_rewards(spans[::-1], text, ids, tokenizer, normalise=True)
    assert forward == pytest.approx(backward)


def test_windows_do_without_decoding_every_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the decoder's work: tokens that it is given stay within a few windows for each token."""

    def never(_ids: list[int], _tokenizer: Any) -> list[int]:
        raise AssertionError("the windows did not arrive at the text")

    for make in FAMILIES.values():
        tokenizer = make()
        ids = (tokenizer("\n".join(TEXTS))["input_ids"] * 40)[:3000]
        given_tokens = 0

        def counted(some: list[int], of: Any, decode: Any = dense._decode) -> str:
            nonlocal given_tokens
            given_tokens += len(some)
            text: str = decode(some, of)
            return text

        monkeypatch.setattr(dense, "_decode", counted)
        monkeypatch.setattr(dense, "ends_by_beginnings", never)
        token_ends(ids, tokenizer)
        monkeypatch.undo()
        assert given_tokens < 60 * len(ids)


@pytest.mark.parametrize("name", ["byte-level", "byte-fallback"])
def test_a_policy_that_repeats_half_a_character_costs_no_more(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = FAMILIES[name]()
    half = next(i for i in range(len(tokenizer)) if tokenizer.decode([i]) == "\ufffd")
    longest = 0

    def counted(some: list[int], of: Any, decode: Any = dense._decode) -> str:
        nonlocal longest
        longest = max(longest, len(some)) if len(some) < 1000 else longest
        text: str = decode(some, of)
        return text

    monkeypatch.setattr(dense, "_decode", counted)
    assert token_ends([half] * 1000, tokenizer)[-1] > 0
    assert longest < 300
