"""Instructions of IFEval, IFBench and IF-RLVR: a golden table of our texts, and bad references.

Every expected value follows from the definition of the instruction in its reference implementation
(google-research instruction_following_eval; allenai IFBench and open-instruct), beside which all of
them were run.
"""

from __future__ import annotations

import pytest

from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Candidate,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
)
from assay.verifiers_extra.instructions.sentences import plain_sentences, sentences
from assay.verifiers_extra.instructions.table import IFBENCH, IFEVAL, IFRLVR, INSTRUCTIONS
from assay.verifiers_extra.instructions.verbs import is_verb
from assay.verifiers_extra.instructions.verifier import forms, ifeval
from assay.verifiers_extra.instructions.words import holds_word, sentence_tokens
from instructions_support import TABLE, Row

VERIFIER = ifeval


def judged(response: str, document: JsonValue, **parameters: str | bool) -> Judgement:
    """What the verifier makes of a response."""
    complete = VERIFIER.spec.complete(parameters)
    item = VerifierItem(Candidate(response), parameters=complete, data=document)
    judgement = VERIFIER.judge(item)
    assert VERIFIER.glance(item) in (None, judgement)
    return judgement


def one(identity: JsonValue, arguments: JsonValue) -> JsonValue:
    return {"instruction_id_list": [identity], "kwargs": [arguments]}


def test_the_table_covers_every_instruction() -> None:
    assert {row[0] for row in TABLE} == set(INSTRUCTIONS)
    assert (len(IFEVAL), len(IFBENCH), len(IFRLVR), len(INSTRUCTIONS)) == (25, 58, 29, 112)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
def test_followed_and_not(row: Row) -> None:
    identity, arguments, good, bad = row
    assert judged(good, one(identity, arguments)).verdict == "followed"
    assert judged(bad, one(identity, arguments)).verdict == "not-followed"
    assert judged(" \n", one(identity, arguments)).reward == 0.0  # blank follows nothing


@pytest.mark.parametrize("row", [row for row in TABLE if row[1]], ids=lambda row: str(row[0]))
def test_every_argument_is_needed_and_checked(row: Row) -> None:
    identity, arguments, good, _ = row
    for name in arguments:
        for value in (None, [], {}, True, -1, ""):
            with pytest.raises(Unjudgeable, match=name) as caught:
                judged(good, one(identity, {**arguments, name: value}))
            assert caught.value.reason == UNUSABLE_REFERENCE


def test_components_name_the_instructions_and_the_explanation_those_not_followed() -> None:
    document: JsonValue = {
        "instruction_id_list": ["punctuation:no_comma", "punctuation:no_comma", "format:emoji"],
        "kwargs": [{}, None, {"unused": None}],
    }
    judgement = judged("plain words", document, scoring="fraction")
    assert judgement.reward == pytest.approx(2 / 3)
    assert judgement.verdict == "partly-followed"
    assert [(c.name, c.score, c.weight) for c in judgement.components] == [
        ("followed", 2 / 3, 1.0),
        ("punctuation-no-comma", 1.0, 0.0),
        ("punctuation-no-comma-2", 1.0, 0.0),
        ("format-emoji", 0.0, 0.0),
    ]
    assert judgement.explanation == "not followed: format-emoji"
    assert judged("plain words", document).reward == 0.0


def test_loose_tries_eight_forms() -> None:
    assert set(forms("*a*\nb\nc", "loose")) == {
        *("*a*\nb\nc", "b\nc", "*a*\nb", "b", "a\nb\nc", "b\nc", "a\nb", "b")
    }
    document = one("startend:end_checker", {"end_phrase": "done"})
    assert judged("*done*\nBye!", document).reward == 0.0
    assert judged("*done*\nBye!", document, mode="loose").reward == 1.0


def test_the_thought_may_be_left_out() -> None:
    document = one("punctuation:no_comma", {})
    assert judged("<think>a, b</think>c", document).reward == 0.0
    assert judged("<think>a, b</think>c", document, skip_thought=True).reward == 1.0
    assert judged("<think>a b</think>", document, skip_thought=True).reward == 0.0
    first = one("first_word:first_word_answer", {"first_word": "so"})
    assert judged("<think>a</think>\n<answer>So be it</answer>", first).reward == 0.0
    assert judged("<think>a</think>\n<answer>So be it</answer>", first, skip_thought=True).reward


ROWS_OF_IF_RLVR = (
    (
        "[{'instruction_id': ['punctuation:no_comma', 'last_word:last_word_answer'], "
        "'kwargs': [None, {'last_word': 'comma'}]}]"
    ),
    '[{"instruction_id": ["punctuation:no_comma"], "kwargs": [null]}]',
    '["{\\"instruction_id\\": [\\"punctuation:no_comma\\"], \\"kwargs\\": [null]}"]',
)


@pytest.mark.parametrize("text", ROWS_OF_IF_RLVR)
def test_references_that_are_texts(text: str) -> None:
    complete = VERIFIER.spec.complete({})
    item = VerifierItem(Candidate("no comma"), references=(text,), parameters=complete)
    assert VERIFIER.judge(item).verdict == "followed"


@pytest.mark.parametrize(
    "text",
    [
        "punctuation:no_comma",
        "[{'instruction_id': {'punctuation:no_comma'}, 'kwargs': [None]}]",
        "[b'x']",
        "[open('x')]",
        "[{'instruction_id': [1+2j]}]",
        "[" * 5_000,
        "-" * 100_000 + "1",
        '["{"]',
        "",
    ],
)
def test_texts_that_are_no_references(text: str) -> None:
    complete = VERIFIER.spec.complete({})
    item = VerifierItem(Candidate("no comma"), references=(text,), parameters=complete)
    with pytest.raises(Unjudgeable) as caught:
        VERIFIER.judge(item)
    assert caught.value.reason == UNUSABLE_REFERENCE


@pytest.mark.parametrize(
    "document",
    [
        {"instruction_id": ["punctuation:no_comma"], "kwargs": [None]},
        [{"instruction_id": ["punctuation:no_comma"], "kwargs": [{}]}],
        {"instruction_id_list": ["punctuation:no_comma"]},
        {"key": 7, "prompt": "p", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
    ],
)
def test_shapes_of_references(document: JsonValue) -> None:
    assert judged("no comma", document).verdict == "followed"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "needs data"),
        (7, "object"),
        ([], "object"),
        ({}, "1 to 100"),
        ({"instruction_id_list": []}, "1 to 100"),
        ({"instruction_id_list": ["punctuation:no_comma"] * 101}, "1 to 100"),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}, ""),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}, {}]}, "as many"),
        (one("punctuation:no_coma", {}), "known are: change_case:capital_word_frequency"),
        (one(3, {}), "unknown instruction"),
        (one("punctuation:no_comma", [1]), "object or null"),
        (one("punctuation:no_comma", {"x": 1}), "takes no argument x; it takes: none"),
        (one("count:numbers", {"N": 1.5}), "whole number"),
        (one("count:numbers", {"N": 10**9}), "1000000"),
        (one("keywords:existence", {"keywords": ["x" * 201]}), "200 characters"),
        (one("language:response_language", {"language": "French"}), "code"),
    ],
)
def test_unusable_references(document: JsonValue, message: str) -> None:
    if document == {"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}:
        assert judged("x", document).reward == 1.0  # as good as absent
        return
    with pytest.raises(Unjudgeable, match=message) as caught:
        judged("x", document)
    assert caught.value.reason == UNUSABLE_REFERENCE


def test_keywords_are_no_patterns() -> None:
    assert judged("abc", one("keywords:existence", {"keywords": ["a.c"]})).reward == 0.0
    assert judged("A.C", one("keywords:existence", {"keywords": ["a.c"]})).reward == 1.0


SENTENCES = (
    ("", []),
    ("  One. Two!  Three?\n", ["One.", "Two!", "Three?"]),
    ("Mr. Bean met Dr. No.", ["Mr. Bean met Dr. No."]),
    ("The U.S. economy grew. It did.", ["The U.S. economy grew.", "It did."]),
    ("He lives in the U.S. The rest left.", ["He lives in the U.S.", "The rest left."]),
    ("J. S. Bach wrote it.", ["J. S. Bach wrote it."]),
    ("It is 3.5 m. long", ["It is 3.5 m. long"]),
    ("1. Apples\n2. Pears", ["1.", "Apples\n2.", "Pears"]),
    ("Wait... what? Yes... The end.", ["Wait... what?", "Yes...", "The end."]),
    ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
    ("(It is so.) And so on", ["(It is so.)", "And so on"]),
    ("Fruit, e.g. apples.", ["Fruit, e.g.", "apples."]),  # as Punkt has it
    ("No end", ["No end"]),
)


@pytest.mark.parametrize(("text", "expected"), SENTENCES)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


PLAIN = (
    ("", []),
    (" One. Two!\nThree? ", ["One.", "Two!", "Three?"]),
    ("Dr. No met Mr. Bean. So?", ["Dr. No met Mr. Bean.", "So?"]),
    ("It is 3.5 at a.com now.", ["It is 3.5 at a.com now."]),
    ("Wait... what?", ["Wait...", "what?"]),
    ("In the U.S. They left.", ["In the U.S.", "They left."]),
    ("At Acme Inc. and J. R. Tolkien", ["At Acme Inc. and J. R. Tolkien"]),
    ('He said "Go." Then “No.”', ['He said "Go".', "Then “No”."]),
    ("What?! No end", ["What?", "!", "No end"]),
    ("a<stop>b<prd>c. d", ["a<stop>b<prd>c.", "d"]),  # marks of the original are text here
)


@pytest.mark.parametrize(("text", "expected"), PLAIN)
def test_plain_sentences(text: str, expected: list[str]) -> None:
    assert plain_sentences(text) == expected


def test_a_phrase_is_repeated_with_one_word_changed() -> None:
    def followed(response: str, times: int = 1) -> bool:
        phrase: JsonValue = {"phrase": "Time flies when having fun", "small_n": times}
        return judged(response, one("copy:repeat_phrase", phrase)).reward == 1.0

    assert followed("x Time flies if having fun. x")
    assert not followed("Time flies when having fun")  # none changed
    assert not followed("Time crawls if having fun")  # two changed
    assert not followed("Time flies when fun")  # one is missing
    assert not followed("Time flies\nif having fun")  # over the end of a line
    assert followed("Time flies if having fun Time is when having fun", 2)
    assert not followed("Time flies if having fun Time flies when having fun", 2)


@pytest.mark.parametrize("start", [0, 3])
def test_a_span_may_start_anywhere_and_is_never_blank(start: int) -> None:
    arguments: JsonValue = {"prompt_to_repeat": "Say it", "n_start": start, "n_end": start + 1}
    with_start = one("new:copy_span_idx", arguments)
    if start == 3:
        with pytest.raises(Unjudgeable, match="leaves nothing"):
            judged("s", with_start)
        return
    assert judged("s", with_start).reward == 1.0


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I can't go, Mr. Bean.", ["I", "ca", "n't", "go", ",", "Mr.", "Bean", "."]),
        ("It's $3.88 (or 1,000)", ["It", "'s", "$", "3.88", "(", "or", "1,000", ")"]),
        ('"Cannot" — he\'ll', ["``", "Can", "not", "''", "—", "he", "'ll"]),
        ("", []),
    ],
)
def test_tokens(sentence: str, expected: list[str]) -> None:
    assert sentence_tokens(sentence) == expected


def test_words_have_boundaries() -> None:
    assert holds_word("The sun, too", "SUN")
    assert not holds_word("sunny unsun sun_", "sun")
    assert holds_word("sunny sun", "sun")
    assert not holds_word("a C++ b", "C++")  # no boundary after a plus, as in a pattern
    assert not holds_word("x", "")


def test_verbs() -> None:
    assert all(map(is_verb, ("Write", "is", "running", "JUMPED")))
    assert not any(map(is_verb, ("Nothing", "the", "red", "dog", "")))
