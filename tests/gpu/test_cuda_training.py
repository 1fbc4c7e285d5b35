"""Whole runs on CUDA: every preset, both engines in every precision, resume, adapters, a critic."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.trainer.explain.presets import published
from e2e.test_train_resume import stopped_copy
from presets_support import in_miniature
from trainer_support import ExactTransport

pytestmark = pytest.mark.gpu
Train = Callable[..., list[dict[str, Any]]]
PRECISIONS = {"float32": 1e-3, "mixed": 0.05, "bfloat16": 0.1}
FEW = ("dapo", "vapo", "t_ppo", "pag")
"""Presets of a rehearsal."""


@pytest.fixture
def miniature(
    repository: Path, tiny_model: Path, sums_file: Path, device: str
) -> Callable[..., Any]:
    def make(name: str, *overrides: str) -> Any:
        path = repository / "configs" / f"{name}.toml"
        return in_miniature(path, tiny_model, sums_file, f"model.device={device}", *overrides)

    return make


@pytest.mark.parametrize("name", published())
def test_a_preset_trains(
    miniature: Callable[..., Any], train: Train, device: str, name: str
) -> None:
    if device == "cpu" and name not in FEW:
        pytest.skip("not in a rehearsal")
    rows = train(miniature(name, "model.precision=mixed"))
    assert any(row["grad_norm"] > 0 for row in rows)
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert all(row["fault_ratio"] == 0 for row in rows)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("engine", ["hf", "paged"])
def test_an_engine_draws_what_the_trainer_learns_from(
    miniature: Callable[..., Any], train: Train, engine: str, precision: str
) -> None:
    rows = train(
        miniature(
            "grpo", f"rollout.backend={engine}", f"model.precision={precision}", "run.steps=4"
        )
    )
    assert all(row["drift_mean"] < PRECISIONS[precision] for row in rows)


def test_training_raises_the_reward(miniature: Callable[..., Any], train: Train) -> None:
    """By 0.08 on a CPU; the bound lies two standard errors from that, and from none."""
    steps = 80
    rows = train(
        miniature(
            "grpo", f"run.steps={steps}", "rollout.prompts_per_step=8", "rollout.group_size=8"
        )
    )
    quarter = steps // 4
    first, last = (
        sum(row["correct"] for row in part) / quarter for part in (rows[:quarter], rows[-quarter:])
    )
    assert last > first + 0.04


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    miniature: Callable[..., Any], train: Train, curve: Callable[..., Any], tmp_path: Path
) -> None:
    """In float32; where the device sums in another order each time, the first columns that differ
    are named."""
    config = miniature(
        "vapo", "run.steps=4", "run.checkpoint_every=1", "run.keep_checkpoints=9", "eval.prompts=8"
    )
    whole = curve(train(config, "whole"))
    stopped_copy(tmp_path / "whole", tmp_path / "resumed", update=2 * config.updates_per_rollout)
    resumed = curve(train(config, "resumed"))
    differ = {k for a, b in zip(whole, resumed, strict=True) for k in a if a[k] != b[k]}
    assert not differ, f"differ: {sorted(differ)}"


def test_adapters_learn(miniature: Callable[..., Any], train: Train) -> None:
    rows = train(
        miniature("grpo", "model.lora.rank=8", "model.precision=mixed", "run.steps=3"),
        transport=ExactTransport,
    )
    assert all(row["grad_norm"] > 0 or row["signal_ratio"] == 0 for row in rows)


@pytest.fixture
def curve() -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    return lambda rows: [
        {key: value for key, value in row.items() if not key.endswith("_s")} for row in rows
    ]
