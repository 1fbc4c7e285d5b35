"""Seeded sampling: numbers that never change, the edges of a distribution, and its frequencies."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from assay.trainer.engines.seeded import choose, uniforms
from assay.trainer.errors import TrainingStoppedError

LAST = 1.0 - 2.0**-53


def test_the_numbers_are_these_on_every_machine() -> None:
    assert uniforms(0, 0, 0, 3).tolist() == [
        0.011546754286331562,
        0.24154919656271812,
        0.11142585551493822,
    ]
    assert uniforms(17, 4, 2, 3).tolist() == [
        0.6854005295686546,
        0.3842537371129996,
        0.9953744729275067,
    ]


def test_the_numbers_are_philox_as_numpy_has_it() -> None:
    generator = np.random.Philox(
        key=np.array([17, 0], dtype=np.uint64), counter=np.array([0, 0, 2, 4], dtype=np.uint64)
    )
    assert np.array_equal(uniforms(17, 4, 2, 50), np.random.Generator(generator).random(50))


def test_numbers_of_many_responses_are_even_and_unrelated() -> None:
    numbers = np.stack([uniforms(3, draw, index, 20) for draw in range(100) for index in range(8)])
    counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
    expected = numbers.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 43.8  # chi-square, 19 df, p = 0.001
    correlations = np.corrcoef(numbers.T) - np.eye(20)
    assert np.abs(correlations).max() < 0.15  # 800 rows: a standard error of 0.035


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.5])
def test_frequencies_are_the_softmax(temperature: float) -> None:
    logits_V = torch.tensor([2.0, -1.0, 0.5, 0.0, 3.0, -2.0, -math.inf])
    numbers_B = torch.from_numpy(uniforms(5, 0, 0, 20_000))
    tokens_B, logprobs_B = choose(logits_V.expand(20_000, 7), numbers_B, temperature=temperature)
    expected_V = torch.softmax(logits_V.double() / temperature, 0) * 20_000
    counts_V = torch.bincount(tokens_B, minlength=7).double()
    assert counts_V[6] == 0
    chi2 = ((counts_V - expected_V)[:6] ** 2 / expected_V[:6]).sum()
    assert chi2 < 20.5  # 5 df, p = 0.001
    expected_B = torch.log_softmax(logits_V / temperature, 0)[tokens_B]
    torch.testing.assert_close(logprobs_B, expected_B)


def test_a_number_at_the_very_end_takes_the_last_token_that_can_be() -> None:
    logits_BV = torch.tensor([[0.0, 0.1, -0.3, -math.inf, -math.inf]]).expand(2, 5)
    tokens_B, _ = choose(logits_BV, torch.tensor([0.0, LAST], dtype=torch.float64))
    assert tokens_B.tolist() == [0, 2]


def test_a_certain_token_is_drawn_by_every_number() -> None:
    logits_BV = torch.full((3, 8), -1e4)
    logits_BV[:, 5] = 1e4
    tokens_B, logprobs_B = choose(logits_BV, torch.tensor([0.0, 0.5, LAST], dtype=torch.float64))
    assert tokens_B.tolist() == [5, 5, 5]
    assert logprobs_B.tolist() == [0.0, 0.0, 0.0]


def test_a_rare_token_late_in_a_large_vocabulary_keeps_its_share() -> None:
    logits_V = torch.zeros(150_000)
    logits_V[-1] = math.log(1e-3)  # 7e-9 of all
    share = 1e-3 / (149_999 + 1e-3)
    numbers_B = torch.tensor([1 - share * 1.5, 1 - share * 0.5], dtype=torch.float64)
    tokens_B, _ = choose(logits_V.expand(2, -1), numbers_B)
    assert tokens_B.tolist() == [149_998, 149_999]


def test_ties_at_the_threshold_are_all_kept() -> None:
    logits_BV = torch.tensor([[1.0, 1.0, 1.0, 0.0]]).expand(40, 4)
    numbers_B = torch.arange(40, dtype=torch.float64) / 40
    for settings in ({"top_k": 1}, {"top_p": 0.05}):
        tokens_B, _ = choose(logits_BV, numbers_B, **settings)
        assert set(tokens_B.tolist()) == {0, 1, 2}


def test_half_precision_logits_are_computed_in_float32() -> None:
    logits_BV = torch.randn(4, 50, generator=torch.Generator().manual_seed(0)).bfloat16()
    numbers_B = torch.tensor([0.1, 0.3, 0.6, 0.9], dtype=torch.float64)
    assert [x.tolist() for x in choose(logits_BV, numbers_B)] == [
        x.tolist() for x in choose(logits_BV.float(), numbers_B)
    ]


@pytest.mark.parametrize(
    "row", [[0.0, math.nan, 1.0], [math.inf, 0.0, 0.0], [-math.inf] * 3, [math.nan] * 3]
)
@pytest.mark.parametrize("settings", [{}, {"top_k": 2}, {"top_p": 0.5}, {"top_k": 2, "top_p": 0.5}])
def test_logits_that_are_not_numbers_stop_the_run(
    row: list[float], settings: dict[str, float]
) -> None:
    good = [0.0, 1.0, 2.0]
    with pytest.raises(TrainingStoppedError, match="logits are not numbers"):
        choose(
            torch.tensor([good, row]),
            torch.tensor([0.5, 0.5], dtype=torch.float64),
            **settings,  # type: ignore[arg-type]
        )
