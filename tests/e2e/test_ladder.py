"""`assay ladder` with real runs in processes of their own, against a reward server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import run as assay
from assay.clients.testing import FakeRewardServer
from assay.kit.runs.records import read_rows
from assay.trainer.settings import config as configs
from assay.trainer.settings.registry import parts_on

LADDER = """
base = "base.toml"
seeds = [0]
threshold = { metric = "reward", value = 0.0 }

[[rung]]
name = "plain"
ablate = ["clip-higher"]

[[rung]]
name = "broken"
overrides = { data.columns.prompt = "nothing" }

[[rung]]
name = "higher"
"""


@pytest.mark.slow
def test_a_ladder_of_real_runs(
    tiny_config: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    base = tiny_config(
        method={"loss": {"clip_high": 0.28}},
        rollout={"prompts_per_step": 4, "group_size": 4, "max_new_tokens": 3},
        eval={"prompts": 10},
        run={"steps": 3},
    )
    (tmp_path / "base.toml").write_text(configs.to_toml(base), encoding="utf-8")
    (tmp_path / "steps.toml").write_text(LADDER, encoding="utf-8")
    folder = tmp_path / "out"
    with FakeRewardServer() as server:
        arguments = ["ladder", str(tmp_path / "steps.toml"), f"reward.target={server.address}"]
        with pytest.raises(SystemExit) as caught:
            assay([*arguments, "--dir", str(folder), "--jobs", "2"])
    said = capsys.readouterr().out
    logs = "".join(path.read_text() for path in sorted(folder.rglob("*.log")))
    assert caught.value.code == 1, said + logs
    assert "no column 'nothing'" in said, "the reason of the rung that failed"
    assert not (folder / "broken" / "0").exists()
    for name, parts in (("plain", set()), ("higher", {"clip-higher"})):
        done = folder / name / "0"
        assert [row["step"] for row in read_rows(done / "metrics.jsonl")] == [1, 2, 3], logs
        kept = configs.load(done / "config.toml")
        on = {part.name for part in parts_on(kept)}
        assert on & {"clip-higher"} == parts
        assert kept.ablate == (() if parts else ("clip-higher",))
        assert f"{name}, seed 0: finished" in said
    found = json.loads((folder / "ladder.json").read_text())
    plain, broken, higher = found["rungs"]
    assert (plain["seeds"], broken["seeds"], higher["seeds"]) == ([0], [], [0])
    for rung in (plain, higher):
        assert 0 <= rung["estimates"]["accuracy"]["mean"] <= 1
        assert rung["estimates"]["entropy"]["mean"] > 0
    # Both rungs answer the same held-out prompts with the same weights before training.
    before = [
        json.loads((folder / name / "0" / "report.json").read_text())["before"]["accuracy"]
        for name in ("plain", "higher")
    ]
    assert before[0] == before[1]
    assert (folder / "ladder.png").stat().st_size > 20_000
    assert "| plain | 1 of 1 |" in (folder / "ladder.md").read_text()
