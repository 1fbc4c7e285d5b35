"""The table of parts, switching them off, and the short overrides."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.settings import config as configs
from assay.trainer.settings.ablation import ablated
from assay.trainer.settings.config import Config
from assay.trainer.settings.overrides import expand, flat
from assay.trainer.settings.registry import part_names, parts, parts_on


def of_episodes(*, critic: bool = False, **credit: Any) -> dict[str, Any]:
    """Episodes with such credit."""
    return {
        "episodes": {"environment": "python"},
        "turn_credit": credit,
        "advantage": {"estimator": "gae" if critic else "group"},
    }


def of_turns(mode: str) -> dict[str, Any]:
    """A response of several turns that has everything that turns may have."""
    return {
        "advantage": {"estimator": "gae", "normalise": "role"},
        "turns": {"mode": mode, "shaping": 1.0},
    }


def of_stored(objective: str, *, pairs: str = "", **offline: Any) -> dict[str, Any]:
    """Stored responses with a loss for them."""
    mean = "seq-mean-token-mean" if pairs else "token-mean"
    return {
        "offline": {"rows": "runs/x", "pairs": pairs, **offline},
        "loss": {"objective": objective, "aggregation": mean},
        "advantage": {"estimator": "stored"},
        "rollout": {"group_size": 2 if pairs else 1},
    }


TREE = {"advantage": {"estimator": "tree", "scale": "none"}, "rollout": {"group_size": 216}}
ANCHOR = {"against": "anchor", "anchors": "reference"}
TOGETHER = {"cotraining": {"enabled": True}}
# For every part the least that switches it on.
ON: dict[str, dict[str, Any]] = {
    "dynamic-sampling": {"dynamic_sampling": {"enabled": True}},
    "accuracy-filter": {"dynamic_sampling": {"enabled": True, "min_accuracy": 0.1}},
    "surplus-kept": {"dynamic_sampling": {"enabled": True, "keep_surplus": True}},
    "fire": {"fire": {"enabled": True}},
    "stored-rollouts": of_stored("sft"),
    "adaptive-supervision": {
        "offline": {"rows": "runs/x", "reference": "none", "mix": "sasr"},
    },
    "advantage-filter": of_stored("a-lol", keep="positive"),
    "correct-only": of_stored("sft", keep="correct"),
    "component-pairs": of_stored("dpo", pairs="format"),
    "hints": {
        "data": {
            "source": "jsonl",
            "path": "rows.jsonl",
            "columns": {"solution": "solution"},
        },
        "hints": {"enabled": True},
    },
    "replay": {"replay": {"groups": 64}},
    "recomposition": {"recomposition": {"groups": 64}},
    "token-budget": {"token_budget": {"tokens": 4096}, "optim": {"mini_batches": 1}},
    "self-verification": of_turns("verify"),
    "second-attempt": of_turns("reconsider"),
    "selective-revision": of_turns("verify"),
    "episodes": {"episodes": {"environment": "python"}},
    "shared-tool-results": {"episodes": {"environment": "python", "cache": True}},
    "forced-rethinking": {"rethinking": {"share": 0.5}},
    "corrected-only": {"rethinking": {"share": 0.5}},
    "partial-starts": {"starts": {"column": "begun"}},
    "truncation": {
        "advantage": {"estimator": "gae"},
        "critic": {"pretrain_steps": 5},
        "truncation": {"window": 64},
    },
    "asynchronous-rollouts": {"asynchrony": {"mode": "bounded"}},
    "periodic-asynchrony": {
        "asynchrony": {"mode": "periodic"},
        "optim": {"micro_batch": 8},
    },
    "interruption": {"asynchrony": {"mode": "bounded", "interrupt": True}},
    "verifier-warmup": TOGETHER,
    "class-balance": {"cotraining": {"enabled": True, "draws_per_solution": 4}},
    "void-turn-filter": {"filter": {"void": "text"}},
    "prof-filter": {"filter": {"prof": "both"}},
    "spread-filter": {"filter": {"min_group_std": 0.05}},
    "group-sampling": {"advantage": {"estimator": "gae"}},
    **{
        name: {
            "data": {
                "selection": {"name": name}
                | ({"limr": {"records": "samples.jsonl"}} if name == "limr" else {})
            }
        }
        for name in (
            "curriculum",
            "dads",
            "dump",
            "hard-focus",
            "limr",
            "mopps",
            "pre-ppo",
            "recap",
            "vade",
            "vas",
        )
    },
    "turn-rewards": of_turns("reconsider"),
    "first-attempt-reward": of_turns("reconsider"),
    "verifier-reward": of_turns("verify"),
    "turn-shaping": of_turns("reconsider"),
    "limited-episodes-out": {"episodes": {"environment": "python", "limits": "leave-out"}},
    "anchor-reward": {"pairwise": ANCHOR},
    "group-in-pairs": {"pairwise": {"against": "group", "anchors": "reference"}},
    "best-of-n-anchors": {"pairwise": {"against": "anchor", "anchors": "best-of-n"}},
    "order-gap-fault": {"pairwise": ANCHOR},
    "centred-win": {"pairwise": {**ANCHOR, "reward": "centred"}},
    "log-odds-win": {"pairwise": {**ANCHOR, "reward": "log-odds"}},
    "noise-backward": {"noise": {"correction": "backward", "false_negative": 0.3}},
    "noise-forward": {
        "advantage": {"estimator": "plain"},
        "noise": {"correction": "forward", "false_negative": 0.3},
    },
    "appeal": {"noise": {"appeals": True, "correction": "backward", "rates": "appeals"}},
    "gold": {"gold": {"verifier": "exact"}},
    "soft-overlong": {"shaping": {"overlong": "soft", "overlong_cache": 64}},
    "overlong-filter": {"shaping": {"overlong": "filter"}},
    "cosine-length": {"shaping": {"cosine": True}},
    "repetition-penalty": {"shaping": {"repetition_ngram": 4}},
    "concise-bonus": {"shaping": {"concise_bonus": 0.5, "concise_below": 16}},
    "difficulty-length": {"shaping": {"budget_penalty": 0.5, "budget_least": 16}},
    "self-reference": {"shaping": {"progress": 0.5}},
    "dense-rewards": {"dense": {"weight": 0.5}},
    "span-normalisation": {"dense": {"weight": 0.25}},
    "neutral-comments": {
        "dense": {"weight": 0.25},
        "reward": {"parameters": {"splitting": "code-line"}},
    },
    "outcome-weighted-spans": {"dense": {"weight": 0.25, "correct_share": 0.1}},
    "progress-attribution": {
        "advantage": {"estimator": "gae"},
        "progress": {"enabled": True},
    },
    "cotrained-verifier": TOGETHER,
    "verification-form": TOGETHER,
    "group-normalisation": {},
    "no-baseline": {"advantage": {"estimator": "plain"}},
    "leave-one-out": {"advantage": {"estimator": "rloo"}},
    "segment-advantages": {"advantage": {"estimator": "segments", "scale": "none"}},
    "stored-baseline": of_stored("a-lol"),
    "symmetric-group": {
        "advantage": {"estimator": "symmetric"},
        "pairwise": {"against": "group", "anchors": "reference"},
    },
    "tree-advantages": TREE,
    "turn-independence": of_turns("verify"),
    "role-normalisation": of_turns("verify"),
    "agent-credit": of_episodes(unit="agent"),
    "roles-apart": of_episodes(unit="agent"),
    "turn-credit": of_episodes(unit="turn"),
    "independent-turns": of_episodes(unit="turn", critic=True),
    "utterance-critic": of_episodes(unit="turn", values="turns", critic=True),
    "state-groups": of_episodes(unit="turn", compare="state"),
    "turn-discount": of_episodes(unit="turn", discount=0.9),
    "natural-returns": of_episodes(unit="turn", reach="context"),
    "episode-advantage": of_episodes(unit="turn", episode_weight=0.5),
    "positive-turns": of_episodes(unit="turn", keep="positive"),
    "phases": {"episodes": {"environment": "spy"}, "phases": {"decides": ["voter"]}},
    "step-interpolation": {"dense": {"weight": 0.1, "mix": "interpolate"}},
    "step-decay": {"dense": {"weight": 0.1, "decay_to": 1e-3}},
    "probability-mask": {"advantage": {"estimator": "segments", "scale": "none"}},
    "tree-probability-mask": TREE,
    "class-weights": TOGETHER,
    "std-scaling": {},
    "task-scaling": {"advantage": {"scale": "task"}},
    "difficulty-weight": {"advantage": {"difficulty": "exp"}},
    "medium-difficulty": {"advantage": {"difficulty": "medium"}},
    "success-adaptive-negatives": {"advantage": {"negative": "success"}},
    "advantage-whitening": {"advantage": {"normalise": "task"}},
    "sigma-filter": {"advantage": {"max_sigma": 3.0}},
    "discount": {"advantage": {"estimator": "gae", "gamma": 0.99}},
    "length-adaptive-gae": {"advantage": {"estimator": "gae", "length_adaptive_alpha": 0.05}},
    "critic": {"advantage": {"estimator": "gae"}},
    "value-search": {"advantage": {"estimator": "gae"}, "search": {"iterations": 2}},
    "value-init": {"advantage": {"estimator": "gae"}, "critic": {"init": "org/prm"}},
    "value-pretraining": {"advantage": {"estimator": "gae"}, "critic": {"pretrain_steps": 5}},
    "decoupled-gae": {"advantage": {"estimator": "gae", "lam": 0.9}, "critic": {"lam": 1.0}},
    "conservative-bellman": {
        "advantage": {"estimator": "gae"},
        "critic": {"conservative": 1.0},
        "optim": {"learning_rate": 0.0},
    },
    "shared-trunk": {"advantage": {"estimator": "gae"}, "critic": {"sharing": "trunk"}},
    "value-clipping": {"advantage": {"estimator": "gae"}, "critic": {"loss": "clipped"}},
    "categorical-value": {"advantage": {"estimator": "gae"}, "critic": {"loss": "hl-gauss"}},
    "recorded-reference": of_stored("a-lol", reference="recorded"),
    "clip-higher": {"loss": {"clip_high": 0.28}},
    "dual-clip": {"loss": {"dual_clip": 10.0}},
    "pre-clip": {"loss": {"pre_clip": 1000.0}},
    "sequence-ratio": {"loss": {"ratio": "sequence"}},
    "token-level-loss": {"loss": {"aggregation": "token-mean"}},
    "constant-normaliser": {"loss": {"aggregation": "constant"}},
    "whole-response-loss": {"loss": {"aggregation": "seq-mean-token-sum"}},
    "positive-lm-loss": {"loss": {"positive_lm_coef": 0.1}},
    "entropy-bonus": {"loss": {"entropy_coef": 0.01}},
    "kl": {"loss": {"kl_coef": 0.04}},
    "importance-correction": {"loss": {"importance_correction": "token-truncate"}},
    "importance-mask": {"loss": {"importance_correction": "icepop"}},
    "decoupled-ppo": {"loss": {"importance_correction": "decoupled"}},
    "a-lol": of_stored("a-lol"),
    "cispo": {"loss": {"objective": "cispo"}},
    "direct-advantage": {
        **of_stored("direct-advantage"),
        "advantage": {"estimator": "gae", "lam": 0.0},
        "critic": {"pretrain_steps": 5},
    },
    "dpo": of_stored("dpo", pairs="reward"),
    "prdp": of_stored("prdp", pairs="reward"),
    "sft": of_stored("sft"),
}


def make(tree: dict[str, Any], overrides: tuple[str, ...] = ()) -> Config:
    sections = ("rollout", "data", "reward", "optim")
    elsewhere = {name: tree[name] for name in sections if name in tree}
    method = {name: value for name, value in tree.items() if name not in elsewhere}
    whole = {"method": method, **elsewhere}
    if "pairwise" in tree:
        whole["reward"] = {"parameters": {"max_order_gap": 0.5}}
    return configs.build(whole, overrides, origin="test")


def names(config: Config) -> list[str]:
    return [part.name for part in parts_on(config)]


def test_every_part_has_an_example_here() -> None:
    assert list(ON) == [part.name for part in parts()]


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.name)
def test_a_part_can_be_seen_and_switched_off(part: Any) -> None:
    config = make(ON[part.name])
    assert part.name in names(config)
    if part.off is None:
        with pytest.raises(ConfigError, match="cannot be switched off by itself"):
            ablated(config, [part.name])
        return
    off = ablated(config, [part.name])
    assert part.name not in names(off)
    assert off.ablate == (part.name,)
    assert config.ablate == (), "settings are values: the old ones stay"


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.name)
def test_a_part_says_what_it_does_and_where_that_is_written(part: Any) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", part.name)
    assert part.what.endswith(".")
    assert part.what.count(". ") == 0, "one sentence"
    known = re.search(r"arXiv \d{4}\.\d{5}", part.reference)
    assert known or part.reference.startswith(("ours", "truncated importance sampling"))
    assert part_names()[part.name] is part


@pytest.mark.parametrize(
    ("tree", "name", "expected"),
    [
        # VAPO, section 4.3 and 5.1: the same budget on prompts with one sample each.
        (
            {"advantage": {"estimator": "gae"}},
            "group-sampling",
            {"rollout.prompts_per_step": 32, "rollout.group_size": 1},
        ),
        # GSPO, section 5.1: its baseline of token ratios was clipped to 0.2 and 0.27.
        (
            {"loss": {"ratio": "sequence", "clip_low": 3e-4, "clip_high": 4e-4}},
            "sequence-ratio",
            {"method.loss.clip_low": 0.2, "method.loss.clip_high": 0.27},
        ),
        (
            {"loss": {"ratio": "sequence", "clip_low": 0.1, "clip_high": 0.1}},
            "sequence-ratio",
            {"method.loss.clip_low": 0.1, "method.loss.clip_high": 0.1},
        ),
        (
            {"loss": {"objective": "cispo", "clip_low": 1.0, "clip_high": 0.28}},
            "cispo",
            {"method.loss.clip_low": 0.2, "method.loss.clip_high": 0.28},
        ),
        (
            {"advantage": {"estimator": "gae", "lam": 0.9}, "critic": {"lam": 1.0}},
            "decoupled-gae",
            {"method.critic.lam": 0.9, "method.advantage.lam": 0.9},
        ),
        (
            {
                "advantage": {"estimator": "gae"},
                "loss": {"kl_coef": 0.1, "kl_place": "reward"},
            },
            "critic",
            {"method.advantage.estimator": "group", "method.loss.kl_place": "loss"},
        ),
        (
            {"loss": {"kl_coef": 0.1, "kl_coef_by_task": {"chat": 0.2}}},
            "kl",
            {"method.loss.kl_coef": 0.0, "method.loss.kl_coef_by_task": {}},
        ),
        # What is unfinished is worth what the critic says: one that knows must be there.
        (
            {
                "advantage": {"estimator": "gae"},
                "critic": {"pretrain_steps": 5},
                "truncation": {"window": 64},
            },
            "value-pretraining",
            {"method.critic.pretrain_steps": 0, "method.truncation.window": 0},
        ),
        (
            {
                "advantage": {"estimator": "gae"},
                "critic": {"pretrain_steps": 5},
                "truncation": {"window": 64},
            },
            "critic",
            {"method.advantage.estimator": "group", "method.truncation.window": 0},
        ),
        (
            {"loss": {"clip_low": 0.1, "clip_high": 0.28}},
            "clip-higher",
            {"method.loss.clip_low": 0.1, "method.loss.clip_high": 0.1},
        ),
    ],
)
def test_what_switching_off_sets(tree: Any, name: str, expected: dict[str, Any]) -> None:
    config = make(tree, (f"ablate={name}",))
    for key, value in expected.items():
        node: Any = config
        for step in key.split("."):
            node = getattr(node, step)
        assert node == value, key


def test_several_at_once_and_each_once() -> None:
    tree = {"loss": {"clip_high": 0.28}, "dynamic_sampling": {"enabled": True}}
    config = make(tree, ("ablate=clip-higher, dynamic-sampling,clip-higher",))
    assert config.ablate == ("clip-higher", "dynamic-sampling")
    assert names(config) == ["group-normalisation", "std-scaling", "token-level-loss"]
    assert make(tree, ('ablate=["clip-higher"]', "ablate=dynamic-sampling")).ablate == config.ablate


@pytest.mark.parametrize(
    ("tree", "asked", "message"),
    [
        ({}, "clip-hihger", "'clip-hihger' is not a part; did you mean clip-higher? on here: "),
        ({}, "clip-higher", "clip-higher is not on; on here: std-scaling, token-level-loss"),
        ({}, "group-normalisation", "group-normalisation cannot be switched off by itself"),
        (
            {"loss": {"aggregation": "seq-mean-token-mean"}, "advantage": {"scale": "none"}},
            "kl",
            "kl is not on; on here: none",
        ),
    ],
)
def test_what_cannot_be_switched_off_is_said_in_one_line(
    tree: Any, asked: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make(tree, (f"ablate={asked}",))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_switches_off_what_is_not_on_is_refused_too() -> None:
    with pytest.raises(ConfigError, match="dual-clip is not on"):
        configs.build({"ablate": ["dual-clip"]}, origin="test")


def test_the_complete_settings_of_an_ablated_run_are_read_back(tmp_path: Path) -> None:
    tree = {"loss": {"clip_high": 0.28, "dual_clip": 10.0}}
    config = make(tree, ("ablate=clip-higher,dual-clip",))
    path = tmp_path / "config.toml"
    path.write_text(configs.to_toml(config), encoding="utf-8")
    assert configs.load(path) == config
    assert configs.load(path, ["run.steps=7"]).ablate == config.ablate
    more = configs.load(path, ["ablate=std-scaling"])
    assert more.ablate == ("clip-higher", "dual-clip", "std-scaling")
    with pytest.raises(ConfigError, match="clip-higher is not on"):
        configs.load(path, ["ablate=clip-higher"])


def test_rules_that_bind_several_settings_see_what_is_left() -> None:
    tree = {"advantage": {"estimator": "gae"}, "dynamic_sampling": {"enabled": True}}
    with pytest.raises(ConfigError, match=r"dynamic_sampling needs rollout\.group_size"):
        make(tree, ("ablate=group-sampling",))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("model=org/name", ("model.name=org/name",)),
        ("reward=math-dapo", ("reward.verifier=math-dapo",)),
        ("data=rows.jsonl", ("data.source=jsonl", "data.path=rows.jsonl")),
        ("data=a/b/rows.jsonl.gz", ("data.source=jsonl", "data.path=a/b/rows.jsonl.gz")),
        ("data=openai/gsm8k", ("data.source=hub", "data.name=openai/gsm8k")),
        ("data.path=x", ("data.path=x",)),
        ("run.steps=3", ("run.steps=3",)),
        ("model", ("model",)),
    ],
)
def test_short_forms(text: str, written: tuple[str, ...]) -> None:
    assert expand([text]).texts == written


def test_a_folder_of_data_is_a_data_set(tmp_path: Path) -> None:
    assert expand([f"data={tmp_path}"]).texts == ("data.source=hub", f"data.name={tmp_path}")


@pytest.mark.parametrize("value", ["./absent", "/absent/rows.csv", "here.csv"])
def test_data_that_are_neither_is_refused(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.csv").write_text("a,b\n")
    with pytest.raises(ConfigError, match=r"give a \.jsonl or .* file, a folder"):
        expand([f"data={value}"])


def test_short_forms_reach_the_settings() -> None:
    config = configs.build(
        {}, ["model=a/b", "data=rows.jsonl", "reward=exact", "ablate=std-scaling"], origin="test"
    )
    assert (config.model.name, config.data.source, config.data.path) == (
        "a/b",
        "jsonl",
        "rows.jsonl",
    )
    assert config.reward.verifier == "exact"
    assert config.method.advantage.scale == "none"


def test_nested_tables_as_dotted_keys() -> None:
    tree = tomllib.loads("ablate = []\n[a]\nb = 1\n[a.c]\nd = 2\n")
    assert flat(tree) == {"ablate": [], "a.b": 1, "a.c.d": 2}
