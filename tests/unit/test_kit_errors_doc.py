"""docs/reference/errors.md holds the lexicon of reasons, exactly."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.kit.reasons import LEXICON


@pytest.fixture(scope="module")
def script(repository: Path) -> dict[str, Any]:
    return runpy.run_path(str(repository / "scripts" / "errors_doc.py"))


def test_the_table_is_that_of_the_lexicon(repository: Path, script: dict[str, Any]) -> None:
    document = (repository / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    table = script["render_table"]()
    assert script["with_table"](document, table) == document, (
        "docs/reference/errors.md differs: run `python scripts/errors_doc.py write`"
    )
    rows = [line for line in document.splitlines() if line in table.splitlines()]
    assert len(rows) == len(LEXICON) + 2


def test_a_document_without_marks_is_left_alone(script: dict[str, Any]) -> None:
    for document in ("", script["BEGIN"], script["END"] + script["BEGIN"]):
        with pytest.raises(ValueError, match="mark"):
            script["with_table"](document, "table\n")


@pytest.mark.parametrize(("verb", "code"), [("check", 0), ("no such verb", 2)])
def test_the_command(repository: Path, verb: str, code: int) -> None:
    command = [sys.executable, str(repository / "scripts" / "errors_doc.py"), verb]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
