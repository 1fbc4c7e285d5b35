"""`assay score` against a real server: data and tests as references, parameters, profiles."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import run
from assay.clients import EmbeddedServices
from sandbox_service import ANY_FLOOR

Rows = list[dict[str, Any]]
RIGHT = "```python\nn = int(input())\nprint(2 * n)\n```"
WRONG = "```python\nprint(2)\n```"
ADD = "```python\ndef add(a, b):\n    return a + b\n```"


@pytest.fixture(scope="module")
def services() -> Iterator[EmbeddedServices]:
    flags = {"sandbox": [*ANY_FLOOR, "--languages", "python", "--slots", "2"]}
    with EmbeddedServices(("reward", "sandbox"), arguments=flags) as services:
        yield services


def score(rows: Rows, tmp_path: Path, services: EmbeddedServices, *arguments: str) -> Rows:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["score", str(source), "-o", str(out), "--target", services.address, *arguments]
    assert run(command) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_data_as_reference(services: EmbeddedServices, tmp_path: Path) -> None:
    box = {"boxes": [[0, 0, 10, 10]]}
    rows: Rows = [
        {"verifier": "boxes", "response": "[[0, 0, 10, 10]]", "reference": box},
        {"verifier": "boxes", "response": "[0, 0, 10, 10]", "reference": json.dumps(box)},
        {"verifier": "boxes", "response": "[[0, 0, 10, 10]]", "reference": [[0, 0, 10, 10]]},
        {"verifier": "boxes", "response": "[0, 0, 10, 10]", "reference": {"boxes": "none"}},
    ]
    scored = score(rows, tmp_path, services)
    assert [row["reward"] for row in scored] == [1.0, 1.0, 1.0, None]
    assert scored[3]["fault"]["reason"] == "UNUSABLE_REFERENCE"
    assert scored[0]["reference"] == box


def test_tests_in_every_shape_run_in_the_sandbox(
    services: EmbeddedServices, tmp_path: Path
) -> None:
    stdio = [{"stdin": "2\n", "stdout": "4\n"}, {"stdin": "1\n", "stdout": "2\n"}]
    rows: Rows = [
        {"response": RIGHT, "tests": stdio},
        {"response": WRONG, "tests": stdio},
        {"response": WRONG, "tests": stdio, "params": {"scoring": "fraction"}},
        {"response": RIGHT, "tests": {"inputs": ["3\n"], "outputs": ["6\n"]}},
        {"response": ADD, "tests": {"tests": [{"args": [1, 2], "expected": 3}], "fn_name": "add"}},
        {"response": ADD, "tests": {"asserts": ["assert add(1, 2) == 3", "assert add(1, 1) == 2"]}},
        {
            "response": ADD,
            "tests": {
                "code": "def check(candidate):\n    assert candidate(2, 2) == 4",
                "entry_point": "add",
            },
        },
    ]
    scored = score(rows, tmp_path, services, "--task", "code")
    assert [row["reward"] for row in scored] == [1.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0], scored


def test_a_profile_is_compared_with_its_verifier(
    services: EmbeddedServices, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hedged = r"\boxed{4} \boxed{5} \boxed{4}"
    rows: Rows = [
        {"id": "plain", "response": r"\boxed{4}", "reference": "4"},
        {"id": "hedged", "response": hedged, "reference": "4"},
    ]
    pair = ("--compare", "math", "math-guarded", "--all")
    plain, several = score(rows, tmp_path, services, *pair)
    assert plain["agree"] is True
    assert plain["judgement_b"]["verifier"] == "math-guarded"
    assert several["judgement_a"]["suspicions"]
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert "suspicion several-boxed-answers of A │ 1" in said


def test_parameters_change_the_judgement(services: EmbeddedServices, tmp_path: Path) -> None:
    rows: Rows = [{"response": "paris", "reference": "Paris"}]
    known = ("--verifier", "exact", "--params")
    assert score(rows, tmp_path, services, *known, "case_sensitive=false")[0]["reward"] == 1.0
    assert score(rows, tmp_path, services, *known, "case_sensitive=true")[0]["reward"] == 0.0
