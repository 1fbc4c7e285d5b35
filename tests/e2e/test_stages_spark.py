"""SPARK by stages: a judge criticises, learns from it, and then rewards the policy."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from assay.kit.errors import ConfigError
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.chain import plan, running

FILE = """
overrides = {{ eval.prompts = 0, run.steps = 2, run.checkpoint_every = 0, run.report_to = [], model.device = "cpu", model.precision = "float32", data.template = "{{question}}", reward.verifier = "exact", reward.timeout_s = 300.0, rollout.max_new_tokens = 3, rollout.prompts_per_step = 2, rollout.group_size = 2, optim.micro_batch = 0, optim.warmup_steps = 0, optim.mini_batches = 1, method.loss.kl_coef = 0.0 }}

[[stage]]
name = "verifier"
command = "train-rm"
base = "{configs}/rm-critique.toml"
overrides = {{ model.name = "tiny", tiny.hidden = 64, tiny.layers = 1, tiny.vocabulary = 420, model.lora.rank = 0, data.paths = ["{critiques}"], optim.learning_rate = 5e-3, optim.batch = 4, optim.warmup_steps = 0, eval.prompts = 0, run.steps = 40, run.report_to = [] }}

[[stage]]
name = "samples"
base = "{configs}/grpo.toml"
overrides = {{ optim.learning_rate = 0.0 }}

[[stage]]
name = "labels"
command = "label-critiques"
rows = "samples"
model = "verifier"
services = ["--no-self-test"]  # it says of everything that it is right
options = {{ votes = 2, temperature = 0.2, max-tokens = 60 }}

[[stage]]
name = "prm"
command = "train-rm"
base = "{configs}/rm-critique.toml"
rows = "labels"
model = "verifier"
overrides = {{ model.lora.rank = 0, optim.batch = 2, optim.micro_batch = 2, optim.warmup_steps = 0, eval.prompts = 0, run.steps = 2, run.report_to = [] }}

[[stage]]
name = "rl"
base = "{configs}/grpo.toml"
judge = "prm"
services = ["--no-self-test"]
overrides = {{ reward.verifier = "judge", method.gold.verifier = "exact", reward.parameters = {{ against = "prompt", scoring = "consensus", votes = 1, max_tokens = 60 }} }}
"""  # noqa: E501  # TOML's inline tables are of one line


@pytest.fixture
def written(repository: Path, tmp_path: Path) -> Path:
    """The file of stages, and critiques that say the same of everything."""
    said = "Step 1: correct\nVerdict: correct"
    rows = [{"prompt": f"{n}+1=", "response": str(n + 1), "critique": said} for n in range(9)]
    critiques = tmp_path / "critiques.jsonl"
    critiques.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = tmp_path / "spark.toml"
    path.write_text(FILE.format(configs=repository / "configs", critiques=critiques))
    return path


def test_stages_of_other_commands_are_checked_first(
    written: Path, repository: Path, tmp_path: Path
) -> None:
    whole, out = written.read_text(), tmp_path / "out"
    own = ["labels:votes=3", "labels:meta-critique=true", "labels:with-truth=false"]
    stages = plan.load(written, ["data=rows.jsonl", *own], out)
    assert [stage.rung for stage in stages] == ["verifier", "samples", "labels", "prm", "rl"]
    _, samples, labels, prm, rl = stages
    assert isinstance(labels, plan.LabelStage)
    assert isinstance(prm, plan.RmStage)
    assert isinstance(rl, plan.RungRun)
    assert labels.source == samples.folder
    assert labels.options["votes"] == "3"
    assert labels.options["meta-critique"] is True
    assert f"data.paths={json.dumps([str(labels.labels)])}" in prm.overrides
    assert rl.judge == ("--model", f"judge={prm.folder / 'model'}", "--no-self-test")
    for old, new, message in (
        ('judge = "prm"', 'judge = "samples"', "stage 'samples' is no `assay train-rm`"),
        ('rows = "samples"', 'rows = "verifier"', "stage 'verifier' is no `assay train`"),
        ('rows = "labels"', 'rows = "samples"', "'samples' is no `assay label-critiques`"),
        ('\nmodel = "verifier"\nservices', "\nservices", "who criticises"),
        ('command = "label-critiques"', 'command = "label-critiques"\nbase = "a"', "`base` is the"),
        ("optim.batch = 2,", "optim.bath = 2,", "bath"),
        ("votes = 2,", "vote = 2,", "no option 'vote'; did you mean 'votes'"),
    ):
        written.write_text(whole.replace(old, new, 1))
        with pytest.raises(ConfigError, match=message):
            plan.load(written, ["data=rows.jsonl"], out)
    preset = repository / "configs" / "pipelines" / "spark.toml"
    given = ["data=rows.jsonl", "labels:target=127.0.0.1:1"]
    assert [stage.rung for stage in plan.load(preset, given, out)] == [
        "samples", "labels", "prm", "rl",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_judge_learns_from_its_critiques_and_rewards_the_policy(
    written: Path, tiny_model: Path, sums_file: Path, tmp_path: Path
) -> None:
    out, said = tmp_path / "out", io.StringIO()
    given = [f"data={sums_file}", "data.columns.reference=answer", f"model={tiny_model}"]

    def run() -> int:
        stages = plan.load(written, given, out)
        return running.run(stages, out, Console(file=said, width=200))

    assert run() == 0, said.getvalue()
    labels = read_rows(out / "labels" / "labels.jsonl")
    drawn = {row["response"] for row in read_rows(out / "labels" / "responses.jsonl")}
    assert labels
    assert all("Verdict: " in row["critique"] and row["response"] in drawn for row in labels)
    assert len({row["key"] for row in labels}) == len(labels)
    rows = read_rows(out / "rl" / "0" / "metrics.jsonl")
    assert len(rows) == 2
    judged = [row for row in rows if row["reward"] is not None]
    assert judged, rows
    assert all(row["gold_gap"] is not None for row in judged), "a judge of the policy is watched"
    assert list(json.loads((out / "stages.json").read_text())) == ["samples", "rl"]
    assert run() == 0
    assert said.getvalue().count("done before") == 5
