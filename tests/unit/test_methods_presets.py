"""The presets: what each is made of, and that every published value in them is the published one.

A comment in a preset that names a source is a claim; PUBLISHED lists the claims. A value that
changes, a claim that nobody wrote down here, and one whose source is gone from the file all fail.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.explain.presets import departures, published
from assay.trainer.methods.dense.settings import METHOD as DENSE
from assay.trainer.recipes.ladder import plan
from assay.trainer.settings import config as configs
from assay.trainer.settings.registry import parts, parts_on

GIVEN = ["data=rows.jsonl", "model=org/model"]
METHODS = published()

# Read from the papers and from the authors' repositories; the sources are named in each preset.
PUBLISHED: dict[str, dict[str, tuple[Any, str]]] = {
    # DeepSeekMath, arXiv 2402.03300.
    "grpo": {
        "method.advantage.estimator": ("group", "section 4.1.2"),
        "method.advantage.scale": ("group", "section 4.1.2"),
        "method.loss.aggregation": ("seq-mean-token-mean", "equation 3"),
        "method.loss.kl_coef": (0.04, "section 4.2"),
        "method.loss.kl_estimator": ("k3", "equation 4"),
        "method.loss.kl_place": ("loss", "equation 3"),
        "optim.learning_rate": (1e-6, "section 4.2"),
        "optim.mini_batches": (1, "section 4.2"),
        "rollout.prompts_per_step": (16, "section 4.2"),
        "rollout.group_size": (64, "section 4.2"),
        "rollout.max_new_tokens": (1024, "section 4.2"),
    },
    # arXiv 2503.20783 and the README of sail-sg/understand-r1-zero.
    "dr_grpo": {
        "method.advantage.estimator": ("group", "figure 1"),
        "method.advantage.scale": ("none", "figure 1"),
        "method.loss.aggregation": ("constant", "figure 1"),
        "method.loss.kl_coef": (0.0, "README"),
        "optim.learning_rate": (1e-6, "README"),
        "optim.schedule": ("constant", "README"),
        "optim.epochs": (1, "README"),
        "optim.mini_batches": (8, "README"),
        "rollout.prompts_per_step": (128, "README"),
        "rollout.group_size": (8, "README"),
        "rollout.max_new_tokens": (3000, "README"),
        "rollout.temperature": (1.0, "README"),
        "rollout.top_p": (1.0, "README"),
    },
    # arXiv 2402.14740, appendix C as TRL's paper index reads it.
    "rloo": {
        "method.advantage.estimator": ("rloo", "the paper's estimator"),
        "method.advantage.scale": ("none", "the paper's estimator"),
        "method.loss.aggregation": ("seq-mean-token-sum", "one action"),
        "method.loss.kl_coef": (0.03, "appendix C"),
        "optim.learning_rate": (1e-6, "appendix C"),
        "optim.mini_batches": (2, "appendix C"),
        "rollout.prompts_per_step": (256, "appendix C"),
        "rollout.group_size": (4, "the paper compares 2 and 4"),
    },
    # arXiv 2503.14476 and run_dapo_qwen2.5_32b.sh.
    "dapo": {
        "reward.verifier": ("math-signed", "section 2.4"),
        "method.advantage.estimator": ("group", "equation 9"),
        "method.advantage.scale": ("group", "equation 9"),
        "method.loss.clip_low": (0.2, "section 4.1"),
        "method.loss.clip_high": (0.28, "section 4.1"),
        "method.loss.dual_clip": (10.0, "script"),
        "method.loss.aggregation": ("token-mean", "section 3.3"),
        "method.loss.kl_coef": (0.0, "section 2.3"),
        "method.shaping.overlong": ("soft", "section 3.4"),
        "method.shaping.overlong_cache": (4096, "section 4.1"),
        "method.shaping.overlong_factor": (1.0, "script"),
        "method.dynamic_sampling.enabled": (True, "section 3.2"),
        "method.dynamic_sampling.max_rounds": (10, "script"),
        "method.dynamic_sampling.oversample": (3.0, "script"),
        "optim.learning_rate": (1e-6, "section 4.1"),
        "optim.schedule": ("constant", "section 4.1"),
        "optim.warmup_steps": (20 * 16, "section 4.1"),
        "optim.weight_decay": (0.1, "script"),
        "optim.max_grad_norm": (1.0, "script"),
        "optim.mini_batches": (16, "section 4.1"),
        "rollout.prompts_per_step": (512, "section 4.1"),
        "rollout.group_size": (16, "section 4.1"),
        "rollout.max_new_tokens": (20480, "section 4.1"),
        "rollout.temperature": (1.0, "script"),
        "rollout.top_p": (1.0, "script"),
        "eval.samples": (32, "section 4.1"),
        "eval.temperature": (1.0, "section 4.1"),
        "eval.top_p": (0.7, "section 4.1"),
    },
    # arXiv 2504.05118, section 5.1: its basic PPO.
    "ppo": {
        "method.advantage.estimator": ("gae", "arXiv 1707.06347"),
        "method.advantage.gamma": (1.0, "VAPO"),
        "method.advantage.lam": (0.95, "VAPO"),
        "method.critic.lam": (0.95, "VAPO"),
        "method.critic.learning_rate": (2e-6, "VAPO"),
        "method.loss.clip_low": (0.2, "VAPO"),
        "method.loss.clip_high": (0.2, "VAPO"),
        "method.loss.aggregation": ("seq-mean-token-mean", "VAPO"),
        "optim.learning_rate": (1e-6, "VAPO"),
        "optim.schedule": ("constant", "VAPO"),
        "optim.mini_batches": (16, "VAPO"),
        "rollout.prompts_per_step": (8192, "VAPO"),
        "rollout.group_size": (1, "VAPO"),
        "eval.samples": (32, "VAPO"),
        "eval.temperature": (1.0, "VAPO"),
        "eval.top_p": (0.7, "VAPO"),
    },
    # What VAPO (section 4.1) says of VC-PPO (arXiv 2503.01491).
    "vc_ppo": {
        "method.advantage.gamma": (1.0, "VAPO"),
        "method.advantage.lam": (0.95, "VAPO, section 4.1"),
        "method.critic.lam": (1.0, "VAPO, section 4.1"),
    },
    # arXiv 2504.05118.
    "vapo": {
        "method.advantage.gamma": (1.0, "section 5.1"),
        "method.advantage.lam": (0.95, "section 5.1"),
        "method.advantage.length_adaptive_alpha": (0.05, "section 5.1"),
        "method.critic.lam": (1.0, "section 5.1"),
        "method.critic.learning_rate": (2e-6, "section 5.1"),
        "method.critic.pretrain_steps": (50, "section 5.1"),
        "method.loss.clip_low": (0.2, "section 5.1"),
        "method.loss.clip_high": (0.28, "section 5.1"),
        "method.loss.aggregation": ("token-mean", "section 5.1"),
        "method.loss.positive_lm_coef": (0.1, "section 5.1"),
        "optim.learning_rate": (1e-6, "section 5.1"),
        "optim.schedule": ("constant", "section 5.1"),
        "optim.mini_batches": (16, "section 5.1"),
        "rollout.prompts_per_step": (512, "section 5.1"),
        "rollout.group_size": (16, "section 5.1"),
        "eval.samples": (32, "section 5.1"),
        "eval.temperature": (1.0, "section 5.1"),
        "eval.top_p": (0.7, "section 5.1"),
        "run.steps": (313, "section 5.2"),
    },
    # Third-party notes on arXiv 2506.15050, whose text was not at hand.
    "t_ppo": {
        "method.truncation.window": (8192, "a note"),
        "method.critic.lam": (1.0, "a note"),
        "method.loss.kl_coef": (0.0, "a note"),
        "optim.mini_batches": (16, "a note"),
        "rollout.prompts_per_step": (512, "a note"),
        "rollout.group_size": (16, "a note"),
        "rollout.max_new_tokens": (24576, "a note"),
    },
    # The repository of arXiv 2605.19577: qwen3-4B-tmn-reweight.sh, core_algos.py.
    "tmn_grpo": {
        "method.advantage.estimator": ("group", "code"),
        "method.advantage.scale": ("task", "code"),
        "method.advantage.difficulty": ("exp", "code"),
        "method.advantage.difficulty_alpha": (0.8, "script"),
        "method.advantage.difficulty_gamma": (1.0, "code"),
        "method.loss.clip_low": (0.2, "script"),
        "method.loss.clip_high": (0.28, "script"),
        "method.loss.dual_clip": (3.0, "script"),
        "method.loss.aggregation": ("token-mean", "script"),
        "method.loss.kl_coef": (0.0, "script"),
        "optim.learning_rate": (2e-6, "script"),
        "optim.warmup_steps": (5, "script"),
        "optim.weight_decay": (0.1, "script"),
        "optim.max_grad_norm": (1.0, "script"),
        "optim.epochs": (1, "script"),
        "optim.mini_batches": (1, "script"),
        "rollout.prompts_per_step": (128, "script"),
        "rollout.group_size": (16, "script"),
        "rollout.max_new_tokens": (16384, "script"),
        "rollout.temperature": (1.0, "script"),
        "rollout.top_p": (1.0, "script"),
    },
    # The repository of arXiv 2505.23564: polIter_rho1bSft2_spo_chain_GSM8K, interval5.
    "spo": {
        "method.advantage.estimator": ("segments", "code"),
        "method.advantage.scale": ("none", "code"),
        "method.segments.threshold": (0.9, "code"),
        "method.segments.unsure_per_segment": (5, "code"),
        "method.segments.continuations": (9, "code"),
        "method.segments.mask_sure": (True, "code"),
        "method.loss.clip_low": (0.2, "code"),
        "method.loss.clip_high": (0.2, "code"),
        "optim.learning_rate": (1e-6, "code"),
        "optim.mini_batches": (8, "code"),
        "rollout.prompts_per_step": (64, "code"),
        "rollout.group_size": (8, "code"),
        "rollout.max_new_tokens": (1024, "code"),
        "rollout.temperature": (0.6, "code"),
        "rollout.top_p": (0.9, "code"),
        "run.steps": (1000, "code"),
    },
    # arXiv 2505.24298.
    "areal": {
        "method.asynchrony.mode": ("bounded", "AReaL"),
        "method.asynchrony.max_staleness": (8, "AReaL"),
        "method.advantage.normalise": ("batch", "AReaL"),
        "method.loss.importance_correction": ("decoupled", "AReaL"),
        "method.loss.clip_low": (0.2, "AReaL"),
        "method.loss.clip_high": (0.2, "AReaL"),
        "method.loss.kl_coef": (0.0, "AReaL"),
        "optim.learning_rate": (2e-5, "AReaL"),
        "optim.mini_batches": (4, "AReaL"),
        "rollout.prompts_per_step": (512, "AReaL"),
        "rollout.group_size": (16, "AReaL"),
    },
    # arXiv 2507.18071.
    "gspo": {
        "method.advantage.estimator": ("group", "equation 6"),
        "method.advantage.scale": ("group", "equation 6"),
        "method.loss.ratio": ("sequence", "equation 7"),
        "method.loss.clip_low": (3e-4, "section 5.1"),
        "method.loss.clip_high": (4e-4, "section 5.1"),
        "method.loss.aggregation": ("seq-mean-token-mean", "equation 5"),
        "method.loss.kl_coef": (0.0, "equation 5"),
        "optim.mini_batches": (4, "section 5.1"),
    },
    # MiniMax-M1, arXiv 2506.13585.
    "cispo": {
        "method.advantage.estimator": ("group", "section 3.1"),
        "method.advantage.scale": ("group", "section 3.1"),
        "method.loss.objective": ("cispo", "equation 4"),
        "method.loss.clip_low": (1.0, "section 3.1"),
        "method.loss.aggregation": ("token-mean", "equation 4"),
        "method.loss.kl_coef": (0.0, "section 3.1"),
        "method.shaping.overlong": ("soft", "section 3.1"),
        "method.dynamic_sampling.enabled": (True, "section 3.1"),
    },
    # What the public summaries of arXiv 2504.04950 say, and derivations, marked as such.
    "pairwise_ppo": {
        "data.columns.anchor": ("answer", "arXiv 2504.04950"),
        "reward.verifier": ("judge-pairwise", "arXiv 2504.04950"),
        "method.pairwise.against": ("anchor", "arXiv 2504.04950"),
        "method.pairwise.reward": ("win", "a derivation"),
        "method.advantage.estimator": ("gae", "arXiv 2504.04950"),
        "method.loss.kl_place": ("reward", "a derivation"),
    },
    "pairwise_group": {
        "reward.verifier": ("judge-pairwise", "arXiv 2504.04950"),
        "method.pairwise.against": ("group", "a derivation"),
        "method.advantage.estimator": ("symmetric", "a derivation"),
        "method.advantage.scale": ("none", "a derivation"),
    },
    # arXiv 2506.10406 and its authors' code.
    "pag": {
        "method.turns.mode": ("verify", "PAG"),
        "method.turns.revise": ("selective", "PAG"),
        "method.turns.parsing": ("strict", "PAG's code"),
        "method.turns.independent": (True, "PAG"),
        "method.turns.reward": ("turns", "PAG"),
        "method.turns.first_reward": ("accuracy", "PAG"),
        "method.turns.verifier_reward": (True, "PAG"),
        "method.turns.shaping": (1.0, "PAG"),
        "method.advantage.estimator": ("gae", "PAG"),
        "method.advantage.gamma": (1.0, "PAG's code"),
        "method.advantage.lam": (1.0, "PAG's code"),
        "method.advantage.normalise": ("role", "PAG"),
        "method.critic.lam": (1.0, "PAG's code"),
        "method.critic.learning_rate": (2e-6, "PAG"),
        "method.loss.clip_low": (0.2, "PAG"),
        "method.loss.clip_high": (0.28, "PAG"),
        "method.loss.entropy_coef": (0.0, "PAG"),
        "method.loss.kl_coef": (0.0, "PAG"),
        "optim.learning_rate": (1e-6, "PAG"),
        "optim.epochs": (1, "PAG"),
        "rollout.prompts_per_step": (512, "PAG"),
        "rollout.group_size": (4, "PAG"),
        "rollout.max_new_tokens": (2048, "PAG"),
        "rollout.temperature": (1.0, "PAG"),
        "rollout.top_p": (1.0, "PAG"),
        "eval.samples": (32, "PAG"),
        "eval.temperature": (0.6, "PAG"),
        "eval.top_p": (0.95, "PAG"),
    },
    # The baselines of the same.
    "score": {
        "method.turns.mode": ("reconsider", "PAG's script"),
        "method.turns.shaping": (1.0, "PAG's script"),
        "method.advantage.estimator": ("gae", "PAG's script"),
    },
    "direct_multi_turn": {
        "method.turns.mode": ("reconsider", "PAG"),
        "method.turns.shaping": (0.0, "PAG"),
        "method.advantage.estimator": ("gae", "PAG"),
    },
    # arXiv 2505.15034 and its authors' README.
    "tango": {
        "method.advantage.estimator": ("group", "Tango"),
        "method.advantage.scale": ("group", "Tango"),
        "method.dense.weight": (0.1, "Tango"),
        "method.dense.decay_to": (1e-3, "Tango"),
        "method.dense.mix": ("interpolate", "Tango"),
        "method.dense.normalise": (True, "Tango"),
        "method.cotraining.enabled": (True, "Tango"),
        "method.cotraining.generator_steps": (3, "Tango"),
        "method.cotraining.verifier_steps": (1, "Tango"),
        "method.cotraining.warmup_steps": (40, "Tango"),
        "method.cotraining.format_weight": (0.8, "Tango"),
        "method.cotraining.class_weights": (True, "Tango"),
        "method.cotraining.learning_rate": (1e-6, "Tango"),
        "method.cotraining.group_size": (5, "Tango"),
        "optim.learning_rate": (1e-6, "Tango"),
        "rollout.prompts_per_step": (256, "Tango"),
        "rollout.group_size": (5, "Tango"),
        "run.steps": (200, "Tango"),
    },
    # arXiv 2509.02479: train.sh of the authors' repository, with the options of its README.
    "simple_tir": {
        "method.episodes.turns": (5, "script"),
        "method.episodes.tokens": (8000, "script"),
        "method.filter.void": ("turn", "script"),
        "method.advantage.estimator": ("group", "script"),
        "method.loss.clip_low": (0.2, "script"),
        "method.loss.clip_high": (0.28, "script"),
        "method.loss.dual_clip": (3.0, "script"),
        "method.loss.kl_coef": (0.0, "script"),
        "optim.learning_rate": (1e-6, "script"),
        "optim.max_grad_norm": (1.0, "script"),
        "optim.mini_batches": (4, "script"),
        "rollout.prompts_per_step": (512, "script"),
        "rollout.group_size": (16, "script"),
        "rollout.temperature": (1.0, "script"),
        "rollout.top_p": (1.0, "script"),
        "eval.samples": (16, "script"),
        "eval.temperature": (1.0, "script"),
    },
    # verl's recipe of arXiv 2504.11536, run_qwen2.5_32b_dapo.sh, and the project's page.
    "retool": {
        "reward.verifier": ("math-signed", "page"),
        "method.episodes.turns": (8, "recipe"),
        "method.episodes.tokens": (16384, "recipe"),
        "method.advantage.estimator": ("group", "recipe"),
        "method.advantage.scale": ("group", "recipe"),
        "method.loss.clip_low": (0.2, "recipe"),
        "method.loss.clip_high": (0.28, "recipe"),
        "method.loss.dual_clip": (10.0, "recipe"),
        "method.loss.kl_coef": (0.0, "recipe"),
        "optim.learning_rate": (1e-6, "recipe"),
        "optim.mini_batches": (8, "recipe"),
        "rollout.prompts_per_step": (512, "recipe"),
        "rollout.group_size": (16, "recipe"),
    },
    # arXiv 2510.18821: train_ssp.sh of the authors' repository.
    "search_self_play": {
        "method.episodes.turns": (10 * 7, "script"),
        "method.episodes.settings.solvers": (5, "script"),
        "method.advantage.estimator": ("group", "script"),
        "method.advantage.scale": ("group", "script"),
        "method.loss.clip_high": (0.285, "script"),
        "method.loss.entropy_coef": (0.0, "script"),
        "method.loss.kl_coef": (0.01, "script"),
        "method.loss.kl_estimator": ("k3", "script"),
        "method.loss.kl_place": ("loss", "script"),
        "optim.learning_rate": (1e-6, "script"),
        "optim.warmup_steps": (5, "script"),
        "optim.mini_batches": (2, "script"),
        "rollout.prompts_per_step": (256, "script"),
    },
    # arXiv 2402.19446, its public page, and archer_20q.yaml over default.yaml of its repository.
    "archer": {
        "method.turn_credit.unit": ("turn", "ArCHer"),
        "method.turn_credit.values": ("turns", "ArCHer"),
        "method.turn_credit.discount": (0.95, "code"),
        "method.advantage.gamma": (1.0, "ArCHer"),
        "method.advantage.lam": (0.0, "a derivation"),
        "method.advantage.normalise": ("none", "verl"),
        "method.critic.lam": (0.0, "ArCHer"),
        "method.critic.learning_rate": (2e-5, "code"),
        "method.critic.max_grad_norm": (1.0, "code"),
        "method.critic.pretrain_steps": (20, "code"),
        "optim.learning_rate": (1e-6, "code"),
        "optim.max_grad_norm": (1.0, "code"),
        "rollout.prompts_per_step": (128, "code"),
        "rollout.group_size": (1, "code"),
        "rollout.temperature": (1.0, "code"),
        "run.steps": (2000, "code"),
    },
    # The abstract of arXiv 2510.06727 and public reviews of it, whose text was not at hand.
    "supo": {
        "method.episodes.limits": ("leave-out", "SUPO"),
        "method.episodes.settings.context": ("summary", "SUPO"),
        "method.advantage.estimator": ("group", "SUPO"),
    },
    # arXiv 2602.08847: run_math.sh of the authors' repository.
    "dr_mas": {
        "method.turn_credit.unit": ("agent", "script"),
        "method.advantage.estimator": ("group", "script"),
        "method.advantage.scale": ("group", "script"),
        "method.loss.entropy_coef": (0.0, "script"),
        "method.loss.kl_coef": (0.0, "script"),
        "optim.learning_rate": (1e-6, "script"),
        "optim.mini_batches": (1, "script"),
        "rollout.prompts_per_step": (32, "script"),
        "rollout.group_size": (8, "script"),
        "rollout.max_new_tokens": (4096, "script"),
        "eval.prompts": (64, "script"),
        "eval.samples": (16, "script"),
        "eval.temperature": (0.6, "script"),
        "eval.top_p": (0.95, "script"),
    },
    # The abstract of arXiv 2603.21383 and a public study of it, whose text was not at hand.
    "pivot_rl": {
        "reward.verifier": ("tool-call", "PivotRL"),
        "method.advantage.estimator": ("group", "PivotRL"),
        "method.advantage.scale": ("group", "PivotRL"),
    },
    # Public reviews of arXiv 2410.17621, whose text was not at hand.
    "code_prm": {
        "reward.parameters.splitting": ("code-line", "arXiv 2410.17621"),
        "reward.parameters.step_rewards": ("signed", "arXiv 2410.17621"),
        "method.dense.weight": (0.25, "equation 3"),
        "method.dense.correct_share": (0.025 / 0.25, "equation 3"),
        "method.dense.normalise": (True, "a derivation"),
        "method.advantage.estimator": ("gae", "arXiv 2410.17621"),
        "method.critic.init": ("runs/code-prm/prm/model", "arXiv 2410.17621"),
        "method.loss.kl_place": ("reward", "equation 3"),
    },
}
_SETTING = re.compile(r"^(\w+) = [^#]*#\s*(.+)$")
_OURS = ("our choice", "the trainer punishes")


def file_of(repository: Path, name: str) -> Path:
    return repository / "configs" / f"{name}.toml"


def claims(path: Path) -> dict[str, str]:
    """Dotted keys whose comment names a source, with the comment."""
    found, section = {}, ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        match = _SETTING.match(line)
        if match and not match.group(2).startswith(_OURS):
            found[f"{section}.{match.group(1)}"] = match.group(2)
    return found


def value_at(node: Any, key: str) -> Any:
    for step in key.split("."):
        node = node[step] if isinstance(node, dict) else getattr(node, step)
    return node


def test_every_method_has_a_preset_and_a_table_here() -> None:
    assert set(PUBLISHED) == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_preset_does_not_depart_from_its_method(repository: Path, name: str) -> None:
    config = configs.load(file_of(repository, name), GIVEN)
    assert config.method.name == name
    assert departures(config) == ((), ())
    assert (config.data.path, config.model.name) == ("rows.jsonl", "org/model")


@pytest.mark.parametrize("name", METHODS)
def test_published_values_are_published_and_say_where(repository: Path, name: str) -> None:
    path = file_of(repository, name)
    config, said = configs.load(path, GIVEN), claims(path)
    for key, (value, source) in PUBLISHED[name].items():
        assert value_at(config, key) == value, key
        assert source in said.get(key, ""), f"{key}: its line names no such source"
    assert set(said) == set(PUBLISHED[name]), "a claim that is not in the table of this test"


@pytest.mark.parametrize("name", METHODS)
def test_a_preset_names_its_paper_and_sets_every_key_it_claims(repository: Path, name: str) -> None:
    path = file_of(repository, name)
    text = path.read_text(encoding="utf-8")
    assert re.search(r"arXiv \d{4}\.\d{5}", text.partition("\n\n")[0])
    tree = tomllib.loads(text)
    for key in claims(path):
        node: Any = tree
        for step in key.split("."):
            node = node[step]


@pytest.mark.parametrize("name", [name for name, parts in METHODS.items() if "critic" in parts])
def test_a_preset_with_a_critic_says_whether_advantages_are_whitened(
    repository: Path, name: str
) -> None:
    """In a comment beside the key, and what verl does, whose GAE whitens over the batch."""
    lines = file_of(repository, name).read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if re.match(r'normalise = "', line))
    chosen = configs.load(file_of(repository, name), GIVEN).method.advantage.normalise
    said = line.partition("#")[2]
    assert line.startswith(f'normalise = "{chosen}"')
    assert "verl's GAE" in said
    assert ("not whitened" in said) == (chosen == "none")


@pytest.mark.parametrize("name", METHODS)
def test_the_commands_in_a_preset_can_be_typed(repository: Path, name: str) -> None:
    lines = file_of(repository, name).read_text(encoding="utf-8").splitlines()
    commands = [
        shlex.split(line[1:])
        for line in lines
        if line.startswith(("#   assay train ", "#   assay ladder "))
    ]
    assert len(commands) >= 3
    for _, command, *words in commands:
        arguments = [word for word in words if word != "--explain"]
        path = repository / arguments[0]
        if command == "ladder":
            assert len(plan.load(path, arguments[1:]).rungs) > 1
        else:
            config = configs.load(path, arguments[1:])
            assert config.method.name == name
    small = configs.load(file_of(repository, name), commands[-1][3:])
    assert small.samples_per_step <= 128
    assert small.rollout.max_new_tokens <= 512


def test_data_must_be_given_and_the_message_says_how(repository: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.path is missing.*or pass data\.path="):
        configs.load(file_of(repository, "dapo"))


@pytest.mark.parametrize("name", METHODS)
def test_every_part_of_a_preset_can_be_switched_off_on_the_command_line(
    repository: Path, name: str
) -> None:
    path = file_of(repository, name)
    config = configs.load(path, GIVEN)
    for part in parts_on(config):
        alone = config.rollout.group_size == 1 or config.method.turns.on
        if part.off is None or (part.name == "critic" and alone):
            continue
        off = configs.load(path, [*GIVEN, f"ablate={part.name}"])
        assert part.name not in {other.name for other in parts_on(off)}
        assert departures(off) != ((), ())


# Table 1 of arXiv 2503.14476, from naive GRPO up.
DAPO_LADDER = [
    ("naive-grpo", set()),
    ("overlong-filter", {"overlong-filter"}),
    ("clip-higher", {"overlong-filter", "clip-higher"}),
    ("soft-overlong", {"soft-overlong", "clip-higher"}),
    ("token-level-loss", {"soft-overlong", "clip-higher", "token-level-loss"}),
    (
        "dynamic-sampling",
        {"soft-overlong", "clip-higher", "token-level-loss", "dynamic-sampling"},
    ),
]


def test_the_ladder_of_dapo_adds_one_technique_at_a_time(repository: Path) -> None:
    ladder = plan.load(repository / "configs/ladders/dapo.toml", GIVEN)
    common = {"group-normalisation", "std-scaling", "dual-clip"}
    seen = [
        (rung.name, {part.name for part in parts_on(rung.configs[0])} - common)
        for rung in ladder.rungs
    ]
    assert seen == DAPO_LADDER
    assert ladder.against == "previous"


# Table 1 of arXiv 2504.05118, in its order.
VAPO_ABLATIONS = (
    "value-pretraining",
    "decoupled-gae",
    "length-adaptive-gae",
    "clip-higher",
    "token-level-loss",
    "positive-lm-loss",
    "group-sampling",
)


def test_the_ladder_of_vapo_takes_one_part_away_at_a_time(repository: Path) -> None:
    ladder = plan.load(repository / "configs/ladders/vapo.toml", GIVEN)
    assert [rung.ablate for rung in ladder.rungs] == [(), *((name,) for name in VAPO_ABLATIONS)]
    whole = METHODS["vapo"]
    for rung in ladder.rungs:
        assert {part.name for part in parts_on(rung.configs[0])} == whole - set(rung.ablate)
        assert rung.configs[0].samples_per_step == 8192
    assert ladder.against == "first"


# Section 5 of arXiv 2506.10406's ablations, and the changes with which it fails.
PAG_ABLATIONS = (
    {"role-normalisation"},
    {"turn-shaping"},
    {"role-normalisation", "turn-shaping"},
    {"turn-independence"},
    {"selective-revision"},
    {"turn-rewards", "turn-independence"},
    {"first-attempt-reward"},
)


def test_the_ladder_of_pag_takes_parts_away(repository: Path) -> None:
    ladder = plan.load(repository / "configs/ladders/pag.toml", GIVEN)
    assert [set(rung.ablate) for rung in ladder.rungs] == [set(), *PAG_ABLATIONS]
    earns = {"first-attempt-reward", "verifier-reward", "turn-shaping"}
    for rung in ladder.rungs:
        gone = set(rung.ablate) | (earns if "turn-rewards" in rung.ablate else set())
        assert {part.name for part in parts_on(rung.configs[0])} == METHODS["pag"] - gone


def test_the_ladder_of_pairwise_ppo_keeps_its_yardstick(repository: Path) -> None:
    """The anchors of the data on every rung: held-out accuracy is the rate of beating them."""
    ladder = plan.load(repository / "configs/ladders/pairwise.toml", GIVEN)
    whole = METHODS["pairwise_ppo"]
    *rungs, group = ladder.rungs
    added = {"centred-win", "log-odds-win"}
    assert [rung.name for rung in rungs] == [
        "pairwise-ppo",
        *sorted(added),
        *(f"without-{rung.ablate[0]}" for rung in rungs if rung.ablate),
    ]
    for rung in rungs:
        parts = {part.name for part in parts_on(rung.configs[0])}
        assert parts == (whole | ({rung.name} & added)) - set(rung.ablate)
    assert {part.name for part in parts_on(group.configs[0])} == METHODS["pairwise_group"]
    assert {rung.configs[0].samples_per_step for rung in ladder.rungs} == {512}
    assert {rung.configs[0].method.pairwise.anchors for rung in ladder.rungs} == {"data"}


def test_the_ladder_of_t_ppo_has_windows_and_takes_parts_away(repository: Path) -> None:
    ladder = plan.load(repository / "configs/ladders/t_ppo.toml", GIVEN)
    whole = METHODS["t_ppo"]
    windows = [rung.configs[0].method.truncation.window for rung in ladder.rungs]
    assert windows == [8192, 4096, 16384, 0, *[8192] * 4]
    assert {name for rung in ladder.rungs for name in rung.ablate} == (
        whole - {"critic", "value-pretraining"}
    )
    for rung in ladder.rungs:
        assert {part.name for part in parts_on(rung.configs[0])} == whole - set(rung.ablate)
        assert rung.configs[0].samples_per_step == 8192


def test_the_command_in_a_ladder_can_be_typed(repository: Path) -> None:
    for path in sorted((repository / "configs/ladders").glob("*.toml")):
        head = path.read_text(encoding="utf-8").partition("\n\n")[0]
        command = head.replace("\\\n#", "").partition("#   assay ladder ")[2].splitlines()[0]
        file, *words = shlex.split(command)
        assert repository / file == path
        assert len(plan.load(path, words).rungs) > 1


def test_the_ladder_of_code_prm_is_the_four_way_ablation(repository: Path) -> None:
    ladder = plan.load(repository / "configs/ladders/code_prm.toml", GIVEN)
    of_dense = {part.name for part in DENSE.parts}
    gone = [of_dense | {"value-init"}, of_dense, {"value-init"}, set()]
    for rung, off in zip(ladder.rungs, gone, strict=True):
        assert {part.name for part in parts_on(rung.configs[0])} == METHODS["code_prm"] - off


def test_the_methods_page_has_the_table_of_parts(repository: Path) -> None:
    """The page says by hand of which parts each method is made; a preset that differs fails."""
    text = (repository / "docs" / "train" / "methods.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^\| part \| (`grpo`.*) \|$", text, re.MULTILINE)
    names = [name.strip("`") for name in found.split(" | ")]
    assert set(names) == set(METHODS)
    rows = [
        f"| {part.name} | "
        + " | ".join("x" if part.name in METHODS[name] else "" for name in names)
        + " |"
        for part in parts()
        if any(part.name in METHODS[name] for name in names)
    ]
    header = f"| part | {' | '.join(f'`{name}`' for name in names)} |"
    assert "\n".join([header, "|---|" + ":-:|" * len(names), *rows]) in text
    for part in parts():
        assert f"`{part.name}`" in text or f"| {part.name} |" in text
        assert part.what in text
        assert part.reference in text
