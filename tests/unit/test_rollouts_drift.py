"""The comparison of sampler and trainer: sums that add up, and an alarm."""

from __future__ import annotations

import dataclasses
import math
from functools import reduce

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.engines.drift import DriftReport, alarm, drift

logps = st.floats(-12, 0, width=32)


@given(
    rows=st.lists(st.tuples(logps, logps, st.booleans()), min_size=1, max_size=12), data=st.data()
)
def test_parts_add_up_to_the_whole(
    rows: list[tuple[float, float, bool]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(rows)))
    whole = _report(rows)
    parts = _report(rows[:cut]) + _report(rows[cut:])
    assert parts.tokens == whole.tokens == sum(inside for *_, inside in rows)
    assert parts.max_abs == whole.max_abs
    for field in dataclasses.fields(DriftReport):
        a, b = getattr(parts, field.name), getattr(whole, field.name)
        assert math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12), field.name


@given(rows=st.lists(st.tuples(logps, logps, st.just(True)), min_size=1, max_size=12))
def test_figures_are_those_of_their_formulas(rows: list[tuple[float, float, bool]]) -> None:
    report = _report(rows)
    d = torch.tensor([t - s for t, s, _ in rows], dtype=torch.float64)
    assert math.isclose(report.mean_abs, d.abs().mean(), rel_tol=1e-9, abs_tol=1e-12)
    assert math.isclose(report.kl_k1, -d.mean(), rel_tol=1e-9, abs_tol=1e-12)
    assert math.isclose(report.kl, (d.exp() - 1 - d).mean(), rel_tol=1e-6, abs_tol=1e-12)
    assert report.kl >= 0
    assert 0 < report.effective_share <= 1 + 1e-12


@given(rows=st.lists(st.tuples(logps, st.just(True)), min_size=1, max_size=12))
def test_equal_log_probabilities_have_no_drift(rows: list[tuple[float, bool]]) -> None:
    report = _report([(value, value, inside) for value, inside in rows])
    assert (report.mean_abs, report.max_abs, report.kl, report.kl_k1) == (0, 0, 0, 0)
    assert report.effective_share == 1
    assert alarm(report, 1e-9) is None


def test_what_is_outside_the_mask_is_not_looked_at() -> None:
    trainer_BT = torch.tensor([[-1.0, math.nan, -5.0]])
    sampler_BT = torch.tensor([[-1.5, math.nan, math.nan]])
    report = drift(trainer_BT, sampler_BT, torch.tensor([[1, 0, 0]]))
    assert (report.tokens, report.missing, report.mean_abs) == (1, 0, 0.5)


def test_a_token_without_a_number_from_the_sampler_is_left_out_and_counted() -> None:
    trainer_BT = torch.tensor([[-1.0, -2.0, -3.0]])
    sampler_BT = torch.tensor([[math.nan, -2.25, -math.inf]])
    report = drift(trainer_BT, sampler_BT, torch.ones(1, 3, dtype=torch.bool))
    assert (report.tokens, report.missing, report.mean_abs) == (1, 2, 0.25)
    assert report.metrics()["drift/missing"] == pytest.approx(2 / 3)


def test_a_trainer_that_is_not_a_number_raises_the_alarm() -> None:
    report = drift(torch.tensor([[math.nan, -1.0]]), -torch.ones(1, 2), torch.ones(1, 2))
    fine = drift(-torch.ones(1, 2), -torch.ones(1, 2), torch.ones(1, 2))
    for both in (report + fine, fine + report):
        assert math.isnan(both.max_abs)
        assert alarm(both, 0.1) is not None


def test_the_alarm_says_how_much_and_what_to_do() -> None:
    report = drift(torch.full((2, 5), -1.0), torch.full((2, 5), -1.5), torch.ones(2, 5))
    assert alarm(report, 0.5) is None
    message = alarm(report, 0.1)
    assert message is not None
    for part in ("differ by 0.5 nats", "0.5 at most", "rollout.drift_alarm = 0.1", "stale"):
        assert part in message
    assert "\n" not in message


def test_nothing_to_compare_is_no_alarm_and_no_metric() -> None:
    nothing = drift(torch.zeros(2, 3), torch.full((2, 3), math.nan), torch.ones(2, 3))
    assert nothing == DriftReport(missing=6)
    assert alarm(nothing, 0.1) is None
    assert nothing.metrics() == {}
    assert reduce(DriftReport.__add__, [DriftReport()] * 3) == DriftReport()


def _report(rows: list[tuple[float, float, bool]]) -> DriftReport:
    if not rows:
        return DriftReport()
    trainer, sampler, inside = zip(*rows, strict=True)
    return drift(torch.tensor([trainer]), torch.tensor([sampler]), torch.tensor([inside]))
