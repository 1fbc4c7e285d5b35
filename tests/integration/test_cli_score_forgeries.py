"""The worst forgeries and some right programs as rewards: `assay score --verifier code`, over the
whole of the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from assay.cli.main import run
from assay.clients import EmbeddedServices
from assay.clients.execution import AssertTest, CallTest, TestCase
from forgeries import KINDS
from forgery_tricks import GROUPS

FORGERIES: Final = (
    ("unittest", "wire", "equality of type"),
    ("helper", "wire", "a metaclass"),
    ("callback", "harness", "a class whose equality is type"),
    ("unittest", "wire", "row __builtins__ a dict"),
    ("assert all", "wire", "row all a class"),
    ("unittest import", "library", "os.abort"),
    ("implicit math", "shadows", "math"),
    ("check", "values", "Fraction"),
    ("asserts", "values", "range"),
    ("calls", "values", "deque"),
    ("eval answer", "text", "exits"),
    ("int of answer", "values", "empty text"),
    ("pytest", "raises", "ValueError huge"),
    ("class unittest", "liars", "origin is MagicMock"),
)
RIGHTS: Final = (
    *(("unittest", "operator"), ("unittest import", "instance"), ("check", "lambda")),
    *(("calls", "partial"), ("pytest", "bound"), ("helper", "operator")),
    *(("callback", "operator.call"), ("iterated", "generator"), ("class unittest", "list")),
    ("stdio", "plain"),
    *(("Fraction", "alias"), ("eval answer", "plain"), ("mutated", "list.sort")),
)  # fmt: skip


def _written(test: TestCase) -> dict[str, Any]:
    """A test as rows have it."""
    if isinstance(test, AssertTest):
        return {"code": test.code, "entry_point": test.entry_point}
    if isinstance(test, CallTest):
        return {
            "function": test.function,
            "args": list(test.arguments),
            "expected": test.expected,
        }
    return {"stdin": test.stdin.decode(), "stdout": test.expected_stdout.decode()}


def _row(name: str, kind: str, source: str) -> dict[str, Any]:
    tests = [_written(test) for test in KINDS[kind].tests]
    return {"id": name, "response": f"```python\n{source}\n```", "tests": tests}


@pytest.mark.slow
def test_forgeries_earn_nothing_and_right_programs_all(tmp_path: Path) -> None:
    rows = [
        _row(f"{kind} x {trick}", kind, f"{GROUPS[group][trick]}\n{KINDS[kind].mount}")
        for kind, group, trick in FORGERIES
    ]
    rows += [_row(f"{kind} / {right}", kind, KINDS[kind].rights[right]) for kind, right in RIGHTS]
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = {"sandbox": ["--languages", "python", "--slots", "2"]}
    with EmbeddedServices(("reward", "sandbox"), arguments=flags) as services:
        command = ["score", str(source), "-o", str(out), "--target", services.address]
        assert run([*command, "--verifier", "code"]) == 0
    scored = [json.loads(line) for line in out.read_text().splitlines()]
    expected = [0.0] * len(FORGERIES) + [1.0] * len(RIGHTS)
    wrong = [
        (row["id"], row["reward"], row["fault"])
        for row, reward in zip(scored, expected, strict=True)
        if row["reward"] != reward
    ]
    assert wrong == []
