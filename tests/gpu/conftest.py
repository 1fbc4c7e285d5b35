"""These tests run where they are asked for: `-m gpu`, as `make test-gpu` does.

They need a CUDA device; with ASSAY_GPU_REHEARSAL=1 the same code runs on the CPU, with less of
everything. What is only true of CUDA is skipped there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.conftest import loaded, no_curves, sums_file, tiny_model, train  # noqa: F401  # fixtures


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves the folder out of every other run."""
    return None if "gpu" in config.getoption("markexpr") else True


@pytest.fixture(scope="session")
def device() -> str:
    """Where everything runs: "cuda", or "cpu" in a rehearsal."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if os.environ.get("ASSAY_GPU_REHEARSAL"):
        return "cpu"
    pytest.skip("needs a CUDA device; ASSAY_GPU_REHEARSAL=1 rehearses on the CPU")
