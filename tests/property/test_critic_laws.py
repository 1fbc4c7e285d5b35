"""Laws of a critic's pure parts: sums over tokens, and the rule that ends pre-training."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.critic import objective
from assay.trainer.critic.pretraining import Plateau
from assay.trainer.settings.objective import CriticConfig

LOSSES: tuple[Any, ...] = ("mse", "clipped", "hl-gauss", "two-hot")
CURVE = st.lists(
    st.tuples(st.floats(0.0, 10.0), st.floats(-5.0, 1.0) | st.just(math.nan)), max_size=40
)


def example(seed: int, rows: int, length: int, config: CriticConfig) -> Any:
    generator = torch.Generator().manual_seed(seed)
    outputs = torch.randn(rows, length, objective.output_count(config), generator=generator)
    old, returns = (torch.rand(rows, length, generator=generator) * 2 - 1 for _ in range(2))
    mask = torch.rand(rows, length, generator=generator) < 0.6
    return outputs.requires_grad_(True), old, returns, mask


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 6), cut=st.integers(0, 6))
def test_parts_add_up_to_the_whole(loss: Any, seed: int, rows: int, cut: int) -> None:
    config = CriticConfig(loss=loss, bins=5)
    outputs, old, returns, mask = example(seed, rows, 4, config)
    whole, sums = objective.value_loss(outputs, old, returns, mask, config)
    parts = [
        objective.value_loss(outputs[p], old[p], returns[p], mask[p], config)
        for p in (slice(0, cut), slice(cut, None))
    ]
    torch.testing.assert_close(sum(part for part, _ in parts), whole, rtol=1e-4, atol=1e-5)
    for name, total in sums.items():
        torch.testing.assert_close(sum(p[name] for _, p in parts), total, rtol=1e-4, atol=1e-5)
    assert float(sums["tokens"]) == int(mask.sum())


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10**6), poison=st.sampled_from([math.nan, math.inf, -math.inf, 1e30]))
def test_what_is_outside_of_the_mask_never_counts(loss: Any, seed: int, poison: float) -> None:
    config = CriticConfig(loss=loss, bins=5)
    outputs, old, returns, mask = example(seed, 3, 4, config)
    clean, clean_sums = objective.value_loss(outputs, old, returns, mask, config)
    (expected,) = torch.autograd.grad(clean, outputs)
    dirty, dirty_sums = objective.value_loss(
        outputs, old.masked_fill(~mask, poison), returns.masked_fill(~mask, poison), mask, config
    )
    (found,) = torch.autograd.grad(dirty, outputs)
    assert torch.equal(found, expected)
    assert not found[~mask].any()
    assert clean_sums == dirty_sums


@given(
    prompt=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    response=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    left=st.integers(0, 3),
    right=st.integers(0, 3),
)
def test_positions_count_real_tokens(
    prompt: list[int], response: list[int], left: int, right: int
) -> None:
    """The outputs taken are at the prompt's last token and all of the response's but the last."""
    batch = {
        "prompt_ids": torch.tensor([[0] * left + prompt]),
        "prompt_mask": torch.tensor([[0] * left + [1] * len(prompt)]),
        "completion_ids": torch.tensor([response + [0] * right]),
        "completion_mask": torch.tensor([[1] * len(response) + [0] * right]),
    }
    inputs = objective.model_inputs(batch)
    kept = inputs["attention_mask"][0].bool()
    assert inputs["input_ids"][0][kept].tolist() == prompt + response
    assert kept.all(), "neither gap nor padding"
    read = objective.before_each_token(inputs["input_ids"].unsqueeze(-1), batch)
    assert read[0, : len(response), 0].tolist() == [prompt[-1], *response[:-1]]
    assert read.shape[1] == len(response) + right


def walk(curve: list[tuple[float, float]], patience: int) -> list[Plateau]:
    states = [Plateau(patience)]
    for loss, explained in curve:
        states.append(states[-1].seen(loss, explained))
    return states


@given(curve=CURVE, patience=st.integers(1, 5))
def test_it_never_ends_before_its_patience(curve: Any, patience: int) -> None:
    for number, state in enumerate(walk(curve, patience)):
        assert not (state.reached and number <= patience)
        assert 0 <= state.waited <= number


@given(curve=CURVE, patience=st.integers(1, 5))
def test_bests_only_get_better_and_are_of_the_curve(curve: Any, patience: int) -> None:
    states = walk(curve, patience)
    for before, after in pairwise(states):
        assert after.best_loss <= before.best_loss
        assert after.best_explained >= before.best_explained
        improved = (after.best_loss, after.best_explained) != (
            before.best_loss,
            before.best_explained,
        )
        assert not (improved and after.waited)
    counted = [(loss, ev) for loss, ev in curve if not math.isnan(ev)]
    if counted:
        best = min(loss for loss, _ in counted)
        assert states[-1].best_loss * (1 - states[-1].margin) <= best + 1e-12 or best == 0
        assert states[-1].best_explained >= max(ev for _, ev in counted) - states[-1].margin


@given(curve=CURVE, patience=st.integers(1, 5))
def test_steps_that_tell_nothing_are_as_if_they_had_not_been(curve: Any, patience: int) -> None:
    told = [(loss, ev) for loss, ev in curve if not math.isnan(ev)]
    assert walk(curve, patience)[-1] == walk(told, patience)[-1]


@given(patience=st.integers(1, 8), better=st.booleans())
def test_either_curve_alone_keeps_it_going(patience: int, better: bool) -> None:
    falling = [(1.0 * 0.9**n, 0.0) for n in range(20)]
    rising = [(1.0, -1.0 + 0.05 * n) for n in range(20)]
    assert not any(state.reached for state in walk(falling if better else rising, patience))
    still = [(1.0, 0.0)] * (patience + 1)
    assert walk(still, patience)[-1].reached
