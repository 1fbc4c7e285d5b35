"""`assay stages`: runs that draw, learn from what was drawn, and go on from there."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from assay.kit.errors import ConfigError
from assay.kit.runs import checkpoints
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.recipes.chain import choosing, plan, running

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
overrides = {{ rollout.prompts_per_step = 4, run.steps = {steps}, run.checkpoint_every = 1, run.keep_checkpoints = 2 }}

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


def test_a_choice_of_checkpoints_needs_them_kept(
    written: Callable[..., Path], tmp_path: Path
) -> None:
    path = written()
    path.write_text(path.read_text().replace('model = "dpo"', 'model = "dpo"\nentropy = 0.5'))
    stages = plan.load(path, ["data=rows.jsonl"], tmp_path / "out")
    assert stages[2].config.model.name == str(tmp_path / "out" / "rl" / "begins-with")
    for override, says in {
        "dpo:run.steps=3": "set run.keep_checkpoints=3 there",
        "dpo:run.checkpoint_every=0": "set run.checkpoint_every there",
        "dpo:model.lora.rank=4": "set model.lora.rank=0 there",
    }.items():
        with pytest.raises(ConfigError, match=says):
            plan.load(path, ["data=rows.jsonl", override], tmp_path / "out")
    path.write_text(path.read_text().replace('model = "dpo"', ""))
    with pytest.raises(ConfigError, match="chooses from its `model`"):
        plan.load(path, ["data=rows.jsonl"], tmp_path / "out")


@given(
    st.dictionaries(st.integers(1, 30), st.floats(0, 5), min_size=1),
    st.lists(st.integers(1, 30), unique=True).map(sorted),
    st.floats(0.01, 5),
)
def test_the_latest_checkpoint_of_enough_entropy_is_chosen(
    entropy: dict[int, float], steps: list[int], least: float
) -> None:
    rows = [{"step": step, "entropy": value} for step, value in sorted(entropy.items())]
    found = choosing.entropies([*rows, {"step": 1, "entropy": None}], steps)
    for step, mean in found.items():
        before = max((one for one in steps if one < step), default=0)
        led = [value for at, value in entropy.items() if before < at <= step]
        assert mean == pytest.approx(sum(led) / len(led))
    chosen = choosing.latest_above(found, least)
    enough = [step for step, mean in found.items() if mean >= least]
    assert chosen == (max(enough) if enough else None)


def test_what_is_chosen_is_linked_and_said(tmp_path: Path) -> None:
    rows = [{"step": step, "entropy": 2 - step / 10} for step in range(1, 13)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for step in (4, 8, 12):
        with checkpoints.staged(tmp_path / "checkpoints", step) as staging:
            (staging / f"checkpoint-{step}").mkdir()
            (staging / f"checkpoint-{step}" / "config.json").write_text("{}")
    link = tmp_path / "rl" / "begins-with"
    said = choosing.Beginning(tmp_path, 1.3, link).choose()
    assert "begins with checkpoint-8 " in said
    assert "1.75 at step 4, 1.35 at step 8, 0.95 at step 12" in said
    assert link.resolve() == tmp_path / "checkpoints" / "checkpoint-8"
    choosing.Beginning(tmp_path, 0.9, link).choose()
    assert link.resolve().name == "checkpoint-12"
    with pytest.raises(TrainingStoppedError, match=r"has an entropy of 1\.8 nats"):
        choosing.Beginning(tmp_path, 1.8, link).choose()
    (link / "config.json").write_text("other")
    with pytest.raises(ConfigError, match="is damaged"):
        choosing.Beginning(tmp_path, 0.9, link).choose()


@pytest.mark.slow
def test_stages_train_and_go_on(
    written: Callable[..., Path], tiny_model: Path, sums_file: Path, tmp_path: Path
) -> None:
    """One that fails is begun again by the same command, those before it stay."""
    told_all = [f"data={sums_file}", "data.columns.reference=answer", f"model={tiny_model}"]
    out, said = tmp_path / "out", io.StringIO()

    def run(rows: Path = sums_file) -> int:
        path = written()
        path.write_text(path.read_text().replace('model = "dpo"', 'model = "dpo"\nentropy = 1e-6'))
        stages = plan.load(path, [f"data={rows}", *told_all[1:]], out)
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
    assert "begins with checkpoint-2 of " in said.getvalue()
    assert (out / "rl" / "begins-with").resolve().name == "checkpoint-2"
