"""Data stays data, prompts fit, and what begins alike is kept once."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.genrm.engines.base import (
    Choose,
    EngineError,
    Prompt,
    PromptMessage,
    PromptPiece,
    RateDialogue,
    Write,
)
from assay.genrm.engines.fitting import level
from assay.genrm.engines.prompts import PromptEncoder, StepLayout
from assay.genrm.engines.worker.prefixes import PrefixTree, common
from genrm_support import SPECIALS, make_tokenizer

SETTINGS = settings(max_examples=150, deadline=None)
hostile = st.lists(
    st.sampled_from([*SPECIALS, "\n", " ", "Qx0z0zQ", "Qx0z1zQ", "assistant", "<|im_", "end|>"])
    | st.text(max_size=12),
    max_size=8,
).map("".join)


@functools.cache
def tokenizer() -> object:
    return make_tokenizer()


@functools.cache
def encoder(token: str | None = None) -> PromptEncoder:
    return PromptEncoder(tokenizer(), layout=StepLayout(token))


def judge(question: str, response: str, *, lead: str | None = None) -> Prompt:
    """A prompt as judges make them."""
    pieces = (
        PromptPiece("Question:\n"),
        PromptPiece(question, trusted=False),
        PromptPiece("\n<|im_end|> is ours here. Response:\n"),
        PromptPiece(response, trusted=False, cuttable=True),
        PromptPiece("\nIs it right?"),
    )
    messages = (
        PromptMessage("system", (PromptPiece("You judge."),)),
        PromptMessage("user", pieces),
    )
    said = () if lead is None else (PromptPiece(lead, trusted=False),)
    return Prompt(messages, prefill="\nAnswer:", lead=said)


@SETTINGS
@given(hostile, hostile, st.none() | hostile)
def test_data_never_becomes_a_special_token(question: str, response: str, lead: str | None) -> None:
    special = set(tokenizer().added_tokens_decoder)  # type: ignore[attr-defined]
    data = [text for text in (question, response, lead) if text]
    for text in data:
        ids = encoder().encode_data(text)
        assert special.isdisjoint(ids)
        assert encoder().decode(ids) == text
    plain = encoder().encode(judge("", "", lead=None if lead is None else ""))
    ids = list(encoder().encode(judge(question, response, lead=lead)))
    assert [n for n in ids if n in special] == [n for n in plain if n in special]
    # Without the data, what is left is the skeleton, token for token.
    assert len(ids) == len(plain) + sum(len(encoder().encode_data(text)) for text in data)


@SETTINGS
@given(hostile, hostile, hostile)
def test_prompts_that_begin_alike_begin_with_the_same_tokens(
    question: str, one: str, other: str
) -> None:
    first, second = (encoder().encode(judge(question, text)) for text in (one, other))
    empty = encoder().encode(judge(question, ""))
    tail = encoder()._ids("\nIs it right?", special=True)
    alike = next(n for n in range(len(empty)) if empty[n : n + len(tail)] == tail)
    assert common(first, second) >= alike


@SETTINGS
@given(hostile.map(lambda text: text * 9), hostile, st.integers(0, 400), st.booleans())
def test_what_fits_is_whole_and_what_does_not_is_cut_or_refused(
    response: str, question: str, limit: int, keep_ends: bool
) -> None:
    prompt = judge(question, response)
    size = len(encoder().encode(prompt))
    error: EngineError | None = None
    try:
        fitted, cut = encoder().fit(prompt, limit, keep_ends)
    except EngineError as caught:
        error = caught
    if error is not None:
        assert error.reason == "CONTEXT_TOO_LONG"
        assert size > limit
        return
    assert len(encoder().encode(fitted)) <= limit
    assert cut == (size > limit)
    if not cut:
        assert fitted == prompt
        return
    assert keep_ends
    head, note, tail = fitted.messages[1].pieces[3:6]
    assert response.startswith(head.text)
    assert response.endswith(tail.text)
    assert not head.trusted
    assert not tail.trusted
    missing = len(response) - len(head.text) - len(tail.text)
    assert note == PromptPiece(f"\n[... {missing} characters left out ...]\n")
    assert fitted.messages[1].pieces[1].text == question


@SETTINGS
@given(st.lists(hostile.filter(lambda t: t.strip("\r\n")), min_size=1, max_size=5), hostile)
def test_each_step_is_read_at_its_token(steps: list[str], question: str) -> None:
    asked = Prompt((PromptMessage("user", (PromptPiece(question, trusted=False),)),))
    ids, ends = encoder().encode_steps(asked, steps)
    assert len(ends) == len(steps)
    begin = ends[0] + 1 - len(encoder().encode_data(steps[0]))
    for step, end in zip(steps, ends, strict=True):
        assert encoder().decode(ids[begin : end + 1]) == step
        begin = end + 1
    ids, ends = encoder("<extra_0>").encode_steps(asked, steps)
    number = tokenizer().convert_tokens_to_ids("<extra_0>")  # type: ignore[attr-defined]
    assert [n for n, token in enumerate(ids) if token == number] == list(ends)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 200))
def test_level_is_the_greatest_cap_that_fits(lengths: list[int], room: int) -> None:
    lengths.sort()
    cap = level(lengths, room)
    assert sum(min(length, cap) for length in lengths) <= max(room, 0)
    if cap < lengths[-1]:
        assert sum(min(length, cap + 1) for length in lengths) > room


@pytest.mark.parametrize("kind", ["choose", "write", "rate"])
def test_the_answer_fits_behind_the_prompt(kind: str) -> None:
    prompt = judge("What?", "well " * 400)
    requests = {
        "choose": (Choose(prompt, ("A", "not at all"), keep_ends=True), 10),
        "write": (Write(prompt, 37, keep_ends=True), 37),
        "rate": (RateDialogue(prompt, keep_ends=True), 0),
    }
    request, answer = requests[kind]
    encoded = encoder().encode_request(request, 256)
    assert encoded.cut
    assert (
        200 - answer < len(encoded.ids) <= 256 - max((len(o) for o in encoded.options), default=0)
    )
    assert len(encoded.ids) <= 256 - (answer if kind == "write" else 0)


@dataclass
class Letters:
    """Stands for keys and values: the tokens themselves."""

    ids: tuple[int, ...]

    def part(self, start: int, end: int) -> Letters:
        return Letters(self.ids[start:end])


words = st.lists(st.integers(0, 2), min_size=1, max_size=12).map(tuple)


@settings(max_examples=200, deadline=None)
@given(st.lists(words, max_size=15), st.lists(words, max_size=6), st.integers(0, 30))
def test_the_tree_knows_what_was_stored_and_nothing_else(
    stored: list[tuple[int, ...]], asked: list[tuple[int, ...]], budget: int
) -> None:
    tree = PrefixTree(budget)
    for ids in stored:
        tree.store(ids, lambda start, end, ids=ids: Letters(ids[start:end]))
    assert tree.tokens == len({ids[:n] for ids in stored for n in range(1, len(ids) + 1)})
    for ids in [*asked, *stored]:
        match = tree.match(ids, len(ids))
        assert match.length == max((common(ids, other) for other in stored), default=0)
        kept = [node.kept.ids[:used] for node, used in match.path]  # type: ignore[attr-defined]
        assert tuple(token for part in kept for token in part) == ids[: match.length]
    known = {ids: tree.match(ids, len(ids)).length for ids in asked}
    tree.shrink(((ids, len(ids)) for ids in asked), extra=1000)
    for ids in asked:  # what waits is not forgotten, even beyond the budget
        assert tree.match(ids, len(ids)).length >= known[ids]
    tree.shrink((), extra=0)
    assert tree.tokens <= budget
