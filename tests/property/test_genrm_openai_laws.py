"""What must hold of what goes to a server and comes back, whatever the texts and numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.genrm.engines.base import EngineError, Prompt, PromptMessage, PromptPiece
from assay.genrm.engines.openai import answers, texts
from assay.genrm.engines.options import branches, totals
from assay.genrm.engines.steps import chance

PATTERN = texts.lookalikes(["<|eom|>", "<|s"])
SHARDS = st.sampled_from(
    ["<|", "|>", "<|im_end|>", "im_end", "<", ">", "</s>", "[INST]", "[/", "INST]", "<<SYS>>", " ",
     "<extra_0>", "a", "\n", "<\uff5cend\uff5c>", "<start_of_turn>", "<think>", "<|s"]
)  # fmt: skip
PIECES = st.lists(
    st.builds(PromptPiece, st.lists(SHARDS, max_size=8).map("".join), st.booleans(), st.booleans()),
    max_size=6,
).map(tuple)


@given(PIECES)
def test_no_special_token_holds_a_character_of_data(pieces):
    safe = texts.harmless(pieces, PATTERN)
    text = "".join(piece.text for piece in safe)
    trusted = [piece.trusted for piece in safe for _ in piece.text]
    for match in PATTERN.finditer(text):
        assert all(trusted[match.start() : match.end()]), match[0]


@given(PIECES)
def test_breaking_up_adds_spaces_and_nothing_else(pieces):
    safe = texts.harmless(pieces, PATTERN)
    assert [(p.trusted, p.cuttable) for p in safe] == [(p.trusted, p.cuttable) for p in pieces]
    for before, after in zip(pieces, safe, strict=True):
        assert after.text.replace(" ", "") == before.text.replace(" ", "")
        assert len(after.text) >= len(before.text)
    assert texts.harmless(safe, PATTERN) == safe


@given(st.lists(SHARDS, max_size=40).map("".join), st.integers(1, 30))
def test_windows_find_what_one_search_finds(text, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_WINDOW_CHARS", size)
        patch.setattr(texts, "_OVERLAP_CHARS", 90)
        assert list(texts.found(PATTERN, text)) == [m.span() for m in PATTERN.finditer(text)]


@given(PIECES)
def test_a_prompt_that_is_settled_says_the_same(pieces):
    prompt = Prompt((PromptMessage("user", pieces),), "Verdict:")
    settled = texts.settled(prompt, PATTERN)
    assert texts.chat(settled, PATTERN) == texts.chat(prompt, PATTERN)
    assert [one.cuttable for one in settled.messages[0].pieces] == [p.cuttable for p in pieces]


@given(st.lists(SHARDS, max_size=12).map("".join))
def test_our_own_words_stay_as_they_are(text):
    assert texts.harmless((PromptPiece(text),), PATTERN) == (PromptPiece(text),)


@given(PIECES, st.integers(0, 60))
def test_cutting_keeps_ends_and_leaves_the_rest(pieces, chars):
    prompt = Prompt(
        (PromptMessage("user", pieces),), "Verdict:", (PromptPiece("so far", trusted=False),)
    )
    kept = texts.keep(prompt, chars)
    assert (kept.prefill, kept.lead) == (prompt.prefill, prompt.lead)
    whole = sum(len(p.text) for p in pieces if p.cuttable)
    if chars >= whole:
        assert kept == prompt
    parts = iter(kept.messages[0].pieces)
    total = 0
    for piece in pieces:
        part = next(parts)
        if piece.cuttable and part != piece:
            assert next(parts).trusted
            tail = next(parts)
            total += len(part.text) + len(tail.text)
            assert piece.text.startswith(part.text)
            assert piece.text.endswith(tail.text)
        else:
            total += len(piece.text) * piece.cuttable
            assert part == piece
    assert next(parts, None) is None
    assert total <= max(chars, 0) or kept == prompt


def _or_error(read):
    try:
        return read()
    except EngineError as error:
        return error


OPTIONS = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple),
    min_size=1, max_size=6, unique=True,
)  # fmt: skip


@given(OPTIONS)
def test_a_tree_of_options_asks_each_question_once_and_enough(options):
    asked = branches(options)
    score = {
        before: {t: -1.0 - t - len(before) for t in tokens} for before, tokens in asked.items()
    }
    for tokens in asked.values():
        assert len(set(tokens)) == len(tokens)
    expected = [sum(-1.0 - t - i for i, t in enumerate(option)) for option in options]
    assert totals(options, score) == pytest.approx(tuple(expected))
    assert sum(map(len, asked.values())) <= sum(map(len, options))


@given(st.lists(st.floats(-30, 0), min_size=4, max_size=40), st.integers(2, 10), st.integers(2, 3))
def test_a_bound_moves_no_normalised_probability(weights, listed, wanted):
    total = math.log(sum(map(math.exp, weights)))
    truth = {i: w - total for i, w in enumerate(weights)}
    top = dict(sorted(truth.items(), key=lambda pair: -pair[1])[:listed])
    names = list(range(wanted))
    listed_ones = {name: top[name] for name in names if name in top}
    found = _or_error(lambda: answers.complete(listed_ones, names, tuple(top.values())))
    if isinstance(found, EngineError):
        assert found.reason == "ENGINE_FAILED"
        return
    said, true = ({n: math.exp(table[n]) for n in names} for table in (found, truth))
    for name in names:
        error = said[name] / sum(said.values()) - true[name] / sum(true.values())
        assert abs(error) <= answers.NEGLIGIBLE


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.sampled_from(["", "token_id:3", "a"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "logprobs", "content", "top_logprobs", "token", "logprob", "message",
             "text", "usage", "data", "probs", "finish_reason", "a", "token_id:3"]
        ),
        inner, max_size=4,
    ),
    max_leaves=25,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["choices", "usage", "data"]), JSON))
def test_any_answer_is_a_number_or_an_error(answer):
    for read in (
        answers.top_of_chat,
        answers.top_of_completion,
        lambda a: answers.tokens_of(answers.top_of_completion(a)),
        lambda a: answers.written(a, ("x",), chat=True, cut=False),
        lambda a: answers.written(a, ("x",), chat=False, cut=False),
        lambda a: answers.row(answers.data(a).get("probs")),
        answers.counts,
    ):
        found = _or_error(lambda read=read: read(answer))
        if isinstance(found, EngineError):
            assert found.reason in {"ENGINE_FAILED", "SCORE_NOT_FINITE"}
        elif isinstance(found, dict):
            assert all(value <= 0 for value in found.values())


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4))
def test_chances_are_probabilities(logits):
    found = [chance(logits, label) for label in range(len(logits))]
    assert all(0 <= value <= 1 for value in found)
    if len(logits) > 1:
        assert sum(found) == pytest.approx(1)


@given(st.text("ab|", max_size=20), st.lists(st.text("ab|", min_size=1, max_size=3), max_size=3))
def test_what_is_returned_ends_before_the_first_stop(text, stops):
    kept = answers.before(text, stops)
    assert text.startswith(kept)
    assert not any(stop in kept for stop in stops)
