"""Laws of the text verifiers: range, reflexivity, symmetry, invariance, never an exception."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.kit.json_text import last_value, read_json
from assay.reward_server import border
from assay.reward_server.domain import JsonValue, Unjudgeable, Verifier
from assay.reward_server.registry import FAMILIES
from assay.reward_server.verifiers.text.bleu import bleu
from assay.reward_server.verifiers.text.choice import choice
from assay.reward_server.verifiers.text.chrf import chrf
from assay.reward_server.verifiers.text.distances import edit_distance, lcs_length
from assay.reward_server.verifiers.text.error_rate import error_rate
from assay.reward_server.verifiers.text.forms import Normalization, answer_words, squad_words
from assay.reward_server.verifiers.text.json_schema import json_schema
from assay.reward_server.verifiers.text.letters import named
from assay.reward_server.verifiers.text.match import match
from assay.reward_server.verifiers.text.ndcg import ndcg
from assay.reward_server.verifiers.text.pairwise import pairwise_accuracy
from assay.reward_server.verifiers.text.preference import preference
from assay.reward_server.verifiers.text.regex import regex
from assay.reward_server.verifiers.text.rouge import rouge
from assay.reward_server.verifiers.text.set_f1 import set_f1
from assay.reward_server.verifiers.text.token_f1 import token_f1
from text_verifier_support import item, judge

ALL = [verifier for verifier in FAMILIES["text"] if verifier.spec.name != "exact"]
SETS, NDCG, TOKEN_F1 = set_f1, ndcg, token_f1

PIECES = st.sampled_from(
    [
        *("A", "B", "C", "D", "a", "b", "or", "and", "the", "(A)", "B)", "\\boxed{", "}", "{", "["),
        *("]", '"', "1", "-5", "3.5", ",", ".", ">", ":", "\n", "```", "```json", "<think>"),
        *("</think>", "<answer>", "答案", "是", "####", "$", "\\text{", "[[A]]", "null", "\ud800"),
        *("\u0000", "\u200b", "é", "e\u0301", "½"),
    ]
)
HOSTILE = st.one_of(
    st.text(max_size=60),
    st.lists(PIECES, max_size=25).map("".join),
    st.lists(PIECES, max_size=25).map(" ".join),
)
PLAIN = st.lists(st.text("abcdeé北 1", min_size=1, max_size=6), min_size=1, max_size=8).map(
    " ".join
)
WORDS = st.lists(st.sampled_from(["red", "green", "blue", "one", "two"]), min_size=1, max_size=10)
NAMES = st.lists(
    st.text(string.ascii_lowercase, min_size=1, max_size=4), min_size=1, max_size=6, unique=True
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)

REFERENCES: dict[str, tuple[tuple[str, ...], JsonValue]] = {
    "ndcg": ((), {"a": 2, "b": 1}),
    "pairwise-accuracy": ((), [["a", "b"]]),
    "set-f1": ((), ["a", "b"]),
    "regex": ((), {"all_of": ["a"]}),
    "json-schema": ((), {"type": "object", "required": ["a"], "patternProperties": {"a+": {}}}),
    "preference": (("A",), None),
    "choice": (("B",), None),
}


@pytest.mark.slow
@pytest.mark.parametrize("verifier", ALL, ids=lambda verifier: verifier.spec.name)
@settings(max_examples=120, deadline=None)
@given(response=HOSTILE)
def test_every_response_gets_a_sound_judgement(verifier: Verifier, response: str) -> None:
    references, data = REFERENCES.get(verifier.spec.name, (("red fox",), None))
    judgement = judge(verifier, response, *references, data=data)
    assert 0.0 <= judgement.reward <= 1.0
    one = item(verifier, response, *references, data=data)
    assert border.judge(verifier, one) == border.judge(verifier, one)
    glanced = verifier.glance(one)
    assert glanced is None or glanced == judgement


@pytest.mark.parametrize("verifier", ALL, ids=lambda verifier: verifier.spec.name)
@settings(max_examples=60, deadline=None)
@given(reference=HOSTILE, response=HOSTILE)
def test_every_reference_is_used_or_a_fault(
    verifier: Verifier, reference: str, response: str
) -> None:
    try:
        judgement = judge(verifier, response, reference)
    except Unjudgeable:
        return
    assert 0.0 <= judgement.reward <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("verifier", ALL, ids=lambda verifier: verifier.spec.name)
@settings(max_examples=60, deadline=None)
@given(data=JSON, response=HOSTILE)
def test_every_data_is_used_or_a_fault(verifier: Verifier, data: JsonValue, response: str) -> None:
    try:
        judgement = judge(verifier, response, "x", data=data)
    except Unjudgeable:
        return
    assert 0.0 <= judgement.reward <= 1.0


SAME = [
    (match, {}),
    (match, {"punctuation": "remove", "articles": True, "numbers": True}),
    (match, {"where": "contains"}),
    (TOKEN_F1, {}),
    (TOKEN_F1, {"measure": "em", "tokens": "characters"}),
    (TOKEN_F1, {"measure": "subem"}),
    (rouge, {"tokens": "unicode"}),
    (rouge, {"tokens": "unicode", "rouge_type": "rougeLsum"}),
    (bleu, {}),
    (chrf, {}),
    (error_rate, {"unit": "character"}),
]


@pytest.mark.parametrize(("verifier", "parameters"), SAME)
@settings(max_examples=60, deadline=None)
@given(text=PLAIN)
def test_a_text_is_right_against_itself(
    verifier: Verifier, parameters: dict[str, object], text: str
) -> None:
    if text.strip():
        assert judge(verifier, text, text, **parameters).reward == 1.0


@settings(deadline=None)
@given(left=WORDS, right=WORDS)
def test_f1_and_common_subsequences_are_symmetric(left: list[str], right: list[str]) -> None:
    one, other = " ".join(left), " ".join(right)
    assert judge(TOKEN_F1, one, other).reward == judge(TOKEN_F1, other, one).reward
    there, back = judge(rouge, one, other), judge(rouge, other, one)
    assert there.reward == pytest.approx(back.reward, abs=1e-12)
    assert there.components[1].score == pytest.approx(back.components[2].score, abs=1e-12)
    assert lcs_length(left, right) == lcs_length(right, left)
    assert edit_distance(left, right) == edit_distance(right, left)
    longest = max(len(left), len(right))
    assert longest - lcs_length(left, right) <= edit_distance(left, right) <= longest


@settings(deadline=None)
@given(words=WORDS, right=WORDS, order=st.randoms(use_true_random=False))
def test_order_counts_for_none_of_the_sets(
    words: list[str], right: list[str], order: object
) -> None:
    shuffled = words[:]
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    reference: JsonValue = list(dict.fromkeys(right))
    there = judge(SETS, ", ".join(words), data=reference)
    assert there.reward == judge(SETS, ", ".join(shuffled), data=reference).reward
    assert there.reward == judge(SETS, json.dumps(shuffled), data=reference).reward
    answer, other = " ".join(words), " ".join(shuffled)
    assert judge(TOKEN_F1, answer, " ".join(right)).reward == (
        judge(TOKEN_F1, other, " ".join(right)).reward
    )


@settings(deadline=None)
@given(words=WORDS, right=WORDS, space=st.sampled_from(["  ", "\t", "\n ", "\r\n"]))
def test_white_space_does_not_count(words: list[str], right: list[str], space: str) -> None:
    reference = " ".join(right)
    for verifier in (
        TOKEN_F1,
        match,
        error_rate,
        rouge,
        chrf,
    ):
        plain = judge(verifier, " ".join(words), reference).reward
        assert judge(verifier, f"{space}{space.join(words)} ", reference).reward == plain


@given(text=HOSTILE)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    for form in (
        Normalization(),
        Normalization(case_sensitive=True, unicode="nfc", punctuation="keep"),
        Normalization(punctuation="remove", articles=True, numbers=True),
    ):
        once = form.apply(text)
        assert form.apply(once) == once
    words = squad_words(text)
    assert squad_words(" ".join(words)) == words
    for characters in (False, True):
        words = answer_words(text, characters=characters)
        assert answer_words(" ".join(words), characters=characters) == words or not squad_words(
            text
        )


@settings(deadline=None)
@given(
    grades=st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(0, 5), min_size=1)
)
def test_the_order_of_grades_is_the_best_ranking(grades: dict[str, int]) -> None:
    if not any(grades.values()):
        return
    best = sorted(grades, key=lambda name: -grades[name])
    data: JsonValue = dict(grades)
    assert judge(NDCG, json.dumps(best), data=data).reward == 1.0
    assert judge(NDCG, json.dumps(best[::-1]), data=data).reward <= 1.0


@settings(deadline=None)
@given(names=NAMES, order=st.randoms(use_true_random=False))
def test_an_order_and_its_reverse_share_the_preferences(names: list[str], order: object) -> None:
    if len(names) < 2:
        return
    ranks: JsonValue = {name: place for place, name in enumerate(names)}
    shuffled = names[:]
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    pairs = pairwise_accuracy
    there = judge(pairs, json.dumps(shuffled), data=ranks, form="order").reward
    back = judge(pairs, json.dumps(shuffled[::-1]), data=ranks, form="order").reward
    assert there + back == pytest.approx(1.0)


@settings(deadline=None)
@given(
    letter=st.sampled_from("ABCDE"),
    right=st.sampled_from("ABCDE"),
    style=st.sampled_from(
        [r"\boxed{%s}", "Answer: (%s)", "【答案】%s", "<answer>%s.</answer>", "#### %s"]
    ),
    prose=PLAIN,
)
def test_a_letter_is_right_exactly_if_it_is_the_key(
    letter: str, right: str, style: str, prose: str
) -> None:
    judgement = judge(choice, f"{prose}\n{style % letter}", right)
    assert judgement.reward == float(letter == right)
    hedge = judge(choice, f"{prose}\n{style % f'{letter} or {right}'}", right)
    assert hedge.verdict == ("correct" if letter == right else "hedged")


@given(text=HOSTILE)
def test_no_letter_is_made_up(text: str) -> None:
    found = named(text)
    if found is not None:
        assert set(found.letters) <= set(string.ascii_uppercase)
        assert len(set(found.letters)) == len(found.letters)


@settings(deadline=None)
@given(value=JSON, before=st.sampled_from(["", "so ", "{x} and [y} "]))
def test_json_is_found_as_it_was_written(value: JsonValue, before: str) -> None:
    text = json.dumps(value)
    assert read_json(text) == value
    if isinstance(value, dict | list):
        assert last_value(f"{before}{text} .") == text
    verdict = judge(json_schema, text, data={"const": value}, extract="whole").verdict
    assert verdict == "correct"


@settings(deadline=None)
@given(text=HOSTILE, pattern=st.text("ab.*+?()[]|^$\\d", max_size=8))
def test_a_pattern_and_its_negation_exclude_each_other(text: str, pattern: str) -> None:
    try:
        found = judge(regex, text, all_of=(pattern,)).reward
        absent = judge(regex, text, none_of=(pattern,)).reward
    except Unjudgeable:
        return
    assert found + absent == (1.0 if text.strip() else found)


@settings(deadline=None)
@given(text=HOSTILE)
def test_a_verdict_on_a_pair_has_one_meaning(text: str) -> None:
    rewards = [judge(preference, text, right).reward for right in ("A", "B", "tie")]
    assert sum(rewards) <= 1.0
