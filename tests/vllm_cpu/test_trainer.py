"""Whole runs with vLLM in the process, held against the same runs on transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainer_processes_support import SUPPORT, Job, rows, same, write
from trainer_support import SUMS, build_tiny
from vllm_support import HERE, START_S

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not HERE, reason="vllm cannot be imported: see `make test-vllm`"),
    pytest.mark.timeout(2 * START_S),
    pytest.mark.filterwarnings("ignore"),
]
RUN = """
[model]
name = "{base}/model"
device = "cpu"
precision = "float32"
[data]
path = "{base}/rows.jsonl"
[reward]
verifier = "exact"
[rollout]
backend = "{backend}"
prompts_per_step = 4
group_size = 4
max_new_tokens = 8
[optim]
learning_rate = 1e-3
[eval]
prompts = 8
[run]
steps = 4
checkpoint_every = 0
[method.loss]
importance_correction = "none"
"""


def test_a_run_on_vllm_is_the_run_on_transformers(tmp_path: Path) -> None:
    build_tiny(tmp_path / "model")
    texts = [json.dumps({"question": f"{a}+{b}=", "answer": str(a + b)}) for a, b in SUMS]
    (tmp_path / "rows.jsonl").write_text("\n".join(texts))
    jobs = []
    for backend in ("hf", "vllm"):
        config = tmp_path / f"{backend}.toml"
        config.write_text(RUN.format(base=tmp_path, backend=backend))
        jobs.append(Job(str(config), str(tmp_path / backend)))
    write(jobs, tmp_path / "jobs.json")
    done = subprocess.run(
        [sys.executable, str(SUPPORT), str(tmp_path / "jobs.json")],
        capture_output=True, text=True, timeout=START_S, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    ours, theirs = rows(tmp_path / "vllm"), rows(tmp_path / "hf")
    assert len(ours) == 4
    assert any(row["grad_norm"] > 0 for row in ours)
    same(ours, theirs)
    for row in ours:
        assert row["drift_max"] < 1e-4
