"""Real optimisation steps on rows of GSM8K, judged by the real math verifier over the network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

Train = Callable[..., list[dict[str, Any]]]
MakeConfig = Callable[..., Any]


def moved(before: Path, after: Path) -> float:
    """The largest change of a weight between two saved models."""
    from safetensors.torch import load_file

    old, new = load_file(before / "model.safetensors"), load_file(after / "model.safetensors")
    assert old.keys() == new.keys()
    return max((new[name].float() - old[name].float()).abs().max().item() for name in old)


def gsm8k(shared_data: Path, **settings: Any) -> dict[str, Any]:
    path = shared_data / "gsm8k_train.jsonl.gz"
    columns = {"prompt": "problem", "reference": "answer"}
    return {"source": "jsonl", "path": str(path), "columns": columns, "max_rows": 64, **settings}


@pytest.mark.slow
@pytest.mark.data
def test_the_tiny_model_takes_steps(
    tiny_config: MakeConfig, train: Train, tmp_path: Path, tiny_model: Path, shared_data: Path
) -> None:
    """It solves nothing, but an answer that can be read earns more than one that cannot."""
    config = tiny_config(
        data=gsm8k(shared_data, max_rows=8),  # which fit into the tiny model's context
        reward={"verifier": "math", "parameters": {"unparsed_reward": -1.0}},
        rollout={"prompts_per_step": 4, "group_size": 8, "max_new_tokens": 8},
        eval={"prompts": 4},
        run={"steps": 2},
    )
    rows = train(config, transport=None)
    assert [row["fault_ratio"] for row in rows] == [0, 0]
    assert all(row["verdicts"].get("unparsed", 0) > 0 for row in rows)
    assert all(row["grad_norm"] > 0 and row["signal_ratio"] > 0 for row in rows)
    assert moved(tiny_model, tmp_path / "run" / "model") > 1e-5


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.data
@pytest.mark.timeout(900)  # the first time the model is downloaded and converted
def test_the_pretrained_model_takes_steps(
    tiny_config: MakeConfig, train: Train, tmp_path: Path, shared_data: Path
) -> None:
    """SmolLM2-135M from PyPI: right answers are rare, boxed ones are not."""
    from assay.kit import pretrained

    example = {"user": "Tom has 3 apples and buys 4. How many has he?", "assistant": "\\boxed{7}"}
    config = tiny_config(
        model={"name": pretrained.SMOLLM2, "precision": "auto"},
        data=gsm8k(shared_data, examples=[example]),
        reward={"verifier": "math", "parameters": {"format_weight": 0.2}},
        optim={"learning_rate": 1e-5, "micro_batch": 4},
        rollout={"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 12},
        eval={"prompts": 0},
        run={"steps": 2},
    )
    torch.set_num_threads(2)
    rows = train(config, transport=None)
    assert [row["fault_ratio"] for row in rows] == [0, 0]
    assert any(row["grad_norm"] > 0 and row["signal_ratio"] > 0 for row in rows)
    folder = pretrained.ensure(pretrained.SMOLLM2, lambda _text: None)
    assert moved(folder, tmp_path / "run" / "model") > 1e-6
