"""A plan against what a run takes on a CPU, in a process of its own: see plan_support.py.

Compared are the plan's peak of one device, and the memory of the process, mapped weights included,
at its peak over two steps, less what it had before it loaded the policy. The allocator is told to
give freed memory back at once: of its gaps the plan knows nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plan_support import save, shape

SCRIPT = Path(__file__).parents[1] / "plan_support.py"
GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""glibc gives freed memory back at once."""
CASES = {
    "plain": (),
    "checkpointing": ("model.gradient_checkpointing=true",),
    "reference": ("method.loss.kl_coef=0.05",),
    "lora": ("model.lora.rank=8",),
    "critic": ("method.advantage.estimator=gae", "model.gradient_checkpointing=true"),
}

if sys.platform != "linux":
    pytest.skip("reads /proc", allow_module_level=True)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_a_plan_is_within_15_percent_of_what_a_run_takes(
    case: str, tmp_path: Path, sums_file: Path
) -> None:
    from assay.trainer.plan.estimate import Setup, estimate
    from assay.trainer.settings import config

    save("60m", tmp_path / "model")
    sections: dict[str, Any] = {
        "model": {"name": str(tmp_path / "model"), "device": "cpu", "precision": "float32"},
        "data": {"source": "jsonl", "path": str(sums_file)},
        "reward": {"verifier": "exact", "timeout_s": 30},
        "optim": {"learning_rate": 1e-6, "micro_batch": 4},
        "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 124},
        "eval": {"prompts": 0},
        "run": {"steps": 2, "checkpoint_every": 0, "report_to": [], "samples_every": 0},
    }
    made = config.build(sections, CASES[case], origin="test")
    file = tmp_path / "run.toml"
    file.write_text(config.to_toml(made))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(file)],
        capture_output=True, text=True, check=False, timeout=500,
        env={**os.environ, "OMP_NUM_THREADS": "1", **GIVES_BACK},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    peak = json.loads(done.stdout.splitlines()[-1])["peak"]
    plan = estimate(made, shape("60m"), Setup("cpu", prompt=4))
    assert 0.85 <= plan.peak / peak <= 1.15, plan.rows
