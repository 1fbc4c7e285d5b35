"""`assay train-rm` on two processes that torchrun started, against one process. CPUs, gloo."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trainer_processes_support import BIN, rows

PAIRS = [
    {"prompt": f"Say something {n}", "chosen": f"fine {n % 7} thing", "rejected": f"awful {n % 5}"}
    for n in range(40)
]
SMALL = {
    "model.name": "tiny", "model.device": "cpu", "model.precision": "float32", "tiny.hidden": 64,
    "tiny.vocabulary": 420, "data.max_tokens": 1024, "optim.learning_rate": 3e-3, "optim.batch": 8,
    "optim.micro_batch": 4, "eval.prompts": 8, "run.steps": 6, "run.checkpoint_every": 3,
    "run.keep_checkpoints": 2, "run.log_every": 1,
}  # fmt: skip


def words(data: Path, kind: str, **more: Any) -> list[str]:
    """The command line of a tiny run."""
    path = data / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in PAIRS), encoding="utf-8")
    method = f"kind = '{kind}'\n" + ("template = 'preference@1'\n" if kind == "pairwise" else "")
    (data / "rm.toml").write_text(f"[data]\npaths = ['{path}']\n[method]\n{method}")
    given = SMALL | {key.replace("__", "."): value for key, value in more.items()}
    return [str(data / "rm.toml"), *(f"{key}={json.dumps(value)}" for key, value in given.items())]


def launched(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [BIN / "torchrun", "--nproc-per-node", str(processes), "-m"]
    return subprocess.run(
        [*map(str, command), "assay.trainer.recipes.reward_model", *arguments],
        capture_output=True, text=True, check=False, timeout=200,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def near(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert [row["step"] for row in found] == [row["step"] for row in expected]
    for row, other in zip(found, expected, strict=True):
        for name in ("loss", "grad_norm", "learning_rate"):
            assert row[name] == pytest.approx(other[name], rel=1e-3, abs=1e-6), (name, row["step"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bradley-terry", "pairwise"])
def test_two_processes_give_the_curve_of_one(tmp_path: Path, kind: str) -> None:
    given = words(tmp_path, kind)
    for count, name in ((1, "one"), (2, "two")):
        done = launched(count, *given, "--run-dir", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
    near(rows(tmp_path / "two"), rows(tmp_path / "one"))
    assert "2 processes" in done.stdout
    assert done.stdout.count("trained for") == 1
    one, two = (
        json.loads((tmp_path / name / "report.json").read_text()) for name in ("one", "two")
    )
    for name, figure in one["after"]["figures"].items():
        assert two["after"]["figures"][name]["value"] == pytest.approx(figure["value"], abs=0.05)
    assert (tmp_path / "two" / "model" / "model.safetensors").is_file()
    whole = rows(tmp_path / "two")
    for left in ("model", "checkpoints/checkpoint-6"):
        (tmp_path / "two" / left).rename(tmp_path / f"{Path(left).name}-before")
    done = launched(2, "--resume", str(tmp_path / "two"))
    assert done.returncode == 0, done.stderr
    near(rows(tmp_path / "two"), whole)


@pytest.mark.slow
def test_a_batch_that_cannot_be_dealt_is_told_once(tmp_path: Path) -> None:
    given = words(tmp_path, "bradley-terry", optim__batch=9, optim__micro_batch=3)
    done = launched(2, *given, "--run-dir", str(tmp_path / "run"))
    said = [line for line in done.stderr.splitlines() if line.startswith("assay: error")]
    cannot = "optim.batch = 9 cannot be dealt to 2 processes in parts of 3; make it a multiple"
    assert said == [f"assay: error: {cannot}"]
    assert not (tmp_path / "run").exists()
