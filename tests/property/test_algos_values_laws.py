"""Laws of the critic's losses and its histograms."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from algos_support import Batch, batches, close, gradient, law
from assay.trainer.algos.value_losses import ValueBins, clipped_value_losses, mse_value_losses


@st.composite
def bins(draw: st.DrawFn, least: int = 2) -> ValueBins:
    low = draw(st.floats(-5, 4))
    return ValueBins(low, low + draw(st.floats(0.5, 10)), draw(st.integers(least, 40)))


def within(b: ValueBins, shares: list[float]) -> torch.Tensor:
    return b.low + (b.high - b.low) * torch.tensor(shares, dtype=torch.float64)


def mean(b: ValueBins, histogram: torch.Tensor) -> torch.Tensor:
    """The value that a critic reads from logits whose softmax is the histogram."""
    return b.expectation(histogram.log())


shares = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@law
@given(bins(), st.lists(st.floats(-50, 50), min_size=1, max_size=8))
def test_histograms_are_distributions(b: ValueBins, targets: list[float]) -> None:
    targets_N = torch.tensor(targets, dtype=torch.float64)
    for histogram in (b.hl_gauss(targets_N), b.two_hot(targets_N)):
        assert histogram.shape == (len(targets), b.count)
        assert (histogram >= 0).all()
        assert close(histogram.sum(dim=-1), torch.ones_like(targets_N))


@law
@given(bins(), shares)
def test_two_bins_give_the_target_back(b: ValueBins, where: list[float]) -> None:
    targets_N = within(b, where)
    assert close(mean(b, b.two_hot(targets_N)), targets_N)
    assert ((b.two_hot(targets_N) > 1e-12).sum(dim=-1) <= 2).all()


@law
@given(bins(least=12), shares)
def test_a_normal_histogram_s_mean_is_near_its_target_within(
    b: ValueBins, where: list[float]
) -> None:
    inner = within(b, [0.4 + 0.2 * share for share in where])
    assert (mean(b, b.hl_gauss(inner)) - inner).abs().max() < 0.02 * b.width
    everywhere = within(b, where)
    assert (mean(b, b.hl_gauss(everywhere)) - everywhere).abs().max() < b.width / 2


@law
@given(bins(), shares, st.floats(0.01, 100))
def test_targets_outside_are_moved_to_the_end(
    b: ValueBins, where: list[float], beyond: float
) -> None:
    ends = torch.tensor([b.low - beyond, b.high + beyond], dtype=torch.float64)
    inside = torch.tensor([b.low, b.high], dtype=torch.float64)
    assert close(b.two_hot(ends), b.two_hot(inside))
    assert close(b.hl_gauss(ends), b.hl_gauss(inside))


@law
@given(bins(), shares)
def test_the_loss_is_least_where_the_prediction_is_the_target(
    b: ValueBins, where: list[float]
) -> None:
    target = b.hl_gauss(within(b, where))
    logits = target.clamp(min=1e-30).log()
    entropy = -(target * logits).sum(dim=-1)
    assert close(b.cross_entropy(logits, target), entropy, 1e-6)
    assert (b.cross_entropy(torch.zeros_like(logits), target) >= entropy - 1e-9).all()
    slope = gradient(lambda x: b.cross_entropy(x, target), logits)
    assert slope.abs().max() < 1e-9
    assert close(b.expectation(logits), mean(b, target), 1e-6)


@law
@given(bins(), batches(max_rows=3, max_tokens=4))
def test_shapes_are_kept(b: ValueBins, batch: Batch) -> None:
    targets_BT = batch.normal().float()
    histogram = b.hl_gauss(targets_BT)
    assert histogram.shape == (*targets_BT.shape, b.count)
    assert histogram.dtype == torch.float32
    assert b.expectation(histogram.log().clamp(min=-30)).shape == targets_BT.shape
    assert b.cross_entropy(histogram, histogram).shape == targets_BT.shape


@law
@given(batches(), st.floats(0.01, 3))
def test_clipping_never_lowers_the_value_loss_and_stops_far_moves(
    batch: Batch, clip: float
) -> None:
    values, old, returns = (batch.normal(n) for n in (1, 2, 3))
    clipped = clipped_value_losses(values, old, returns, clip=clip)
    assert (clipped >= mse_value_losses(values, returns)).all()
    near = (values - old).abs() <= clip
    assert close(clipped[near], mse_value_losses(values, returns)[near])
    slope = gradient(lambda x: clipped_value_losses(x, old, returns, clip=clip), values)
    gone_right = ((values - old).abs() > clip) & ((values - returns) * (old - returns) > 0)
    toward = gone_right & ((values - returns).abs() < (old - returns).abs() - clip)
    assert (slope[toward] == 0).all()
    plain = gradient(lambda x: mse_value_losses(x, returns), values)
    assert close(plain, values - returns)


def test_the_ends_of_a_normal_histogram_are_drawn_inwards() -> None:
    """The default bins of [-1, 1]: at the end the mean is short by 0.37 of a width."""
    b = ValueBins(-1.0, 1.0, 51)
    short = 1 - mean(b, b.hl_gauss(torch.tensor([1.0], dtype=torch.float64))).item()
    assert 0.36 < short / b.width < 0.38


@pytest.mark.parametrize(("low", "high", "count"), [(0.0, 1.0, 1), (1.0, 1.0, 5), (2.0, 1.0, 5)])
def test_bins_that_are_none_are_refused(low: float, high: float, count: int) -> None:
    with pytest.raises(ValueError, match="bins need low < high"):
        ValueBins(low, high, count)
