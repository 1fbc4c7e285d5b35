"""Runs that learn from stored rollouts, begun with those of another run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import read_rollouts
from e2e.test_train_resume import stopped_copy

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
        "offline": {"pairs": "reward"},
        "prdp": {"beta": 0.5},
        "advantage": {"estimator": "stored"},
    },
    "a-lol": {
        "offline": {"keep": "positive"},
        "a_lol": {"clip": 0.01},  # a ratio that rises would raise the loss
        "advantage": {"estimator": "stored"},
        "loss": {"aggregation": "seq-mean-token-sum"},
    },
    "direct-advantage": {
        "offline": {"step_end": "1"},
        "direct_advantage": {"beta": 1.0},
        "advantage": CRITIC,
        "critic": {"pretrain_steps": 12, "learning_rate": 1e-3},
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


def by_recorded(config: Any) -> Any:
    offline = replace(config.method.offline, reference="recorded")
    return replace(config, method=replace(config.method, offline=offline))


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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_falls_on_the_rows(
    tiny_config: MakeConfig, train: Train, stored: Path, loss: str
) -> None:
    """By the median of a half: a response that the reference hardly wrote is far off at times."""
    rows = train(learning(tiny_config, stored, loss, run={"steps": 24}, eval={"prompts": 0}))
    losses = [row["loss"] for row in rows]
    assert median(losses[12:]) < median(losses[:12])
    if loss == "prdp":
        assert losses[0] == pytest.approx(4, abs=1e-3)  # (difference of rewards / beta)^2
    if loss == "dpo":
        assert losses[0] == pytest.approx(math.log(2), abs=1e-3)
        assert rows[-1]["pair_accuracy"] > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["dpo", "direct-advantage"])
def test_a_resumed_run_matches_an_uninterrupted_one(
    tiny_config: MakeConfig, train: Train, stored: Path, tmp_path: Path, loss: str
) -> None:
    """To the last bit: what ratios start from is computed again, by the model as loaded."""
    steps = {"steps": 4, "checkpoint_every": 1, "keep_checkpoints": 4, "rollouts": "none"}
    config = learning(tiny_config, stored, loss, run=steps)
    train(config, "whole")
    copy = stopped_copy(tmp_path / "whole", tmp_path / "stopped", update=2)
    train(config, "stopped")
    weights = "model/model.safetensors"
    assert (copy / weights).read_bytes() == (tmp_path / "whole" / weights).read_bytes()


def test_a_fault_is_in_no_group(
    tiny_config: MakeConfig, train: Train, stored: Path, tmp_path: Path
) -> None:
    """Nor is a row of a held-out question; both are counted."""
    rows = list(read_rollouts(stored, phase="train"))
    assert len(rows) == 192
    fault = {"judgement": None, "fault": {"reason": "WORKER_DIED", "message": "", "code": "X"}}
    wrong = [row for row in rows if row["judgement"]["verdict"] != "correct"]
    written = tmp_path / "rows.jsonl"
    written.write_text("".join(json.dumps({**row, **fault}) + "\n" for row in wrong))
    with pytest.raises(ConfigError, match=f"left out: {len(wrong)} faults"):
        train(learning(tiny_config, written, "dpo", run={"steps": 1}), "all-faults")
    right = [row for row in rows if row["judgement"]["verdict"] == "correct"]
    with written.open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in right))
    with pytest.raises(ConfigError, match="no pair that differs in reward"):
        train(learning(tiny_config, written, "dpo", run={"steps": 1}), "no-pairs")


def test_rows_of_assay_score_train(
    tiny_config: MakeConfig, train: Train, stored: Path, tmp_path: Path
) -> None:
    """Texts and rewards alone, encoded anew: without an end where a response was cut."""
    written = tmp_path / "scored.jsonl"
    with written.open("w") as file:
        for row in read_rollouts(stored, phase="train"):
            told = {key: row[key] for key in ("prompt", "response", "truncated", "reward")}
            told |= {"verdict": row["judgement"]["verdict"], "fault": None}
            file.write(json.dumps(told) + "\n")
    by_text = train(learning(tiny_config, written, "dpo", run={"steps": 3}), "texts")
    by_tokens = train(learning(tiny_config, stored, "dpo", run={"steps": 3}), "tokens")
    assert [row["loss"] for row in by_text] == [row["loss"] for row in by_tokens]
    config = by_recorded(learning(tiny_config, written, "dpo", run={"steps": 1}))
    with pytest.raises(ConfigError, match="have none in this model's tokens"):
        train(config, "recorded")


def test_recorded_log_probabilities_are_those_of_the_model_that_drew(
    tiny_config: MakeConfig, train: Train, stored: Path
) -> None:
    """It has not learnt since, so that both references are the same model."""
    config = learning(tiny_config, stored, "dpo", run={"steps": 3})
    runs = {"computed": config, "recorded": by_recorded(config)}
    losses = [[row["loss"] for row in train(one, name)] for name, one in runs.items()]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
