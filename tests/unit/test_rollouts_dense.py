"""Span rewards on tokens: cases that can be checked by eye, and spans that do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from assay.clients import Span
from assay.kit import pretrained
from assay.trainer.methods.dense.spans import (
    ends_by_beginnings,
    span_tokens,
    token_ends,
)
from dense_support import token_rewards
from tokenizers_support import FAMILIES, TEXTS, byte_fallback, byte_level, characters, word_piece


def ids_of(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text)["input_ids"]
    return ids


def place(spans: list[Span], text: str, ids: list[int], tokenizer: Any) -> list[float]:
    return list(token_rewards(spans, text, ids, tokenizer, normalise=False))


def test_one_token_a_character() -> None:
    tokenizer = characters()
    text = "ab\ncd"
    ids = [*ids_of(tokenizer, text), tokenizer.eos_token_id]
    assert token_ends(ids, tokenizer) == [1, 2, 3, 4, 5, 5]
    spans = [Span(0, 3, 1.0, "step"), Span(3, 5, -0.5, "step")]
    assert place(spans, text, ids, tokenizer) == [0, 0, 1.0, 0, -0.5, 0]
    halved = token_rewards(spans, text, ids, tokenizer, normalise=True)
    assert halved == [0, 0, 0.5, 0, -0.25, 0]
    assert span_tokens(spans, len(text), ids, tokenizer) == [2, 4]


def test_spans_that_end_on_one_token_add_up() -> None:
    tokenizer = byte_level()
    text = "the dog"
    ids = ids_of(tokenizer, text)
    long = max(range(len(ids)), key=lambda place: len(tokenizer.decode([ids[place]])))
    end = token_ends(ids, tokenizer)[long]
    spans = [Span(end - 2, end - 1, 0.25), Span(end - 1, end, 0.5)]
    assert place(spans, text, ids, tokenizer)[long] == 0.75


def test_a_character_of_several_tokens_counts_at_its_last() -> None:
    tokenizer = byte_level()
    face = "\U0001f622"
    ids = ids_of(tokenizer, f"a{face}b")
    assert [tokenizer.decode([id_]) for id_ in ids].count("\ufffd") > 1
    ends = token_ends(ids, tokenizer)
    assert ends[0] == 1
    assert ends[-2:] == [2, 3]
    assert set(ends[1:-2]) == {1}
    rewards = place([Span(0, 2, 1.0), Span(2, 3, 5.0)], f"a{face}b", ids, tokenizer)
    assert rewards == [0.0] * (len(ids) - 2) + [1.0, 5.0]


def test_a_character_that_was_cut_is_one_replacement_character() -> None:
    tokenizer = byte_level()
    ids = ids_of(tokenizer, "a\U0001f622")[:-1]
    text = tokenizer.decode(ids)
    assert text == "a\ufffd"
    ends = token_ends(ids, tokenizer)
    assert ends == ends_by_beginnings(ids, tokenizer)
    assert ends[-1] == 2


def test_bytes_that_are_text_only_together() -> None:
    """Llama 2's decoder writes a run of bytes anew when a further byte spoils or completes it."""
    tokenizer = byte_fallback()
    euro = tokenizer.convert_tokens_to_ids(["<0xE2>", "<0x82>", "<0xAC>"])
    assert token_ends(euro * 2, tokenizer) == [0, 0, 1, 1, 1, 2]
    spoiled = [*euro, euro[0]]
    assert tokenizer.decode(spoiled) == "\ufffd" * 4
    assert token_ends(spoiled, tokenizer) == [1, 2, 2, 4]


def test_a_cleaned_up_space_may_stand_where_a_window_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """BERT's decoder takes back the space before an apostrophe when it sees what follows."""
    tokenizer = word_piece()
    expected = {}
    for shift in range(20):
        ids = ids_of(tokenizer, "a " * shift + "it's " * 20)
        expected[tuple(ids)] = ends_by_beginnings(ids, tokenizer)
    monkeypatch.setattr("assay.trainer.methods.dense.spans.ends_by_beginnings", None)
    assert "it's it's" in tokenizer.decode(next(iter(expected)))
    for case, ends in expected.items():
        assert token_ends(case, tokenizer) == ends


@pytest.mark.parametrize("count", [4, 12, 30])
def test_a_run_of_bytes_that_its_last_one_spoils(count: int) -> None:
    """As when a response in a script that the vocabulary lacks is cut within a character."""
    tokenizer = byte_fallback()
    euro = tokenizer.convert_tokens_to_ids(["<0xE2>", "<0x82>", "<0xAC>"])
    ids = [*ids_of(tokenizer, "the x"), *euro * count, euro[0]]
    ends = token_ends(ids, tokenizer)
    assert ends == ends_by_beginnings(ids, tokenizer)
    assert ends[-1] == len("the x") + 3 * count + 1


def test_special_tokens_complete_nothing_wherever_they_stand() -> None:
    tokenizer = byte_level()
    think, end = tokenizer.convert_tokens_to_ids(["<think>", "<end>"])
    plain = ids_of(tokenizer, "two steps")
    mixed = [think, *plain[:2], think, think, *plain[2:], end]
    ends, plain_ends = token_ends(mixed, tokenizer), token_ends(plain, tokenizer)
    assert ends[0] == 0
    assert ends[1:3] == plain_ends[:2]
    assert ends[3:5] == [plain_ends[1]] * 2
    assert ends[5:-1] == plain_ends[2:]
    assert ends[-1] == plain_ends[-1]
    rewards = place([Span(0, 9, 1.0)], "two steps", mixed, tokenizer)
    assert rewards[-2:] == [1.0, 0.0]


def test_the_dropped_leading_space_shifts_nothing() -> None:
    for name in ("metaspace", "byte-fallback"):
        tokenizer = FAMILIES[name]()
        text = "the x = 4"
        ids = ids_of(tokenizer, text)
        assert tokenizer.decode(ids) == text
        ends = token_ends(ids, tokenizer)
        pieces = tokenizer.convert_ids_to_tokens(ids)
        length = -1  # the space in front of the first word
        for piece, end in zip(pieces, ends, strict=True):
            length += len(piece)
            assert end == max(length, 0)


def test_spans_without_characters() -> None:
    tokenizer = characters()
    ids = [*ids_of(tokenizer, "abc"), tokenizer.eos_token_id]
    assert place([Span(2, 2, 1.0)], "abc", ids, tokenizer) == [0, 1.0, 0, 0]
    assert place([Span(0, 0, 1.0)], "abc", ids, tokenizer) == [1.0, 0, 0, 0]
    nothing = [tokenizer.eos_token_id]
    assert place([Span(0, 0, 1.0, "turn")], "", nothing, tokenizer) == [1.0]


def test_no_spans_no_rewards() -> None:
    assert token_rewards([], "abc", [4, 5], None, normalise=True) == [0.0, 0.0]
    assert token_ends([], characters()) == []


@pytest.mark.parametrize(
    ("span", "message"),
    [
        (Span(0, 4, 1.0, "step"), r"the span 'step' at 0:4 does not lie within a text of 3"),
        (Span(2, 1, 1.0), "the span 'without a label' at 2:1 does not lie within"),
        (Span(-1, 1, 1.0), "at -1:1 does not lie within"),
        (Span(0, 1, 1.0, "turn", 2), "falls on turn 2 of a response of one turn"),
    ],
)
def test_spans_that_do_not_fit_are_refused(span: Span, message: str) -> None:
    tokenizer = characters()
    with pytest.raises(ValueError, match=message):
        span_tokens([Span(0, 1, 1.0), span], 3, ids_of(tokenizer, "abc"), tokenizer)


def test_another_text_than_the_tokens_is_refused() -> None:
    tokenizer = characters()
    with pytest.raises(ValueError, match=r"text of 2 characters .* tokens that decode to 3"):
        span_tokens([Span(0, 1, 1.0)], 2, ids_of(tokenizer, "abc"), tokenizer)


class Rewriting:
    """A decoder whose text depends on all tokens: words in reverse order."""

    def __init__(self) -> None:
        self.added_tokens_decoder: dict[int, Any] = {}

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return " ".join(str(id_ % 7) for id_ in reversed(ids))


def test_a_text_that_no_window_shows_is_decoded_beginning_by_beginning() -> None:
    tokenizer = Rewriting()
    ids = [n * n for n in range(100)]
    ends = token_ends(ids, tokenizer)
    assert ends == ends_by_beginnings(ids, tokenizer)
    assert ends[-1] == len(tokenizer.decode(ids, skip_special_tokens=True))


@pytest.mark.model
def test_a_published_tokenizer() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        pretrained.ensure(pretrained.SMOLLM2, lambda _line: None)
    )
    ids = ids_of(tokenizer, "\n".join(TEXTS) * 5)
    ids[50:50] = [tokenizer.eos_token_id, 3, 200, 255]
    assert token_ends(ids, tokenizer) == ends_by_beginnings(ids, tokenizer)
