"""Laws of the verifiers of form and instructions: ranges, monotony, invariances, no exceptions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.reward_server.domain import (
    Candidate,
    JsonValue,
    Judgement,
    Unjudgeable,
    Verifier,
    VerifierItem,
)
from assay.reward_server.verifiers.form.length import (
    cosine,
    length,
    linear,
    soft_overlong,
    target,
    up_to,
)
from assay.reward_server.verifiers.form.repetition import (
    longest_repeat,
    numbered,
    repeated_share,
    repetition,
    units,
)
from assay.reward_server.verifiers.form.steps import reasoning_steps
from assay.reward_server.verifiers.form.structure import think_answer, well_formed
from assay.verifiers_extra.instructions.sentences import sentences
from assay.verifiers_extra.instructions.table import SLOW, read
from assay.verifiers_extra.instructions.verifier import forms, ifeval
from assay.verifiers_extra.instructions.words import sentence_tokens
from assay.verifiers_extra.languages.detection import load
from assay.verifiers_extra.languages.language import count_words, in_language
from assay.verifiers_extra.languages.scripts import LANGUAGES, OWN_SCRIPTS
from instructions_support import TABLE

FRAGMENTS = (
    *("<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "}", "{", "```", "```python"),
    *("Thought:", "Final Answer:", "Step 1:", "*", "**", "***", "******", "-", "\n", "\n\n", " "),
    *("[", "]", "<<", ">>", '"', "'", ".", "!", "?", ",", ":", "P.S.", "Mr.", "e.g.", "...", "1."),
    *("word", "Word", "WORD", "level", "日本", "です", "слово", "😀", "\ud7ff", "\x00", "\u2028"),
    *("Question 1.", "a) b", '{"a": 1}', "My answer is no.", "Zimbabwe", "$", "`", "\\alpha", "7"),
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join),
    st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(" ".join),
)
LENGTHS = st.integers(0, 100_000)
NUMBERS = st.lists(st.integers(0, 3), max_size=40)
VERIFIER = ifeval


@pytest.fixture(scope="module", autouse=True)
def _languages() -> None:
    load()


def judged(verifier: Verifier, text: str, document: JsonValue = None) -> Judgement:
    given_values = {"language": "ko"} if verifier.spec.name == "language" else {}
    parameters = verifier.spec.complete(given_values)
    item = VerifierItem(
        Candidate(text), parameters=parameters, data=document, response_token_count=7
    )
    judgement = verifier.judge(item)
    assert verifier.glance(item) in (None, judgement)
    return judgement


@pytest.mark.parametrize(
    "verifier",
    [in_language, length, reasoning_steps, repetition, well_formed],
    ids=lambda v: v.spec.name,
)
@given(text=TEXTS)
@settings(max_examples=120, deadline=None)
def test_any_text_is_judged_inside_the_range(verifier: Verifier, text: str) -> None:
    judgement = judged(verifier, text)
    spec = verifier.spec
    assert spec.min_reward <= judgement.reward <= spec.max_reward
    assert judgement.verdict in spec.verdicts
    assert all(math.isfinite(component.score) for component in judgement.components)
    assert "\n" not in judgement.explanation
    assert judged(verifier, text) == judgement


@given(text=TEXTS, structure=st.sampled_from(("boxed", "json", "react", "code-fence", "answer")))
def test_structures_never_raise_and_are_all_or_nothing(text: str, structure: str) -> None:
    verifier = well_formed
    item = VerifierItem(
        Candidate(text), parameters=verifier.spec.complete({"structure": structure})
    )
    judgement = verifier.judge(item)
    assert judgement.reward in (0.0, 1.0)
    assert (judgement.extracted_answer is None) >= (judgement.reward == 0.0)


@given(thought=TEXTS, answer=TEXTS, noise=TEXTS)
def test_think_answer_ignores_white_space_around_and_nothing_else(
    thought: str, answer: str, noise: str
) -> None:
    text = f"<think>{thought}</think>\n<answer>{answer}</answer>"
    form = think_answer(text)
    assert think_answer(f"\n {text} \n") == form
    if form.share:
        assert form.answer == answer.strip()
        assert bool(think_answer(text + noise).share) == (not noise.strip())


@given(length=LENGTHS, more=LENGTHS, most=st.integers(1, 50_000), cache=st.integers(1, 50_000))
def test_soft_overlong_falls_and_is_bounded(length: int, more: int, most: int, cache: int) -> None:
    cache = min(cache, most)
    short = soft_overlong(length, most, cache)
    assert -1.0 <= soft_overlong(length + more, most, cache) <= short <= 0.0
    assert (short == 0.0) == (length <= most - cache)
    assert (short == -1.0) == (length >= most)


@given(length=LENGTHS, more=LENGTHS, most=st.integers(1, 200_000))
def test_cosine_falls_for_right_answers_and_rises_for_wrong_ones(
    length: int, more: int, most: int
) -> None:
    def right(n: int) -> float:
        return cosine(n, most, (0.0, 1.0), exceed=-10.0)

    def wrong(n: int) -> float:
        return cosine(n, most, (0.0, -1.0), exceed=-10.0)

    assert right(length + more) <= right(length)
    if length + more < most:
        assert -1.0 <= wrong(length) <= wrong(length + more) <= 0.0 <= right(length) <= 1.0
        assert wrong(length) == pytest.approx(-right(length))


@given(length=LENGTHS, more=LENGTHS, most=st.integers(1, 50_000), scale=st.integers(1, 50_000))
def test_other_shapes_fall_away_from_their_best(
    length: int, more: int, most: int, scale: int
) -> None:
    assert 0.0 <= linear(length + more, most) <= linear(length, most) <= 1.0
    assert 0.0 <= up_to(length + more, most, scale) <= up_to(length, most, scale) <= 1.0
    assert 0.0 <= target(length, most, scale) <= up_to(length, most, scale)
    assert target(most, most, scale) == up_to(most, most, scale) == 1.0


@given(numbers=NUMBERS, n=st.integers(1, 6))
def test_repeated_share_is_that_of_a_plain_count(numbers: list[int], n: int) -> None:
    grams = [tuple(numbers[i : i + n]) for i in range(len(numbers) - n + 1)]
    expected = 1 - len(set(grams)) / len(grams) if grams else 0.0
    assert repeated_share(numbers, n) == expected
    assert repeated_share(numbers[::-1], n) == expected
    assert repeated_share(numbered([f"w{number}" for number in numbers]), n) == expected


@given(numbers=NUMBERS)
def test_longest_repeat_is_that_of_a_plain_search(numbers: list[int]) -> None:
    def repeats(length: int) -> bool:
        grams = [tuple(numbers[i : i + length]) for i in range(len(numbers) - length + 1)]
        return len(set(grams)) < len(grams)

    assert longest_repeat(numbers) == max(filter(repeats, range(1, len(numbers))), default=0)


@given(text=TEXTS, times=st.integers(2, 4))
def test_saying_it_again_is_no_better(text: str, times: int) -> None:
    once = repeated_share(numbered(units(text)), 2)
    assert repeated_share(numbered(units(f"{text} " * times)), 2) >= once - 1e-12


@given(text=TEXTS, language=st.sampled_from(sorted(OWN_SCRIPTS)))
def test_shares_of_scripts_add_up_to_at_most_all_words(text: str, language: str) -> None:
    right, words = count_words(text, language)
    assert 0 <= right <= words
    if language not in ("ja", "zh"):
        others = [count_words(text, other)[0] for other in OWN_SCRIPTS if other not in ("ja", "zh")]
        assert sum(others) <= words


@given(text=TEXTS, language=st.sampled_from(LANGUAGES))
@settings(max_examples=40, deadline=None)
def test_every_language_is_counted(text: str, language: str) -> None:
    right, words = count_words(text, language)
    assert 0 <= right <= words
    assert count_words(f"\n{text}\n", language)[1] == words


@given(text=TEXTS)
def test_sentences_keep_every_character_in_order(text: str) -> None:
    parts = sentences(text)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part and part == part.strip() for part in parts)
    assert sentences(f" {text}\n") == parts


@given(text=TEXTS)
def test_tokens_hold_no_white_space(text: str) -> None:
    assert all(token and not any(map(str.isspace, token)) for token in sentence_tokens(text))


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
@given(text=TEXTS)
@settings(max_examples=15, deadline=None)
def test_instructions_never_raise_and_loose_is_looser(
    row: tuple[str, dict[str, JsonValue], str, str], text: str
) -> None:
    document: JsonValue = {"instruction_id_list": [row[0]], "kwargs": [row[1]]}
    (instruction,) = read(document)
    strict = instruction.follows(forms(text, "strict"))
    assert instruction.follows(forms(text, "strict")) == strict
    if row[0] not in SLOW:
        assert instruction.follows(forms(text, "loose")) >= strict


JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    document=JSON
    | st.fixed_dictionaries(
        {
            "instruction_id_list": st.lists(st.sampled_from([row[0] for row in TABLE]), max_size=3),
            "kwargs": st.lists(
                st.none()
                | st.dictionaries(
                    st.sampled_from(["N", "keywords", "relation", "num_words"]), JSON
                ),
                max_size=3,
            ),
        }
    )
)
@settings(deadline=None)
def test_any_reference_is_read_or_unusable(document: JsonValue) -> None:
    try:
        reward = judged(VERIFIER, "Some words.", document).reward
    except Unjudgeable as error:
        fault = error
    else:
        assert 0.0 <= reward <= 1.0
        return
    assert fault.reason == "UNUSABLE_REFERENCE"
    assert len(fault.message) < 4000
