"""Long context: `similarity` (MRCR), `set-f1` on graph walks, `match` on needles in a haystack."""

from __future__ import annotations

import time
from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.reward_server.domain import Candidate, Judgement, Unjudgeable, Verifier, VerifierItem
from assay.reward_server.verifiers.text.match import match
from assay.reward_server.verifiers.text.set_f1 import set_f1
from assay.reward_server.verifiers.text.similarity import ratio, similarity


def judge(verifier: Verifier, response: str, reference: Any, **parameters: Any) -> Judgement:
    complete = verifier.spec.complete(parameters)
    if isinstance(reference, tuple):
        item = VerifierItem(Candidate(response), references=reference, parameters=complete)
    else:
        item = VerifierItem(Candidate(response), data=reference, parameters=complete)
    return verifier.judge(item)


# --- MRCR: the grading function of the data set's card --------------------------------------------


@settings(deadline=None)
@given(
    st.text(alphabet="ab c\u4e2d", max_size=300),
    st.text(alphabet="abd c", max_size=300),
)
def test_the_ratio_is_that_of_difflib(left: str, right: str) -> None:
    assert ratio(left, right) == SequenceMatcher(None, left, right).ratio()


@given(st.text(max_size=80), st.text(max_size=80))
def test_work_that_is_cut_short_gives_a_lower_bound(left: str, right: str) -> None:
    whole = ratio(left, right)
    bounds = [ratio(left, right, steps) for steps in (0, 10, 100, 1_000)]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= whole


@pytest.mark.parametrize(
    ("response", "reward"),
    [
        ("k3Yw A poem on tapirs", 1.0),
        ("  k3Yw A poem on tapirs\n", 1.0),
        ("<think>k3Yw</think>k3Yw A poem on tapirs", 1.0),
        ("A poem on tapirs", 0.0),
        ("Sure: k3Yw A poem on tapirs", 0.0),
        ("K3YW A poem on tapirs", 0.0),
        ("k3Yw", 0.0),
        ("<think>k3Yw A poem on tapirs", 0.0),
    ],
)
def test_mrcr(response: str, reward: float) -> None:
    row = {"answer": "k3Yw A poem on tapirs", "random_string_to_prepend": "k3Yw"}
    assert judge(similarity, response, row).reward == reward
    reference = ("k3Yw A poem on tapirs",)
    assert judge(similarity, response, reference, prefix="k3Yw").reward == reward


def test_a_ratio_under_the_least_is_nothing() -> None:
    assert judge(similarity, "abcd", ("bcde",)).reward == 0.75
    assert judge(similarity, "abcd", ("bcde",), at_least=0.8).reward == 0.0


@pytest.mark.parametrize("reference", [5, {}, {"answer": ""}, {"answer": "x" * 20_001}, ("",)])
def test_unusable_texts(reference: Any) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(similarity, "a", reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


@pytest.mark.parametrize("piece", ["\u4e00", "\u4e00\u4e01", "ab", "a b c d e", "".join(
    chr(0x4E00 + place) for place in range(199))])  # fmt: skip
def test_hostile_texts_end(piece: str) -> None:
    rare = "".join(chr(0x4E00 + place % 200) for place in range(20_000))
    for reference in (rare, rare[:199] * 100, piece * (20_000 // len(piece))):
        start = time.process_time()
        judge(similarity, piece * (90_000 // len(piece)), (reference,))
        assert time.process_time() - start < 8.0
    assert judge(similarity, piece * 1_000_000, (rare,)).verdict == "unparsed"


# --- Graph walks: F1 of sets on the last line -----------------------------------------------------

NODES = ["a1b2", "c3d4", "e5f6"]


@pytest.mark.parametrize(
    ("response", "reward"),
    [
        ("So it is.\nFinal Answer: [a1b2, c3d4, e5f6]", 1.0),
        ("Final Answer: [e5f6, a1b2, c3d4, a1b2]\n\n", 1.0),
        ('**Final Answer:** ["a1b2", "c3d4", "e5f6"]', 1.0),
        ("Final Answer: [a1b2, c3d4]", 0.8),
        ("Final Answer: [a1b2, c3d4, e5f6, ffff]", 6 / 7),
        ("Final Answer: []", 0.0),
        ("Final Answer: [a1b2, c3d4, e5f6]\nThat is all.", 0.0),
        ("[a1b2, c3d4, e5f6]", 0.0),
        ("<think>Final Answer: [a1b2, c3d4, e5f6]", 0.0),
    ],
)
def test_graph_walks(response: str, reward: float) -> None:
    parameters = {"extract": "final-answer", "repetitions": "ignore"}
    judgement = judge(set_f1, response, NODES, **parameters)
    assert judgement.reward == pytest.approx(reward)
    empty = judge(set_f1, response, [], **parameters)
    assert empty.reward == float(response == "Final Answer: []")


def test_repetition_costs_where_it_counts() -> None:
    response = "Final Answer: [a1b2, a1b2, a1b2, c3d4, e5f6]"
    counted = judge(set_f1, response, NODES, extract="final-answer")
    assert counted.reward == pytest.approx(0.75)


# --- Needles --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "any_", "all_", "share"),
    [
        ("They are 8231945 and 1029384.", 1.0, 1.0, 1.0),
        ("One of them is 8231945.", 1.0, 0.0, 0.5),
        ("82319451 and 1029383", 0.0, 0.0, 0.0),
        ("I found none.", 0.0, 0.0, 0.0),
    ],
)
def test_needles(response: str, any_: float, all_: float, share: float) -> None:
    needles = ("8231945", "1029384")
    for need, reward in (("any", any_), ("all", all_), ("share", share)):
        judgement = judge(match, response, needles, where="contains", need=need)
        assert judgement.reward == reward
        expected = "correct" if reward == 1.0 else "partial" if reward else "incorrect"
        assert judgement.verdict == expected


def test_naming_everything_is_bounded_by_words() -> None:
    needles = ("8231945",)
    everything = " ".join(str(number) for number in range(8231900, 8231999))
    bounded = judge(match, everything, needles, where="contains", need="all", max_words=20)
    assert bounded.reward == 0.0
