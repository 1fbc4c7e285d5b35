"""Every preset trains on vLLM, and comes to what it comes to on transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.trainer.explain.presets import published
from assay.trainer.settings import config as configs
from presets_support import in_miniature
from trainer_processes_support import SUPPORT, Job, rows, same, write
from trainer_support import SUMS, build_tiny
from vllm_support import HERE, START_S

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not HERE, reason="vllm cannot be imported: see `make test-vllm`"),
    pytest.mark.timeout(2 * START_S),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and its problems."""
    base = tmp_path_factory.mktemp("presets")
    build_tiny(base / "model")
    texts = [json.dumps({"question": f"{a}+{b}=", "answer": str(a + b)}) for a, b in SUMS]
    (base / "rows.jsonl").write_text("\n".join(texts))
    return base


@pytest.mark.parametrize("name", published())
def test_a_preset_on_vllm_is_the_preset_on_transformers(
    made: Path, tmp_path: Path, repository: Path, name: str
) -> None:
    """Asynchronous rollouts, dialogues, windows, continuations and two policies among them."""
    jobs = []
    for backend in ("hf", "vllm"):
        config = in_miniature(
            repository / "configs" / f"{name}.toml",
            made / "model",
            made / "rows.jsonl",
            f"rollout.backend={backend}",
            "rollout.vllm.max_model_length=512",
        )
        path = tmp_path / f"{backend}.toml"
        path.write_text(configs.to_toml(config).replace('"token-truncate"', '"none"'))
        jobs.append(Job(str(path), str(tmp_path / backend)))
    write(jobs, tmp_path / "jobs.json")
    done = subprocess.run(
        [sys.executable, str(SUPPORT), str(tmp_path / "jobs.json")],
        capture_output=True, text=True, timeout=START_S, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    ours, theirs = rows(tmp_path / "vllm"), rows(tmp_path / "hf")
    assert len(ours) == 2
    assert any(row["grad_norm"] > 0 for row in ours)
    same(ours, theirs)
