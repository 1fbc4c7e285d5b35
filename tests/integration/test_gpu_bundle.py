"""The folder for a borrowed GPU, rehearsed on the CPU: what it holds runs from where it lies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gpu") / "bundle"
    assert gpu_bundle.main([str(out), "--own"]) == 0
    return out


def test_a_bundle_holds_sources_wheels_and_commands(bundle: Path) -> None:
    wheels = {path.name.partition("-")[0] for path in (bundle / "wheels").iterdir()}
    assert wheels >= {
        "assay_rl_trainer",
        "assay_rl_genrm",
        "assay_rl_clients",
        "assay_rl_reward_server",
    }
    commands = (bundle / "RUN.md").read_text()
    assert "tests/gpu" in commands
    assert (bundle / "tree" / "tests" / "gpu" / "test_cuda_training.py").is_file()
    size = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())
    assert size < 60 * 2**20
    assert gpu_bundle.main([str(bundle), "--own"]) == 2, "there is one already"


@pytest.mark.slow
def test_its_checks_run_from_where_they_lie(bundle: Path) -> None:
    """The kernels, and one engine; all of it is `ASSAY_GPU_REHEARSAL=1 make test-gpu`."""
    tree = bundle / "tree"
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-n", "0", "-p", "no:cacheprovider",
            "tests/gpu/test_cuda_kernels.py", "tests/gpu/test_cuda_engines.py",
            "-k", "kernels or HfEngine",
        ],
        cwd=tree, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "ASSAY_GPU_REHEARSAL": "1", "OMP_NUM_THREADS": "1",
             "PYTHONPATH": f"{tree}:{tree / 'tests'}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "passed" in done.stdout


def test_what_is_there_is_not_brought_and_what_is_too_old_is(tmp_path: Path) -> None:
    listed = tmp_path / "packages.txt"
    listed.write_text("transformers==5.17.0\nNumpy==2.5.2\ntrl @ file:///somewhere\n")
    there = gpu_bundle.machine(listed)
    brought = gpu_bundle.lacking({"transformers", "numpy", "trl", "protobuf"}, there)
    assert [pin.partition("==")[0] for pin in brought] == ["protobuf", "transformers"]
    listed.write_text("transformers==5.19.2\n")
    assert gpu_bundle.lacking({"transformers"}, gpu_bundle.machine(listed)) == []
