"""Settings of stored rollouts: the files of configs/offline, their parts, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from experiments.miniature import tokenizer_of

from assay.kit.errors import ConfigError
from assay.trainer.data.problems import Problem
from assay.trainer.explain.explanation import explain
from assay.trainer.methods.offline.stored import read_stored
from assay.trainer.recipes.chain import plan
from assay.trainer.settings import config as configs
from assay.trainer.settings.registry import parts_on

GIVEN = ("data=rows.jsonl", "method.offline.rows=runs/drawn")
NEEDED = {"critic", "value-pretraining"}
"""Without them the loss of steps has no advantage."""
FILES = ("sft", "dpo", "prdp", "a_lol", "direct_advantage")


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_explained_and_each_of_its_parts_switched_off(name: str) -> None:
    config = configs.load(Path(f"offline/{name}"), GIVEN)
    on = parts_on(config)
    told = [line for section in explain(config).sections for line in section.lines]
    assert any("stored ones of runs/drawn" in line for line in told)
    assert {"stored-rollouts", name.replace("_", "-")} <= {part.name for part in on}
    for part in on:
        if part.off is not None and part.name not in NEEDED:
            off = configs.load(Path(f"offline/{name}"), [*GIVEN, f"ablate={part.name}"])
            assert part.name not in {other.name for other in parts_on(off)}


def test_there_is_a_test_for_each_file(repository: Path) -> None:
    assert {path.stem for path in (repository / "configs" / "offline").glob("*.toml")} == set(FILES)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("dpo", "method.offline.pairs=", "compares two responses: set method.offline.pairs"),
        ("dpo", "rollout.group_size=4", "a group is a pair"),
        ("dpo", "optim.mini_batches=2", "takes one response of each group"),
        ("dpo", "method.offline.ties=true", "needs a better response"),
        ("dpo", "method.offline.reference=none", 'to "start" or "recorded"'),
        ("dpo", "method.loss.aggregation=token-mean", "one number for a pair"),
        ("dpo", "method.loss.ratio=sequence", "needs a ratio for each token"),
        ("prdp", "method.offline.pairs=format", "it predicts rewards"),
        ("sft", "method.offline.rows=", "set method.offline.rows"),
        ("sft", "rollout.temperature=0.7", "are the model's own"),
        ("sft", "method.turns.mode=reconsider", "leave method.turns"),
        ("dpo", "method.dynamic_sampling.enabled=true", "responses are read"),
        ("a_lol", "method.shaping.cosine=true", "as they were judged"),
        ("direct_advantage", "method.advantage.estimator=stored", "needs a critic"),
        ("direct_advantage", "method.critic.pretrain_steps=0", "a critic that stands still"),
    ],
)
def test_what_does_not_go_is_said(name: str, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        configs.load(Path(f"offline/{name}"), [*GIVEN, text])


@pytest.mark.parametrize("name", ["specs", "sft_rl", "retool"])
def test_a_pipeline_s_stages_fit(name: str, tmp_path: Path) -> None:
    stages = plan.load(Path(f"pipelines/{name}"), ["data=rows.jsonl"], tmp_path)
    drawn, cold, last = stages
    assert drawn.config.optim.learning_rate == 0
    assert cold.config.method.offline.rows == str(drawn.folder)
    assert last.config.model.name == str(cold.folder / "model")


def test_a_setting_can_be_for_one_stage(tmp_path: Path) -> None:
    path, given = Path("pipelines/tango"), ["data=rows.jsonl", "optim.micro_batch=4"]
    stages = plan.load(path, [*given, "sft:method.offline.rows=scored.jsonl"], tmp_path)
    assert [one.config.method.offline.rows for one in stages] == ["scored.jsonl", ""]
    assert {one.config.optim.micro_batch for one in stages} == {4}
    with pytest.raises(ConfigError, match=r"there is no stage 'stf'.*stages are sft, tango"):
        plan.load(path, [*given, "stf:run.steps=1"], tmp_path)


def test_an_episode_with_tools_is_learnt_in_the_tokens_that_were_drawn(tmp_path: Path) -> None:
    """Its prompt offers tools, which stand in no row; another tokenizer's tokens are left out."""
    tokenizer = tokenizer_of(("tools", *"0123456789*=", "call", "out", "end"))

    def encode(problem: Problem) -> list[int]:
        ids: list[int] = tokenizer("".join(text for _, text in problem.messages))["input_ids"]
        return ids

    def row(offered: str) -> dict[str, Any]:
        first, shown, last = (tokenizer(text)["input_ids"] for text in ("call", "out12", "end12"))
        return {
            "prompt": [{"role": "user", "content": "3*4="}],
            "prompt_ids": tokenizer(offered)["input_ids"],
            "ids": [*first, *shown, *last],
            "own": [[0, 1, 0, 0, "policy"], [4, 7, 1, 0, "policy"]],
            "response": "callout12end12",
            "reward": 1.0,
            "verdict": "correct",
            "episode": {"version": 1},
        }

    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row(text)) + "\n" for text in ("tools3*4=", "tools3*5=")))
    config = configs.load(Path("offline/sft"), ["data=rows.jsonl", f"method.offline.rows={path}"])
    stored = read_stored(config, encode, tokenizer)
    (one,) = stored.responses
    assert list(one.prompt_ids) == row("tools3*4=")["prompt_ids"]
    assert one.own == ((0, 1), (4, 7))
    assert stored.left_out == {"of several turns in other tokens": 1}
