"""A plan's peak against what CUDA's allocator gave a run at its most, over two steps.

The plan counts tensors and no gaps between them, and so does `peak_memory_gib`.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from e2e.test_plan_memory import CASES
from plan_support import save, shape

pytestmark = pytest.mark.gpu
Train = Callable[..., list[dict[str, Any]]]


@pytest.mark.parametrize("case", CASES)
def test_a_plan_is_within_15_percent_of_what_a_run_takes(
    device: str, case: str, tmp_path: Path, sums_file: Path, train: Train
) -> None:
    if device == "cpu":
        pytest.skip("test_plan_memory.py compares on a CPU")
    from assay.trainer.plan.estimate import Setup, estimate
    from assay.trainer.settings import config

    save("135m", tmp_path / "model")
    sections: dict[str, Any] = {
        "model": {"name": str(tmp_path / "model"), "precision": "mixed"},
        "data": {"source": "jsonl", "path": str(sums_file)},
        "reward": {"verifier": "exact", "timeout_s": 30},
        "optim": {"learning_rate": 1e-6, "micro_batch": 32},
        "rollout": {"prompts_per_step": 8, "group_size": 8, "max_new_tokens": 252},
        "eval": {"prompts": 0},
        "run": {"steps": 2, "checkpoint_every": 0, "report_to": [], "samples_every": 0},
    }
    made = config.build(sections, CASES[case], origin="test")
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    rows = train(made)
    peak = max(row["peak_memory_gib"] for row in rows) * 2**30 - before
    plan = estimate(made, shape("135m"), Setup("cuda", prompt=4))
    told = {"case": case, "peak": peak, "plan": plan.peak}
    print(json.dumps(told))
    assert 0.85 <= plan.peak / peak <= 1.15, (told, plan.rows)
