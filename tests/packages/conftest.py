"""These tests run where they are asked for: `-m packages`, as `make test-packages` does."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves the folder out of every other run."""
    return None if "packages" in config.getoption("markexpr") else True
