"""The tables of `proof` and `verilog-equivalence`, and their programs run on this machine."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from assay.reward_server.verifiers import proof_runner, verilog_runner

TESTS = Path(__file__).parent


def needs(*tools: str) -> pytest.MarkDecorator:
    """Skips where a tool is not installed; CI has none of them."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


def table(name: str) -> list[dict[str, Any]]:
    text = (TESTS / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


PROOFS = table("proofs")
CIRCUITS = table("circuits")


def prove(row: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    """What the program of `proof` writes on a row."""
    task = {
        "header": "",
        "definitions": "",
        "axioms": [],
        "name": "goal",
        "nonce": "0f1e2d3c",
        "seconds": 20.0,
        "effort": 200_000,
        "refuse_trivial": False,
        **row,
        **changes,
    }
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        proof_runner.work(task, lines.append, Path(folder))
    return lines


def compare(row: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    """What the program of `verilog-equivalence` writes on a row."""
    task = {
        "top": "top",
        "initial": "undefined",
        "cycles": 12,
        "vectors": 1_000,
        "seconds": 5.0,
        "seed": 20_260,
        **row,
        **changes,
    }
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        verilog_runner.work(task, lines.append, Path(folder))
    return lines


def accepted(lines: list[dict[str, Any]]) -> bool:
    return "candidate" in lines[-1] and lines[-1]["candidate"].get("trouble") == ""
