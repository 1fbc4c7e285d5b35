"""Presets in miniature: everything of the method stays, everything else is small."""

from __future__ import annotations

from pathlib import Path

from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config


def in_miniature(preset: Path, model: Path, data: Path, *overrides: str) -> Config:
    """A preset for a tiny model and the sums of two digits, on a CPU by default."""
    published = configs.load(preset, [f"data={data}"])
    grouped = published.rollout.group_size > 1
    small = [
        f"data={data}",
        f"model={model}",
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
    if published.method.advantage.estimator == "tree":
        small += ["method.tree.branches=[2,2]", "method.tree.segment_tokens=1"]
    if published.method.rethinking.share:
        small += ["method.rethinking.room=1", 'method.rethinking.triggers=["?"]']
    if published.method.episodes.on:  # what is said there is nothing that tiny models say
        small += _relayed(published)
    return configs.load(preset, [*small, *overrides])


def _relayed(published: Config) -> list[str]:
    """Episodes in which anything may be said, by as many kinds of agents and conversations."""
    several = published.method.turn_credit.unit == "agent"
    agents = '["asker", "solver#1", "solver#2"]' if several else '["policy"]'
    fresh = "context" in published.method.episodes.settings
    rewards = "own_rewards = true, turn_rewards = true"
    return [
        f"method.episodes.environment={Path(__file__).parent / 'relay.py'}:Relay",
        f"method.episodes.settings={{agents = {agents}, fresh = {str(fresh).lower()}, {rewards}}}",
        "method.episodes.turns=12",
        "method.episodes.tokens=0",
        "method.episodes.answer=",
        "data.columns.prompt=question",
    ]
