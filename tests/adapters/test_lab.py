"""The lab's contestants, each in a process of its own: the colours that the documentation shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.lab.running import contestant_names, try_apart

pytestmark = [pytest.mark.adapters, pytest.mark.timeout(900)]

PUBLISHED = json.loads((Path(__file__).parents[2] / "bench/lab.json").read_text())["trials"]
SHOWN: dict[str, Any] = {trial["name"]: trial["cells"] for trial in PUBLISHED}
SCRIPTS = ["clean", "fault", "lone", "recanted", "stray"]


@pytest.mark.parametrize("name", contestant_names())
def test_a_contestant_does_what_its_row_shows(name: str) -> None:
    trial = try_apart(name, SCRIPTS)
    cells = {script: (cell.colour, cell.says) for script, cell in trial.cells.items()}
    if all(colour == "grey" for colour, _ in cells.values()):
        pytest.skip(trial.version)  # a checkout that is not on the path
    shown = SHOWN[name]
    assert cells == {script: (shown[script]["colour"], shown[script]["says"]) for script in SCRIPTS}
