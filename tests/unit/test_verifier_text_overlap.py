"""`rouge`, `bleu`, `chrf` and `error-rate`: published values, and the packages called directly."""

from __future__ import annotations

import itertools
import random

import pytest

from assay.reward_server.domain import UNUSABLE_REFERENCE, Unjudgeable, Verifier
from assay.reward_server.verifiers.text.bleu import bleu
from assay.reward_server.verifiers.text.chrf import chrf
from assay.reward_server.verifiers.text.distances import edit_distance, lcs_length
from assay.reward_server.verifiers.text.error_rate import error_rate
from assay.reward_server.verifiers.text.overlap import MAX_CHARS
from assay.reward_server.verifiers.text.rouge import rouge
from text_verifier_support import judge

ROUGE, BLEU, CHRF, RATE = rouge, bleu, chrf, error_rate
FOX = "The quick brown fox jumps over the lazy dog"
WORDS = ["the", "a", "fox", "dog", "red", "one", "two", "testing", "tests,", "Running", "3.5", "!"]


def texts(count: int, seed: int) -> list[tuple[str, str]]:
    """Pairs of random texts over a few words, some with several lines."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        pair = [
            "".join(
                word + draw.choice(("  ", " ", " ", "\n"))
                for word in draw.choices(WORDS, k=draw.randint(1, 30))
            )
            for _ in range(2)
        ]
        pairs.append((pair[0], pair[1]))
    return pairs


# rouge_scorer_test.py of rouge-score 0.1.2, whose values are those of ROUGE-1.5.5 and of section
# 3.2 of Lin 2004: type, response, reference, then precision, recall and F-measure.
PUBLISHED_ROUGE = [
    ("rouge1", "testing", "testing one two", (1, 1 / 3, 1 / 2)),
    ("rouge2", "testing one", "testing one two", (1, 1 / 2, 2 / 3)),
    ("rougeL", "testing one", "testing one two", (1, 2 / 3, 4 / 5)),
    ("rougeL", "testing two", "testing one two", (1, 2 / 3, 4 / 5)),
    ("rougeL", "", "testing one two", (0, 0, 0)),
    ("rougeLsum", "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", (0.4, 0.8, 0.53333)),
    ("rougeLsum", "/", "w1 w2 w3 w4 w5", (0, 0, 0)),
    (
        "rougeLsum",
        "Second sentence.\nFirst Sentence.",
        "First sentence.\nSecond Sentence.",
        (1, 1, 1),
    ),
    # lighteval, tests/unit/metrics/test_cases/rougeL.json at 3fd15266
    ("rougeL", "The quick brown fox", FOX, (1, 4 / 9, 0.615)),
]


@pytest.mark.parametrize(("kind", "response", "reference", "values"), PUBLISHED_ROUGE)
def test_published_values_of_rouge(
    kind: str, response: str, reference: str, values: tuple[float, float, float]
) -> None:
    for measure, value in zip(("precision", "recall", "fmeasure"), values, strict=True):
        judgement = judge(ROUGE, response, reference, rouge_type=kind, measure=measure)
        assert judgement.reward == pytest.approx(value, abs=5e-4)


def test_the_reference_with_the_best_f_measure_counts() -> None:
    """testRougeAllMulti of rouge_scorer_test.py."""
    for kind, value in (("rouge1", 1.0), ("rouge2", 0.0), ("rougeL", 0.5)):
        judgement = judge(ROUGE, "text first", "first text", "first something", rouge_type=kind)
        assert judgement.reward == pytest.approx(value)


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL", "rougeLsum"])
@pytest.mark.parametrize("stemmer", [False, True])
def test_rouge_is_what_the_package_says(kind: str, *, stemmer: bool) -> None:
    from rouge_score import rouge_scorer

    scorer = rouge_scorer.RougeScorer([kind], use_stemmer=stemmer)
    for response, reference in texts(40, 1):
        if not any(char.isalnum() for char in reference):
            continue
        other = reference[::-1] + "dog"
        expected = scorer.score_multi([reference, other], response)[kind]
        judgement = judge(ROUGE, response, reference, other, rouge_type=kind, stemmer=stemmer)
        assert judgement.reward == pytest.approx(expected.fmeasure, abs=1e-12)
        others = {part.name: part.score for part in judgement.components}
        assert others["precision"] == pytest.approx(expected.precision, abs=1e-12)
        assert others["recall"] == pytest.approx(expected.recall, abs=1e-12)


def test_rouge_for_other_scripts() -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(ROUGE, "北京", "北京")
    assert caught.value.reason == UNUSABLE_REFERENCE
    assert judge(ROUGE, "北京市", "北京", tokens="unicode").reward == pytest.approx(4 / 5)
    assert judge(ROUGE, "Привет, мир", "привет мир", tokens="unicode").reward == 1.0


def test_summaries_over_the_bound_are_overlong() -> None:
    long = "one two " * 1_500
    assert judge(ROUGE, long, long, rouge_type="rougeLsum").verdict == "overlong"
    assert judge(ROUGE, long, long, rouge_type="rougeL").verdict == "correct"


# lighteval, tests/unit/metrics/test_cases/bleu_1.json at 3fd15266, tolerance there 0.1; its exact
# value, with the brevity penalty exp(1 - 4/3), is 0.7165.
@pytest.mark.parametrize(
    ("response", "reference", "value"),
    [
        ("Bonjour le monde", "Bonjour le monde", 1.0),
        ("Le chat dort", "Le chat dort", 1.0),
        ("Le renard rapide", "Le renard brun rapide", 0.71653),
        ("Il pleut", "Le soleil est brillant", 0.0),
        ("Le agréable temps est", "Le temps est agréable", 1.0),
    ],
)
def test_published_values_of_bleu_1(response: str, reference: str, value: float) -> None:
    assert judge(BLEU, response, reference, max_order=1).reward == pytest.approx(value, abs=1e-5)


def test_bleu_of_the_papers_example() -> None:
    """Papineni et al. 2002, section 2.1: clipped unigram precision 2/7."""
    judgement = judge(
        BLEU,
        "the the the the the the the",
        "The cat is on the mat",
        "There is a cat on the mat",
        max_order=1,
        smooth="none",
        lowercase=True,
    )
    assert judgement.reward == pytest.approx(2 / 7)


@pytest.mark.parametrize("tokenize", ["13a", "intl", "zh", "char", "none"])
@pytest.mark.parametrize("smooth", ["exp", "floor", "add-k", "none"])
def test_bleu_is_what_the_package_says(tokenize: str, smooth: str) -> None:
    from sacrebleu.metrics.bleu import BLEU as PACKAGE

    metric = PACKAGE(tokenize=tokenize, smooth_method=smooth, effective_order=True)
    pairs = [*texts(20, 2), ("北京 is big.", "北京市 is big!")]
    for response, reference in pairs:
        expected = metric.sentence_score(response, [reference, "a red fox"]).score / 100
        judgement = judge(BLEU, response, reference, "a red fox", tokenize=tokenize, smooth=smooth)
        assert judgement.reward == pytest.approx(min(expected, 1.0), abs=1e-12)


def test_no_response_stays_in_the_tokenizers_caches() -> None:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

    judge(BLEU, FOX, FOX)
    for tokenizer in (Tokenizer13a, TokenizerRegexp):
        assert tokenizer.__call__.cache_info().currsize == 0  # type: ignore[attr-defined]


# lighteval, tests/unit/metrics/test_cases/chrf.json at 3fd15266 (0 to 100, corpora of equal pairs).
def test_published_values_of_chrf() -> None:
    for text in ("Bonjour le monde", "Buenos días", "Danke schön"):
        assert judge(CHRF, text, text).reward == 1.0


@pytest.mark.parametrize("word_order", [0, 2])
@pytest.mark.parametrize("eps_smoothing", [False, True])
def test_chrf_is_what_the_package_says(word_order: int, *, eps_smoothing: bool) -> None:
    from sacrebleu.metrics.chrf import CHRF as PACKAGE

    metric = PACKAGE(word_order=word_order, eps_smoothing=eps_smoothing)
    for response, reference in [*texts(20, 3), ("北京", "北京市")]:
        expected = metric.sentence_score(response, [reference, "a red fox"]).score / 100
        judgement = judge(
            CHRF,
            response,
            reference,
            "a red fox",
            word_order=word_order,
            eps_smoothing=eps_smoothing,
        )
        assert judgement.reward == pytest.approx(expected, abs=1e-12)


# Worked by hand; "kitten" and "sitting" are the standing example of Levenshtein's distance (3).
@pytest.mark.parametrize(
    ("response", "reference", "parameters", "score"),
    [
        ("sitting", "kitten", {"unit": "character"}, 1 - 3 / 6),
        ("the cat sat", "The cat sat!", {}, 1.0),
        ("the cat sat", "The cat sat!", {"normalise": False}, 1 - 2 / 3),
        ("the cat", "the cat sat", {}, 2 / 3),
        ("the black cat sat", "the cat sat", {}, 2 / 3),
        ("x y z u v w q", "the cat sat", {}, 0.0),
        ("北京市", "北京", {"unit": "character"}, 0.5),
    ],
)
def test_error_rates(
    response: str, reference: str, parameters: dict[str, object], score: float
) -> None:
    assert judge(RATE, response, reference, **parameters).reward == pytest.approx(score)


def test_a_reference_of_marks_has_no_error_rate() -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(RATE, "x", "?!...", normalise=True)
    assert caught.value.reason == UNUSABLE_REFERENCE


def test_distances_agree_with_tables() -> None:
    draw = random.Random(4)
    for _ in range(300):
        left = draw.choices("abcd", k=draw.randint(0, 40))
        right = draw.choices("abcd", k=draw.randint(0, 40))
        assert lcs_length(left, right) == _lcs_table(left, right)
        assert edit_distance(left, right) == _edit_table(left, right)


def test_the_standing_examples_of_distances() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == edit_distance("abc", "") == 3
    assert lcs_length("ABCBDAB", "BDCABA") == 4  # Cormen et al., Introduction to Algorithms, 15.4
    many = [str(number) for number in range(1_000)]
    assert lcs_length(many, many[::2]) == 500
    assert edit_distance(many, many[::2]) == 500


def _lcs_table(left: list[str], right: list[str]) -> int:
    row = [0] * (len(right) + 1)
    for one in left:
        before = row[:]
        for place, other in enumerate(right):
            row[place + 1] = (
                before[place] + 1 if one == other else max(before[place + 1], row[place])
            )
    return row[-1]


def _edit_table(left: list[str], right: list[str]) -> int:
    row = list(range(len(right) + 1))
    for number, one in enumerate(left, start=1):
        before, row = row, [number]
        for place, other in enumerate(right):
            row.append(min(before[place] + (one != other), before[place + 1] + 1, row[place] + 1))
    return row[-1]


@pytest.mark.parametrize("verifier", [ROUGE, BLEU, CHRF], ids=lambda one: one.spec.name)
def test_bounds_of_overlap(verifier: Verifier) -> None:
    assert judge(verifier, "x" * (MAX_CHARS + 1), FOX).verdict == "overlong"
    assert judge(verifier, "", FOX).reward == 0.0
    assert judge(verifier, f"<think>{FOX}", FOX).reward == 0.0
    assert judge(verifier, f"<think>x</think>{FOX}", FOX).reward == 1.0
    for reference in ("", " ", "x" * (MAX_CHARS + 1)):
        with pytest.raises(Unjudgeable) as caught:
            judge(verifier, FOX, reference)
        assert caught.value.reason == UNUSABLE_REFERENCE


@pytest.mark.timeout(30)
def test_the_largest_texts_take_seconds() -> None:
    """Worst cases of each, in turn: one repeated character, and all different words."""
    for text in ("a" * MAX_CHARS, " ".join(map(str, range(17_000)))):
        for verifier in (BLEU, CHRF):
            assert judge(verifier, text, text).reward == 1.0
        for kind in ("rouge1", "rouge2", "rougeL"):
            judge(ROUGE, text, text, rouge_type=kind)
    text = " ".join(itertools.islice(itertools.cycle(("a", "b", "c")), 20_000))
    assert judge(RATE, text[::-1], text).reward == pytest.approx(1 / 3, abs=1e-3)
