"""The curves: panels for what was measured, whatever the numbers are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.records import plots
from assay.trainer.records.metric_table import METRICS


def steps(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"step": n + 1, "reward": n / 40, "fault_ratio": 0.0, "kl": None, "entropy": 1.0, **more}
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_curves_are_drawn_of_whatever_there_is(tmp_path: Path, count: int) -> None:
    plots.draw(steps(count), tmp_path / "curves.png", title="a run", subtitle="of nothing")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def titles(rows: list[dict[str, Any]]) -> list[str]:
    return [panel.title for panel in plots.panels(rows)]


def test_panels_are_those_that_were_measured() -> None:
    assert titles(steps(3)) == [
        "reward, mean of judged responses",
        "responses cut, or without a judgement",
        "entropy, nats per token",
    ]
    critic = titles(steps(3, explained_variance=0.5, value_loss=0.1, value_mean=None))
    assert "explained variance of returns" in critic
    assert "value loss" in critic
    assert "mean values and returns" not in critic
    assert "seconds per step" in titles(steps(3, generate_s=1.0, score_wait_s=0.0, train_s=2.0))
    assert "not judged" not in titles(steps(3, faults={}))
    assert titles(steps(3, faults={"WORKER_DIED": 2}))[-1] == "not judged"
    clipped = plots.panels(steps(3, clip_low=0.1, clip_high=0.2, dual_clip=0.0))[-1]
    assert [curve.key for curve in clipped.curves] == ["clip_low", "clip_high"]
    assert "tokens clipped" not in titles(steps(3, clip_low=0.0, clip_high=0.0))
    assert titles([]) == []


def test_the_most_frequent_reasons_are_named() -> None:
    rows = steps(2, faults={f"REASON_{n}": n for n in range(9)})
    [panel] = [panel for panel in plots.panels(rows) if panel.kind == "bars"]
    assert [curve.label for curve in panel.curves] == [f"reason {n}" for n in (8, 7, 6, 5, 4)]


def test_every_curve_is_a_documented_number() -> None:
    assert {curve.key for panel in plots.PANELS for curve in panel.curves} <= set(METRICS)


@pytest.mark.slow
def test_a_whole_run_is_drawn(tmp_path: Path) -> None:
    """Gaps, spikes, negative and constant numbers, and evaluations that judged nothing."""
    count = 120
    everything = {key: 0.25 for key in METRICS if key not in ("faults", "verdicts")}
    rows = steps(count, **everything, faults={"ITEM_TIMEOUT": 1})
    rows[1] |= {"grad_norm": 1e6, "explained_variance": -50.0, "kl": None, "faults": {}}
    rows[-1] |= {"entropy": None, "value_loss": 0.0}
    judged = {"samples": 4, "accuracy": 0.5, "accuracy_low": 0.4, "accuracy_high": 0.6,
              "pass@4": 0.8, "pass@4_low": 0.7, "pass@4_high": 0.9}  # fmt: skip
    evaluations = [
        {"step": 0, **judged},
        {"step": 1, "samples": 4, "accuracy": None},
        {"step": count, **judged},
    ]
    path = tmp_path / "curves.png"
    plots.draw(rows, path, title="a run", evaluations=evaluations)
    alone = path.stat().st_size
    assert alone > 50_000
    pretraining = [{"step": n, "explained_variance": n / 9 or None} for n in range(9)]
    plots.draw([], path, title="a run", evaluations=evaluations, pretraining=pretraining)
    assert path.stat().st_size > 5_000


@given(st.lists(st.floats(-10, 10), max_size=30), st.integers(0, 5))
def test_smoothing_keeps_length_and_bounds(values: list[float], width: int) -> None:
    smoothed = plots.smooth(values, width)
    assert len(smoothed) == len(values)
    if values:
        assert min(values) - 1e-9 <= min(smoothed) <= max(smoothed) <= max(values) + 1e-9
    if width == 0:
        assert smoothed == values


def test_smoothing() -> None:
    assert plots.smooth([2.0] * 5, 2) == [2.0] * 5
    assert plots.smooth([0.0, 3.0, 6.0], 1) == [1.5, 3.0, 4.5]
