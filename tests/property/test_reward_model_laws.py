"""Laws of the losses and the figures of `assay train-rm`."""

from __future__ import annotations

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.rows.preferences import PairRow, Said
from assay.genrm.engines.steps import chance
from assay.kit.runs.bootstrap import bootstrap
from assay.trainer.recipes.reward_model.data import split
from assay.trainer.recipes.reward_model.objectives import (
    balanced_weights,
    pairwise_loss,
    score_bins,
    step_class_loss,
    step_loss,
)
from assay.trainer.recipes.reward_model.trainers import step_margins

margins = st.lists(st.tuples(st.floats(-20, 20), st.floats(-20, 20)), min_size=1, max_size=8).map(
    lambda rows: torch.tensor(rows, dtype=torch.float64)
)
labels = st.lists(st.sampled_from([1.0, 0.0, -1.0]), min_size=1, max_size=12)


def whole(rows: torch.Tensor) -> torch.Tensor:
    """Verdicts that hold all of the probability."""
    return torch.zeros_like(rows)


@given(margins, st.floats(0, 5))
def test_the_order_of_the_orders_does_not_matter(rows: torch.Tensor, beta: float) -> None:
    assert pairwise_loss(rows, whole(rows), beta).item() == pytest.approx(
        pairwise_loss(rows.flip(1), whole(rows), beta).item()
    )


@given(st.lists(st.lists(st.floats(-20, 20), min_size=5, max_size=5), min_size=2, max_size=6))
def test_with_the_mass_it_is_the_cross_entropy_over_all_words(logits: list[list[float]]) -> None:
    logits_BV = torch.tensor(logits, dtype=torch.float64)
    margins_BR = (logits_BV[:, 1] - logits_BV[:, 3])[:, None]
    log_masses_BR = torch.logsumexp(logits_BV[:, [1, 3]], -1) - torch.logsumexp(logits_BV, -1)
    wanted = torch.nn.functional.cross_entropy(logits_BV, torch.full((len(logits),), 1))
    found = pairwise_loss(margins_BR, log_masses_BR[:, None])
    assert found.item() == pytest.approx(wanted.item(), abs=1e-9)
    assert pairwise_loss(margins_BR, log_masses_BR[:, None], mass=0.0) <= found + 1e-12


@given(margins)
def test_consistency_is_free_where_the_orders_agree(rows: torch.Tensor) -> None:
    same = rows[:, :1].expand(-1, 2)
    assert pairwise_loss(same, whole(same), 3.0).item() == pytest.approx(
        pairwise_loss(same, whole(same)).item()
    )
    assert pairwise_loss(rows, whole(rows), 3.0) >= pairwise_loss(rows, whole(rows))


def test_pairwise_loss_by_hand() -> None:
    rows = torch.tensor([[2.0, 0.0]])
    right = (math.log1p(math.exp(-2)) + math.log(2)) / 2
    gap = 1 / (1 + math.exp(-2)) - 0.5
    assert pairwise_loss(rows, whole(rows)).item() == pytest.approx(right)
    assert pairwise_loss(rows, whole(rows), 2.0).item() == pytest.approx(right + 2 * gap**2)
    certain = torch.full((4, 2), 50.0)
    assert pairwise_loss(certain, whole(certain)).item() == pytest.approx(0, abs=1e-6)
    assert pairwise_loss(certain, whole(certain) - 3, mass=0.5).item() == pytest.approx(1.5)


@given(labels, st.sampled_from(["cross-entropy", "mse"]), st.integers(0, 2**16))
def test_steps_without_weight_do_not_move_the_loss(
    given: list[float], kind: str, seed: int
) -> None:
    dice = torch.Generator().manual_seed(seed)
    found = torch.randn(len(given) + 3, generator=dice, dtype=torch.float64)
    all_labels = torch.tensor([*given, 1.0, 0.0, -1.0], dtype=torch.float64)
    weights = torch.cat([torch.ones(len(given)), torch.zeros(3)]).double()
    whole = step_loss(found, all_labels, weights, kind)  # type: ignore[arg-type]
    part = step_loss(  # type: ignore[call-overload]
        found[:-3], all_labels[:-3], weights[:-3], kind
    )
    assert whole.item() == pytest.approx(part.item())


@pytest.mark.parametrize("kind", ["cross-entropy", "mse"])
@pytest.mark.parametrize("label", [1.0, 0.0, -1.0])
def test_the_least_loss_is_where_the_label_says(kind: str, label: float) -> None:
    """Right steps are drawn to a chance of 1, wrong ones to 0, neutral ones to one half."""
    found = torch.linspace(-8, 8, 33)
    losses = [
        step_loss(m.view(1), torch.tensor([label]), torch.ones(1), kind).item()  # type: ignore[arg-type]
        for m in found
    ]
    assert found[losses.index(min(losses))].item() == 8 * label


logits = st.integers(3, 9).flatmap(
    lambda count: st.lists(
        st.lists(st.floats(-30, 30), min_size=count, max_size=count), min_size=1, max_size=5
    )
)


@given(logits, st.sampled_from(["hl-gauss", "two-hot"]), st.data())
def test_steps_without_weight_do_not_move_the_loss_of_classes(
    rows: list[list[float]], kind: str, data: st.DataObject
) -> None:
    found = torch.tensor([*rows, *rows], dtype=torch.float64)
    given_labels = torch.tensor(
        data.draw(
            st.lists(st.sampled_from([1.0, 0.0, -1.0]), min_size=len(found), max_size=len(found))
        )
    ).double()
    weights = torch.tensor([1.0] * len(rows) + [0.0] * len(rows)).double()
    whole_loss = step_class_loss(found, given_labels, weights, kind)  # type: ignore[arg-type]
    half = slice(len(rows))
    part = step_class_loss(found[half], given_labels[half], weights[half], kind)  # type: ignore[arg-type]
    assert whole_loss.item() == pytest.approx(part.item())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hl-gauss", "two-hot"])
@pytest.mark.parametrize("label", [1.0, 0.0, -1.0])
def test_where_the_loss_of_classes_is_least_the_score_is_the_label(kind: str, label: float) -> None:
    """Neutral steps in the very middle; at the ends hl-gauss is drawn in by a bin at most."""
    found = torch.zeros(1, 21, dtype=torch.float64, requires_grad=True)
    for _ in range(4000):
        loss = step_class_loss(found, torch.tensor([label]).double(), torch.ones(1).double(), kind)  # type: ignore[arg-type]
        (slope,) = torch.autograd.grad(loss, found)
        with torch.no_grad():
            found -= 4 * slope
    score = step_margins(found).item()
    width = 0.0 if kind == "two-hot" or not label else score_bins(21).width
    assert abs(score - label) <= width + 2e-3


@given(logits, st.integers(0, 2))
def test_what_is_served_of_classes_is_what_the_trainer_reads(
    rows: list[list[float]], fewer: int
) -> None:
    """One output or many, genrm's chance is (score + 1) / 2."""
    rows = [row[:1] if not fewer else row for row in rows]
    margins = step_margins(torch.tensor(rows, dtype=torch.float64))
    for row, margin in zip(rows, margins.tolist(), strict=True):
        assert chance(row, 1, scores=True) == pytest.approx(min(1, max(0, (margin + 1) / 2)))


def test_mse_is_the_papers() -> None:
    """s = 2 p - 1 against the label, over labelled steps (arXiv 2410.17621)."""
    found = torch.tensor([0.3, -1.2, 2.0])
    given = torch.tensor([1.0, -1.0, 0.0])
    scores = 2 * torch.sigmoid(found) - 1
    expected = ((scores - given) ** 2).mean()
    assert step_loss(found, given, torch.ones(3), "mse").item() == pytest.approx(expected.item())


@given(labels)
def test_right_and_wrong_weigh_the_same(given: list[float]) -> None:
    weights = balanced_weights(given)
    if {1.0, -1.0} <= set(given):
        right, wrong = (given.count(label) * weights[label] for label in (1.0, -1.0))
        assert right == pytest.approx(wrong)
        assert right + wrong == pytest.approx(given.count(1.0) + given.count(-1.0))
    assert weights[0.0] == 1.0


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=1, max_size=10))
def test_an_interval_holds_values_that_can_occur(clusters: list[list[float]]) -> None:
    def mean(values: object) -> float:
        assert isinstance(values, list)
        return math.fsum(values) / len(values)

    found = bootstrap(clusters, mean, rounds=50)
    assert found is not None
    flat = [value for cluster in clusters for value in cluster]
    assert min(flat) - 1e-9 <= found.low <= found.high <= max(flat) + 1e-9
    assert found.value == pytest.approx(mean(flat))


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    dice = random.Random(5)
    hits = 0
    for round_ in range(60):
        clusters = [[dice.random() + shift] * 3 for shift in (dice.gauss(0, 1) for _ in range(40))]
        found = bootstrap(
            clusters, lambda values: math.fsum(values) / len(values), rounds=100, seed=round_
        )
        assert found is not None
        hits += found.low <= 0.5 <= found.high
    assert hits >= 50


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=40),
    st.integers(0, 12),
    st.integers(0, 5),
)
def test_a_split_parts_prompts(rows: list[tuple[int, int]], prompts: int, seed: int) -> None:
    pairs = [PairRow((Said("user", f"q{q}"),), f"good {x}", f"bad {x}") for q, x in rows]
    train, held_out = split(pairs, prompts, seed)
    groups = {row.group for row in pairs}
    assert len({row.group for row in held_out}) == min(prompts, len(groups))
    assert not {row.group for row in train} & {row.group for row in held_out}
    assert sorted(map(repr, [*train, *held_out])) == sorted(map(repr, pairs))
