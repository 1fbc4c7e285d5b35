"""The presets at scale, shrunk by overrides to the tests' tiny model, train."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scale_support import CONFIGS, METHODS, SCALES, SHRUNK, SMALL, given

Train = Callable[..., list[dict[str, Any]]]


@pytest.mark.parametrize(
    ("scale", "method"),
    [
        pytest.param(
            scale, method, marks=() if (scale, method) == ("7b", "vapo") else pytest.mark.slow
        )
        for scale in SCALES
        for method in METHODS
    ],
)
def test_presets_at_scale_train_in_miniature(
    tiny_model: Path, sums_file: Path, train: Train, scale: str, method: str
) -> None:
    from assay.trainer.settings import config

    small = [f"model={tiny_model}", f"data={sums_file}", *SMALL, *SHRUNK.get(method, ())]
    made = config.load(CONFIGS / f"{method}.toml", [*given(method, scale), *small])
    assert made.model.gradient_checkpointing
    assert made.model.offload == ("reference", "critic")
    rows = train(made)
    assert [row["step"] for row in rows] == [1, 2]
    assert all(row["loss"] == row["loss"] for row in rows)  # NaN
    assert any(row["grad_norm"] > 0 for row in rows)
