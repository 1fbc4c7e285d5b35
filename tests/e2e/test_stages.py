"""`assay stages`: runs that draw, learn from what was drawn, and go on from there."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from assay.kit.errors import ConfigError
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.recipes.chain import plan, running

FILE = """
overrides = {{ eval.prompts = 8, eval.batch_size = 8, run.steps = 2, run.checkpoint_every = 0, run.report_to = [], model.device = "cpu", model.precision = "float32", data.template = "{{question}}", reward.verifier = "exact", rollout.max_new_tokens = 4, optim.micro_batch = 0, optim.warmup_steps = 0, optim.mini_batches = 1 }}

[[stage]]
name = "samples"
base = "{configs}/grpo.toml"
overrides = {{ optim.learning_rate = 0.0, rollout.prompts_per_step = 8, rollout.group_size = 4, method.loss.kl_coef = 0.0 }}

[[stage]]
name = "dpo"
base = "{configs}/offline/dpo.toml"
rows = "samples"
overrides = {{ rollout.prompts_per_step = 4, run.steps = {steps} }}

[[stage]]
name = "rl"
base = "{configs}/grpo.toml"
model = "dpo"
overrides = {{ rollout.prompts_per_step = 4, rollout.group_size = 4 }}
"""  # noqa: E501  # TOML's inline tables are of one line


@pytest.fixture
def written(repository: Path, tmp_path: Path) -> Callable[..., Path]:
    def write(steps: int = 2) -> Path:
        path = tmp_path / "stages.toml"
        path.write_text(FILE.format(configs=repository / "configs", steps=steps))
        return path

    return write


def test_a_stage_names_one_before_it(written: Callable[..., Path], tmp_path: Path) -> None:
    path = written()
    stages = plan.load(path, ["data=rows.jsonl"], tmp_path / "out")
    assert [stage.rung for stage in stages] == ["samples", "dpo", "rl"]
    assert stages[1].config.method.offline.rows == str(stages[0].folder)
    assert stages[2].config.model.name == str(stages[1].folder / "model")
    path.write_text(path.read_text().replace('rows = "samples"', 'rows = "rl"'))
    with pytest.raises(ConfigError, match="no stage 'rl' comes before it"):
        plan.load(path, ["data=rows.jsonl"], tmp_path / "out")
    path.write_text(path.read_text().replace('name = "rl"', 'name = "dpo"'))
    with pytest.raises(ConfigError):
        plan.load(path, ["data=rows.jsonl"], tmp_path / "out")


@pytest.mark.slow
def test_stages_train_and_go_on(
    written: Callable[..., Path], tiny_model: Path, sums_file: Path, tmp_path: Path
) -> None:
    """One that fails is begun again by the same command, those before it stay."""
    given = [f"data={sums_file}", "data.columns.reference=answer", f"model={tiny_model}"]
    out, said = tmp_path / "out", io.StringIO()

    def run(rows: Path = sums_file) -> int:
        stages = plan.load(written(), [f"data={rows}", *given[1:]], out)
        return running.run(stages, out, Console(file=said, width=200))

    blocked = out / "dpo" / "0"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("in the way")
    with pytest.raises(TrainingStoppedError, match="stage 2 of 3, dpo failed"):
        run()
    drawn = (out / "samples" / "0" / "report.json").stat().st_mtime_ns
    blocked.unlink()
    assert run() == 0
    assert (out / "samples" / "0" / "report.json").stat().st_mtime_ns == drawn
    assert "stage 1 of 3, samples: done before" in said.getvalue()
    told = json.loads((out / "stages.json").read_text())
    assert list(told) == ["samples", "dpo", "rl"]
    assert told["samples"]["before"] == told["samples"]["after"], "it learns nothing"
    assert told["dpo"]["after"] == told["rl"]["before"], "it begins with what the stage trained"
