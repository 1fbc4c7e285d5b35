"""Runs one row of a golden file and says where the answer differs from what is expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from golden.functions import FUNCTIONS

TOLERANCE = 1e-6


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a golden file.

    Raises:
        ValueError: the file cannot be read, or is not a list with rows of function, inputs and
            expected.
    """
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, list) or not found:
        raise ValueError(f"{path} holds no rows: a golden file is a list of at least one")
    for number, row in enumerate(found):
        lacking = {"function", "inputs", "expected"} - set(row if isinstance(row, dict) else ())
        if lacking:
            raise ValueError(f"{path}, row {number}: {', '.join(sorted(lacking))} missing")
    return found


def problem(row: dict[str, Any]) -> str:
    """What is wrong with this project's answer; empty where nothing is."""
    function = FUNCTIONS.get(row["function"])
    if function is None:
        return f"unknown function {row['function']!r}; known: {', '.join(sorted(FUNCTIONS))}"
    return difference(plain(function(**row["inputs"])), row["expected"])


def plain(value: Any) -> Any:
    """Tensors and tuples as lists and numbers."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def difference(got: Any, expected: Any, place: str = "answer") -> str:
    """Where two nested lists of numbers and texts first differ by more than the tolerance."""
    if isinstance(got, list) and isinstance(expected, list):
        if len(got) != len(expected):
            return f"{place}: {len(got)} parts, expected {len(expected)}: {got}"
        parts = (
            difference(one, other, f"{place}[{number}]")
            for number, (one, other) in enumerate(zip(got, expected, strict=True))
        )
        return next(filter(None, parts), "")
    if isinstance(got, int | float) and isinstance(expected, int | float):
        close = abs(got - expected) <= TOLERANCE
        return "" if close else f"{place}: {got!r}, expected {expected!r}"
    return "" if got == expected else f"{place}: {got!r}, expected {expected!r}"
