"""`make validate-data` on samples, and on files that are not there or hold what cannot be used."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def validate(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(repository / "scripts" / "validate_data.py"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, env={"COLUMNS": "200"}
    )


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.mark.slow
@pytest.mark.data
def test_samples_of_the_benchmark_files_can_be_trained_on(
    repository: Path, shared_data: Path
) -> None:
    done = validate(repository, "--data", str(shared_data), "--rows", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "BELOW" not in done.stdout
    assert "passed over" not in done.stdout
    assert "dapo_math_17k" in done.stdout


@pytest.mark.data
@pytest.mark.slow
def test_whole_benchmark_files_can_be_trained_on(repository: Path, shared_data: Path) -> None:
    done = validate(repository, "--data", str(shared_data))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_what_fails_is_listed_and_what_is_absent_is_said(repository: Path, tmp_path: Path) -> None:
    rows = [{"id": "good", "answer": "4"}, {"id": "blank", "answer": " "}]
    write(tmp_path / "math500.jsonl.gz", rows)
    done = validate(repository, "--data", str(tmp_path), "math500", "svamp")
    assert done.returncode == 1
    assert "svamp: passed over" in done.stdout
    assert "math500  blank  UNUSABLE_REFERENCE" in done.stdout
    assert "good" not in done.stdout
    assert "50.00 %" in done.stdout
    assert "BELOW" in done.stdout
    unknown = validate(repository, "nothing")
    assert unknown.returncode == 2
    assert "no plan for 'nothing'" in unknown.stderr
