"""Runs that learn from stored rollouts, begun with those of another run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import read_rollouts
from trainer_support import ExactTransport

Train = Callable[..., list[dict[str, Any]]]
MakeConfig = Callable[..., Any]
CRITIC = {"estimator": "gae", "lam": 0.0}
LOSSES: dict[str, dict[str, Any]] = {
    "sft": {
        "offline": {"keep": "correct", "reference": "none"},
        "advantage": {"estimator": "stored"},
        "loss": {"aggregation": "token-mean"},
    },
    "dpo": {"offline": {"pairs": "reward"}, "advantage": {"estimator": "stored"}},
    "prdp": {
        "offline": {"pairs": "reward", "ties": True},
        "prdp": {"beta": 1.0},
        "advantage": {"estimator": "stored"},
    },
    "a-lol": {
        "offline": {"keep": "positive"},
        "advantage": {"estimator": "stored"},
        "loss": {"aggregation": "seq-mean-token-sum"},
    },
    "direct-advantage": {
        "offline": {"step_end": "1"},
        "direct_advantage": {"beta": 1.0},
        "advantage": CRITIC,
        "critic": {"pretrain_steps": 2, "learning_rate": 1e-3},
        "loss": {"aggregation": "seq-mean-token-sum"},
    },
}


@pytest.fixture(scope="module")
def drawn_once() -> dict[str, Path]:
    return {}


@pytest.fixture
def stored(
    tiny_config: MakeConfig,
    train: Train,
    drawn_once: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
) -> Path:
    """A run of three steps without learning: 192 responses of the tiny model, judged."""
    if "run" not in drawn_once:
        config = tiny_config(
            run={"steps": 3},
            optim={"learning_rate": 1e-12},
            eval={"prompts": 20},
        )
        train(config, "drawn")
        kept = tmp_path_factory.mktemp("stored") / "drawn"
        (tmp_path / "drawn").rename(kept)
        drawn_once["run"] = kept
    return drawn_once["run"]


def learning(tiny_config: MakeConfig, rows: Path, loss: str, **sections: Any) -> Any:
    tree = {name: dict(table) for name, table in LOSSES[loss].items()}
    pairs = bool(tree["offline"].get("pairs"))
    tree["offline"]["rows"] = str(rows)
    tree["loss"] = {
        "objective": loss,
        **({"aggregation": "seq-mean-token-mean"} if pairs else {}),
        **tree.get("loss", {}),
    }
    return tiny_config(
        method=tree,
        rollout={"prompts_per_step": 16, "group_size": 2 if pairs else 1},
        **sections,
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_learns_from_stored_rollouts(
    tiny_config: MakeConfig, train: Train, stored: Path, loss: str
) -> None:
    config = learning(tiny_config, stored, loss, run={"steps": 6}, eval={"prompts": 20})
    rows = train(config)
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert all(math.isfinite(row["loss"]) and row["grad_norm"] > 0 for row in rows)
    assert all(row["fault_ratio"] == 0 for row in rows)
    assert rows[-1]["stored_passes"] > 0
