"""Golden values: `pytest tests/golden --golden FILE` checks any file of golden.json's format."""

from __future__ import annotations

from typing import Any

import pytest

from golden.checking import problem


def test_golden_row(golden_row: dict[str, Any]) -> None:
    wrong = problem(golden_row)
    if wrong:
        pytest.fail(f"{golden_row['function']} ({golden_row.get('spec', 'no source')}): {wrong}")
