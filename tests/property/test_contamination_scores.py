"""Laws of the scores of contamination, and of what their report says."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.recipes.contamination.answering import moments_of
from assay.trainer.recipes.contamination.report import (
    ContaminationReport,
    ScoredRow,
    chance_of,
    separation,
)
from assay.trainer.recipes.contamination.scores import (
    SCORES,
    SELF_CRITIQUE,
    Answered,
    RowAnswers,
    edit_distance,
    entropy_similarity,
    min_k,
)

entropies = st.lists(st.floats(0, 12) | st.just(0.0), max_size=12)
texts = st.lists(st.integers(0, 3), max_size=10)
scores = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


@given(entropies, entropies)
def test_similarity_is_symmetric_within_0_and_1_and_1_for_the_same(
    one: list[float], other: list[float]
) -> None:
    found = entropy_similarity(one, other)
    assert found == entropy_similarity(other, one)
    if found is None:
        assert not (math.hypot(*one) and math.hypot(*other))
        return
    assert 0 <= found <= min(len(one), len(other)) / max(len(one), len(other)) + 1e-12
    assert entropy_similarity(one, one) == pytest.approx(1)
    doubled = entropy_similarity([2 * x for x in one], other)
    assert doubled == pytest.approx(found, abs=1e-9)


@given(texts, texts, texts)
def test_edits_are_a_metric(one: list[int], other: list[int], third: list[int]) -> None:
    distance = edit_distance(one, other)
    assert distance == edit_distance(other, one)
    assert (distance == 0) == (one == other)
    assert abs(len(one) - len(other)) <= distance <= max(len(one), len(other))
    assert edit_distance(one, third) <= distance + edit_distance(other, third)


@given(scores)
def test_min_k_is_between_the_least_and_the_mean(values: list[float]) -> None:
    found = min_k(values)
    assert found is not None
    assert min(values) <= found <= sum(values) / len(values) + 1e-12


@given(st.lists(st.lists(st.floats(-30, 30), min_size=4, max_size=4), min_size=1, max_size=6))
def test_moments_are_of_the_distribution(logits: list[list[float]]) -> None:
    logits_TV = torch.tensor(logits)
    own_T, entropies_T, squares_T = moments_of(logits_TV, torch.zeros(len(logits)).long())
    dist = torch.distributions.Categorical(logits=logits_TV.double())
    torch.testing.assert_close(own_T, dist.log_prob(torch.zeros(len(logits))))
    torch.testing.assert_close(entropies_T, dist.entropy(), atol=1e-9, rtol=1e-6)
    assert bool((squares_T - entropies_T**2 >= -1e-9).all())


def test_an_impossible_token_adds_nothing() -> None:
    logits_TV = torch.tensor([[0.0, float("-inf"), 0.0]])
    _, entropies_T, squares_T = moments_of(logits_TV, torch.tensor([0]))
    assert entropies_T.item() == pytest.approx(math.log(2))
    assert squares_T.item() == pytest.approx(math.log(2) ** 2)


def _report(rows: list[float | None], clean: list[float | None]) -> ContaminationReport:
    def made(values: list[float | None]) -> list[ScoredRow]:
        blank = dict.fromkeys(SCORES)
        return [ScoredRow(str(n), None, blank | {SELF_CRITIQUE: v}) for n, v in enumerate(values)]

    return ContaminationReport(made(rows), made(clean), SELF_CRITIQUE, {})


@given(scores, scores)
def test_a_row_s_chance_is_a_rank_among_the_clean_ones(
    rows: list[float], clean: list[float]
) -> None:
    for row in rows:
        at_least = sum(one >= row for one in clean)
        assert chance_of(row, clean) == (at_least + 1) / (len(clean) + 1)
    found = _report([*rows], [*clean])
    assert found.chances() == [chance_of(row, clean) for row in rows]
    told, turned = separation(rows, clean), separation(clean, rows)
    assert told is not None
    assert turned is not None
    assert told.area + turned.area == pytest.approx(1)
    assert told.interval[0] <= told.area <= told.interval[1]


def test_only_what_is_above_by_the_whole_interval_is_found() -> None:
    assert _report([2.0] * 20, [1.0] * 20).found
    assert not _report([2.0] * 3, [1.0] * 3).found  # too few to tell
    assert not _report([1.0] * 20, [1.0] * 20).found
    assert not _report([2.0] * 20, []).found
    assert _report([2.0] * 20, []).to_json()["contaminated"] is None


def test_an_answer_without_entropy_has_no_score_and_is_in_no_figure() -> None:
    flat = Answered((1, 2), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0))
    assert SCORES[SELF_CRITIQUE](RowAnswers(flat, flat)) is None
    assert SCORES["recall"](RowAnswers(flat, flat, flat)) is None
    found = _report([None, 2.0], [1.0, None])
    assert found.chances() == [None, 0.5]
    assert found.to_json()["methods"][SELF_CRITIQUE]["without"] == 1
    assert any("1 rows have no self-critique" in line for line in found.lines(5))
