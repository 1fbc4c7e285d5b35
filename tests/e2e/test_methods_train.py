"""Every preset, and every one of its ablations that changes the loop, trains in miniature."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.trainer.explain.presets import published
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config

Train = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def miniature(repository: Path, tiny_model: Path, sums_file: Path) -> Callable[..., Config]:
    """A preset with the tiny model: everything of the method stays, everything else is small."""

    def make(name: str, *overrides: str) -> Config:
        path = repository / "configs" / f"{name}.toml"
        published = configs.load(path, [f"data={sums_file}"])
        grouped = published.rollout.group_size > 1
        small = [
            f"data={sums_file}",
            f"model={tiny_model}",
            "model.device=cpu",
            "model.precision=float32",
            "data.template={question}",
            "reward=exact",
            "reward.parameters={}",
            f"rollout.prompts_per_step={4 if grouped else 16}",
            f"rollout.group_size={4 if grouped else 1}",
            "rollout.max_new_tokens=4",
            f"optim.mini_batches={min(2, published.optim.mini_batches)}",
            "optim.learning_rate=4e-4",
            "optim.warmup_steps=0",
            "eval.prompts=0",
            "run.steps=2",
            "run.checkpoint_every=0",
            "run.report_to=[]",
        ]
        if published.method.critic.pretrain_steps:
            small.append("method.critic.pretrain_steps=2")
        if published.method.truncation.window:
            small += ["method.truncation.window=2", "method.truncation.min_finished=1"]
        if published.method.critic.below_minimum == "refuse":  # two steps teach it too little
            small.append("method.critic.below_minimum=warn")
        if published.method.shaping.overlong == "soft":
            small.append("method.shaping.overlong_cache=2")
        if published.data.columns.tests:  # the judge here compares with references
            small.append("data.columns.tests=")
        if published.method.critic.init != "policy":
            small.append("method.critic.init=policy")
        if published.method.cotraining.enabled:
            small += [
                "method.cotraining.prompt={question}{steps}=",
                "method.cotraining.step_heading=",
                "method.cotraining.warmup_steps=1",
                "method.cotraining.prompts_per_step=4",
                "method.cotraining.micro_batch=0",
                "method.cotraining.max_new_tokens=4",
                "optim.micro_batch=0",
            ]
        return configs.load(path, [*small, *overrides])

    return make


def check(rows: list[dict[str, Any]]) -> None:
    assert [row["step"] for row in rows] == [1, 2]
    # A step whose rewards are all alike has nothing to learn from; not both are such.
    assert any(row["grad_norm"] > 0 for row in rows)
    for row in rows:
        assert math.isfinite(row["loss"])
        assert 0 <= row["correct"] <= 1
        assert row["fault_ratio"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", published())
def test_a_preset_trains(miniature: Callable[..., Config], train: Train, name: str) -> None:
    config = miniature(name)
    rows = train(config)
    check(rows)
    if config.method.has_critic:
        assert all(math.isfinite(row["value_loss"]) for row in rows)
    if config.method.dynamic_sampling.enabled:
        assert all(0 < row["keep_rate"] <= 1 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("dapo", "dynamic-sampling"),
        ("vapo", "group-sampling"),
        ("vapo", "critic,value-pretraining"),
        ("t_ppo", "truncation"),
        ("cispo", "cispo"),
        ("gspo", "sequence-ratio"),
    ],
)
def test_a_preset_trains_without_a_part(
    miniature: Callable[..., Config], train: Train, name: str, part: str
) -> None:
    check(train(miniature(name, f"ablate={part}")))
