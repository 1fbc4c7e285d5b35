"""`assay lab` as a command: our trainer and TRL, in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.cli.main import run

pytestmark = pytest.mark.slow


def test_our_trainer_forgets_a_fault_and_trl_beside_another_function_learns_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "lab.json"
    cells = [f"--only={name}:fault" for name in ("assay", "trl", "trl-beside")]
    assert run(["lab", *cells, "--json", str(out)]) == 0
    found = {one["name"]: one for one in json.loads(out.read_text())["trials"]}
    colours = {name: one["cells"]["fault"]["colour"] for name, one in found.items()}
    assert colours == {"assay": "green", "trl": "yellow", "trl-beside": "red"}
    told = found["assay"]["cells"]["fault"]
    assert (told["unjudged"], told["difference"]["largest"]) == (["a3"], pytest.approx(0, abs=1e-4))
    assert found["trl"]["cells"]["fault"]["says"] == "same direction, 0.86 of the step"
    assert found["trl-beside"]["cells"]["fault"]["says"] == "a fault trains as the reward 0"
    assert "✗" in capsys.readouterr().out

    assert run(["lab", "trlx"]) == 2
    assert "there is no trainer 'trlx'; did you mean 'trl'" in capsys.readouterr().err
    assert run(["lab", "--only", "trl"]) == 2
    assert run(["lab", "--page", "x.md"]) == 2
