"""Directions of what papers say of judges; `python -m experiments judges` has the tables."""

from __future__ import annotations

import statistics

import pytest
from experiments.judges import contest as small


def medians(results: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(a for a, _ in results), statistics.median(b for _, b in results)


def test_offsets_of_prompts_hurt_bradley_terry_and_not_win_probabilities() -> None:
    without, with_offsets = (
        medians([small.cross_prompt_accuracy(s, seed, prompts=400, steps=60) for seed in range(3)])
        for s in (0.0, 4.0)
    )
    assert without[0] - with_offsets[0] > 0.15
    assert abs(without[1] - with_offsets[1]) < 0.05
    assert with_offsets[1] > with_offsets[0] + 0.1


def test_both_orders_beat_one_under_a_position_bias() -> None:
    one, both = medians(
        [small.order_accuracy(0.4, seed, prompts=400, steps=60) for seed in range(3)]
    )
    assert both > one + 0.03


@pytest.mark.parametrize("skill", [0.2, 0.5])
def test_twenty_completions_find_the_oracles_labels(skill: float) -> None:
    exact, off = small.label_match(skill, 20, seed=1, programs=150)
    assert exact >= 0.95
    assert off < 0.2


def test_few_completions_of_a_weak_policy_do_not() -> None:
    assert small.label_match(0.05, 5, seed=1, programs=60)[0] < 0.5


def test_the_oracle_knows_what_running_finds() -> None:
    """A prefix is feasible exactly if some way of going on passes, by trying them all."""
    for value in (-3, 0, 5):
        for target in range(-6, 7):
            ways = {value}
            for _ in range(3):
                ways = {change(x) for x in ways for _, change in small.OPERATIONS}
            assert small.reachable(value, 3, target) == (target in ways)
