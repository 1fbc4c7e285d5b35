"""`assay code-prm`: its samples by a real model, and the whole of it with real services."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from assay.kit.runs.records import read_rows
from assay.trainer.data.problems import load_problems
from assay.trainer.recipes.code_prm import config as configs
from assay.trainer.recipes.code_prm import stages
from assay.trainer.recipes.code_prm.commands import code_prm
from assay.trainer.recipes.code_prm.sampling import draw
from assay.trainer.recipes.code_prm.stages import Paths

FILE = "configs/pipelines/code_prm.toml"
BOTH = "train.overrides"


@pytest.fixture
def words(tiny_model: Path, tmp_path: Path) -> list[str]:
    """Settings of a pipeline that is as small as can be: sums are programs too."""
    path = tmp_path / "rows.jsonl"
    rows = [
        {"question": f"{a}+{b}=", "tests": [{"stdin": "", "stdout": "" if b else "x\n"}]}
        for a in range(4)
        for b in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [
        f"start.policy={tiny_model}",
        "problems.source=jsonl",
        f"problems.path={path}",
        f"{BOTH}.model.gradient_checkpointing=false",
        f"{BOTH}.reward.parameters.extraction=whole",
        f"{BOTH}.rollout.prompts_per_step=4",
        f"{BOTH}.rollout.max_new_tokens=6",
        f"{BOTH}.optim.micro_batch=0",
        f"{BOTH}.eval.prompts=4",
        f"{BOTH}.run.steps=2",
        f"{BOTH}.run.report_to=[]",
        "samples.checkpoints=2",
        "samples.per_prompt=2",
        "labels.completions=2",
        "labels.keep=full",
        "prm.overrides.run.steps=2",
        "prm.overrides.eval.prompts=2",
        "prm.overrides.optim.micro_batch=0",
    ]


def test_samples_go_on_where_they_were_stopped(
    repository: Path, tiny_model: Path, tmp_path: Path, words: list[str]
) -> None:
    plan = configs.load(repository / FILE, words, tmp_path / "out")
    problems = load_problems(plan.baseline.data, eval_prompts=4).train
    assert len(problems) == 12

    def drawn(path: Path) -> list[dict[str, Any]]:
        count = draw(
            plan.baseline,
            problems,
            tiny_model,
            path,
            number=4,
            per_prompt=2,
            temperature=1.0,
            batch=8,
        )
        rows = read_rows(path)
        assert count == len(rows) == 24
        return rows

    whole = drawn(tmp_path / "whole.jsonl")
    assert [row["question"] for row in whole[::2]] == [p.question for p in problems]
    assert len({row["response"] for row in whole}) > 4
    assert all(row["prompt"][0]["content"] == row["question"] for row in whole)
    lines = (tmp_path / "whole.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_text("".join(lines[:9]) + lines[9][:20])
    assert drawn(tmp_path / "cut.jsonl") == whole, "one that a kill left incomplete is drawn anew"
    assert drawn(tmp_path / "cut.jsonl") == whole
    paths = Paths(tmp_path / "out")
    for number in plan.checkpoints:
        paths.samples(number).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tmp_path / "whole.jsonl", paths.samples(number))
    texts = {(row["question"], row["response"]) for row in whole if row["response"].strip()}
    assert stages.gather_programs(plan, paths) == len(texts)
    assert paths.is_whole("samples")


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
def test_the_whole_pipeline_by_one_command(
    repository: Path, tmp_path: Path, words: list[str]
) -> None:
    """Real services and child processes; then once more, with nothing left to do."""
    out = tmp_path / "out"
    command = [str(repository / FILE), *words, "--dir", str(out)]
    result = CliRunner().invoke(code_prm, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    report = json.loads((out / "report.json").read_text())
    assert set(report["seconds"]) == {"baseline", "samples", "labels", "prm", "dense"}
    assert all(value is not None for value in report["accuracy"].values())
    assert report["labels"]["programs"] == len(read_rows(out / "steps.jsonl")) > 0
    dense = json.loads((out / "dense" / "report.json").read_text())
    assert dense["after"]["faults"] == 0
    again = CliRunner().invoke(code_prm, command, catch_exceptions=False)
    assert again.output.count("done before") == 5
    assert json.loads((out / "report.json").read_text()) == report
