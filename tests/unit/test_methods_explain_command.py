"""`assay train --explain` as it is typed: quick, and with mistakes in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli.main import run

GIVEN = ["data=rows.jsonl", "model=org/model"]


def test_the_command_loads_no_torch_and_makes_nothing(repository: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from assay.cli.main import run; code = run(sys.argv[1:]); "
        "sys.exit(code or 99 * ('torch' in sys.modules))"
    )
    arguments = ["train", "--explain", str(repository / "configs/vapo.toml"), *GIVEN]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("vapo: org/model, 313 steps of 8192 samples\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--explain"], 2, "--explain needs a CONFIG.toml"),
        (["--explain", "DAPO", "ablate=kl"], 1, "ablate: kl is not on; on here: dynamic-sampling"),
        (["--explain", "DAPO", "run.stepz=3"], 1, "run.stepz is not a setting"),
    ],
)
def test_mistakes_are_one_line(
    repository: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    path = str(repository / "configs" / "dapo.toml")
    assert run(["train", *(path if word == "DAPO" else word for word in arguments)]) == code
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1
