"""Every preset, and every one of its ablations that changes the loop, trains in miniature."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.trainer.explain.presets import published
from assay.trainer.settings.config import Config
from presets_support import in_miniature

Train = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def miniature(repository: Path, tiny_model: Path, sums_file: Path) -> Callable[..., Config]:
    """A preset with the tiny model."""

    def make(name: str, *overrides: str) -> Config:
        path = repository / "configs" / f"{name}.toml"
        return in_miniature(path, tiny_model, sums_file, *overrides)

    return make


def check(rows: list[dict[str, Any]]) -> None:
    assert [row["step"] for row in rows] == [1, 2]
    # A step whose rewards are all alike has nothing to learn from; not both are such.
    assert any(row["grad_norm"] > 0 for row in rows)
    for row in rows:
        assert math.isfinite(row["loss"])
        assert 0 <= row["correct"] <= 1
        assert row["fault_ratio"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", published())
def test_a_preset_trains(miniature: Callable[..., Config], train: Train, name: str) -> None:
    config = miniature(name)
    rows = train(config)
    check(rows)
    if config.method.has_critic:
        assert all(math.isfinite(row["value_loss"]) for row in rows)
    if config.method.dynamic_sampling.enabled:
        assert all(0 < row["keep_rate"] <= 1 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("dapo", "dynamic-sampling"),
        ("vapo", "group-sampling"),
        ("vapo", "critic,value-pretraining"),
        ("t_ppo", "truncation"),
        ("cispo", "cispo"),
        ("gspo", "sequence-ratio"),
    ],
)
def test_a_preset_trains_without_a_part(
    miniature: Callable[..., Config], train: Train, name: str, part: str
) -> None:
    check(train(miniature(name, f"ablate={part}")))
