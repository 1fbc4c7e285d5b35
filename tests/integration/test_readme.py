"""The READMEs' code, as written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from assay.clients import EmbeddedServices
from assay.reward_server.border import judge
from assay.reward_server.domain import Judgement


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def test_it_is_read_in_five_minutes(repository: Path) -> None:
    assert len((repository / "README.md").read_text().splitlines()) <= 120


def test_ten_lines_call_the_api(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = python_blocks(repository / "README.md")[0]
    assert "127.0.0.1:50051" in code
    with EmbeddedServices() as services:
        exec(code.replace("127.0.0.1:50051", services.address), {})
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("1.0 Judgement(")
    assert second.startswith("None Fault(reason='UNUSABLE_REFERENCE'")


def test_a_verifier_of_ones_own_works_as_shown(repository: Path) -> None:
    scope: dict[str, Any] = {}
    exec(python_blocks(repository / "reward_server/README.md")[0], scope)
    verifier = scope["contains"]
    assert verifier.examples
    for example in verifier.examples:
        outcome = judge(verifier, example.item)
        assert isinstance(outcome, Judgement), outcome
        assert outcome.verdict == example.verdict
