"""The quickstart itself, as README says it: `make test-all`, for it takes minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench import quickstart

from assay.kit.runs.stats import wilson


@pytest.mark.exhaustive
@pytest.mark.model
@pytest.mark.timeout(3600)
def test_the_command_gives_what_readme_says(repository: Path, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "assay"), "train", "configs/quickstart.toml"]
    asked = [f"run.dir={tmp_path}"]
    done = subprocess.run([*command, *asked], cwd=repository, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    [folder] = tmp_path.iterdir()
    mine = quickstart.result(folder)
    [said] = [r for r in json.loads(quickstart.RECORD.read_text())["runs"] if r["seed"] == 0]
    for when in ("before", "after"):
        low, high = wilson(mine[when], mine["judged"])
        assert low <= said[when] / said["judged"] <= high, (when, mine, said)
