"""Laws of parts, over settings at random."""

from __future__ import annotations

import dataclasses
import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.trainer.explain.explanation import explain
from assay.trainer.methods.dense.settings import DenseConfig
from assay.trainer.methods.dynamic_sampling.settings import DynamicSamplingConfig
from assay.trainer.methods.shaping.settings import ShapingConfig
from assay.trainer.settings import config as configs
from assay.trainer.settings.ablation import ablated
from assay.trainer.settings.config import Config, MethodSettings
from assay.trainer.settings.objective import AdvantageConfig, CriticConfig, LossConfig
from assay.trainer.settings.reading import settled
from assay.trainer.settings.registry import parts, parts_on

_CHOICES: dict[str, dict[str, list[Any]]] = {
    "advantage": {
        "estimator": ["group", "rloo", "gae", "segments"],
        "scale": ["group", "batch", "task", "none"],
        "difficulty": ["none", "exp", "linear", "medium"],
        "normalise": ["none", "batch", "task"],
        "max_sigma": [0.0, 3.0],
        "gamma": [1.0, 0.99],
        "lam": [0.95, 1.0],
        "length_adaptive_alpha": [0.0, 0.05],
    },
    "critic": {
        "lam": [0.95, 1.0],
        "loss": ["mse", "clipped", "hl-gauss", "two-hot"],
        "pretrain_steps": [0, 50],
    },
    "loss": {
        "objective": ["ppo", "cispo"],
        "ratio": ["token", "sequence"],
        "clip_low": [0.2, 3e-4, 1.0],
        "clip_high": [0.2, 0.28, 4e-4],
        "dual_clip": [0.0, 10.0],
        "pre_clip": [0.0, 1000.0],
        "aggregation": ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "constant"],
        "positive_lm_coef": [0.0, 0.1],
        "entropy_coef": [0.0, 0.01],
        "kl_coef": [0.0, 0.04],
        "importance_correction": ["none", "token-truncate", "icepop", "decoupled"],
    },
    "shaping": {
        "overlong": ["none", "soft", "filter"],
        "overlong_cache": [32],
        "cosine": [False, True],
        "repetition_ngram": [0, 4],
        "concise_bonus": [0.0, 0.5],
        "concise_below": [16],
        "budget_penalty": [0.0, 0.5],
        "budget_least": [16],
        "progress": [0.0, 0.5],
    },
    "dense": {"weight": [0.0, 0.5]},
    "dynamic_sampling": {
        "enabled": [False, True],
        "keep_surplus": [False, True],
        "max_accuracy": [0.9, 1.0],
    },
}


_KINDS: dict[str, Any] = {
    "advantage": AdvantageConfig,
    "critic": CriticConfig,
    "loss": LossConfig,
    "shaping": ShapingConfig,
    "dense": DenseConfig,
    "dynamic_sampling": DynamicSamplingConfig,
}


@st.composite
def settings_at_random(draw: st.DrawFn) -> Config:
    tree: dict[str, dict[str, Any]] = {
        section: {key: draw(st.sampled_from(values)) for key, values in keys.items()}
        for section, keys in _CHOICES.items()
    }
    if tree["advantage"]["estimator"] == "gae":
        tree["loss"]["kl_place"] = draw(st.sampled_from(["loss", "reward"]))
    if tree["advantage"]["estimator"] not in ("group", "rloo"):
        tree["advantage"]["difficulty"] = "none"
    if tree["advantage"]["estimator"] == "segments":  # differences of values of states
        tree["advantage"]["scale"] = "none"
        tree["shaping"] = {"overlong": tree["shaping"]["overlong"].replace("soft", "none")}
        tree["dense"]["weight"] = 0.0
        tree["dynamic_sampling"]["keep_surplus"] = False
    if tree["loss"]["importance_correction"] == "decoupled":  # an objective of its own
        tree["loss"] |= {"objective": "ppo", "ratio": "token", "pre_clip": 0.0}
    sections = {name: _KINDS[name](**values) for name, values in tree.items()}
    config = Config(method=MethodSettings(**sections))
    return settled(config, layers=[], lenient=True, say=lambda _line: None)


def switchable(config: Config) -> list[str]:
    return [part.name for part in parts_on(config) if part.off is not None]


def leaves(value: Any, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in dataclasses.fields(value):
        inner = getattr(value, item.name)
        key = f"{prefix}{item.name}"
        found |= leaves(inner, f"{key}.") if dataclasses.is_dataclass(inner) else {key: inner}
    return found


@given(settings_at_random(), st.data())
def test_a_part_that_is_switched_off_is_off_and_touches_its_own_keys_only(
    config: Config, data: st.DataObject
) -> None:
    part = data.draw(st.sampled_from([p for p in parts() if p.is_on(config) and p.off is not None]))
    assert part.off is not None
    off = ablated(config, [part.name])
    assert not part.is_on(off)
    before, after = leaves(config), leaves(off)
    changed = {key for key in before if before[key] != after[key]} - {"ablate"}
    assert changed
    assert changed <= set(part.off(config))


@given(settings_at_random(), st.data())
def test_parts_are_switched_off_in_any_order(config: Config, data: st.DataObject) -> None:
    names = data.draw(st.permutations(switchable(config)))
    chosen = names[: data.draw(st.integers(0, len(names)))]
    together = ablated(config, chosen)
    assert not set(chosen) & {part.name for part in parts_on(together)}
    other = ablated(config, list(reversed(chosen)))
    assert dataclasses.replace(together, ablate=()) == dataclasses.replace(other, ablate=())
    assert ablated(config, [*chosen, *chosen]) == together


@settings(max_examples=25)
@given(settings_at_random(), st.data())
def test_saved_settings_of_an_ablation_are_read_back(config: Config, data: st.DataObject) -> None:
    # A group of one is refused where the group is the baseline: that is another law.
    names = [name for name in switchable(config) if name not in ("critic", "group-sampling")]
    chosen = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    off = ablated(config, chosen)
    assert configs.build(tomllib.loads(configs.to_toml(off)), origin="saved") == off


@given(settings_at_random(), st.data())
def test_an_explanation_names_every_part_once_and_is_the_same_every_time(
    config: Config, data: st.DataObject
) -> None:
    names = switchable(config)
    chosen = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    off = ablated(config, chosen)
    explanation = explain(off)
    assert explanation.on == parts_on(off)
    assert [part.name for part in explanation.off] == chosen
    assert not set(explanation.off) & set(explanation.on)
    assert not set(explanation.missing) & set(chosen)
    assert explain(off) == explanation
    titles = [section.title for section in explanation.sections]
    assert ("Critic" in titles) == off.method.has_critic
    for section in explanation.sections:
        assert all(line.strip() for line in section.lines)
