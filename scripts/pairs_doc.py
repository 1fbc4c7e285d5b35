"""Keeps the table of what goes with what in docs/train/methods.md equal to what the settings say.

python scripts/pairs_doc.py write    rewrites the table
python scripts/pairs_doc.py check    exits with 1 when it differs

A pair is switched on together and loaded. tests/e2e/test_method_pairs.py trains each that loads.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import written
from assay.kit.errors import ConfigError
from assay.trainer.settings.config import Config, build

DOCUMENT = written.ROOT / "docs" / "train" / "methods.md"
BEGIN = "<!-- pairs: written by scripts/pairs_doc.py -->\n"
END = "<!-- end of pairs -->\n"

_CRITIC = {"method.advantage.estimator": "gae"}
_EPISODES = {"method.episodes.environment": f"{written.ROOT / 'tests' / 'relay.py'}:Relay"}
_TURN = {**_EPISODES, "method.turn_credit.unit": "turn"}
_DENSE = {"method.dense.weight": "0.5"}
ON: Mapping[str, Mapping[str, str]] = {
    "leave-one-out": {"method.advantage.estimator": "rloo"},
    "critic": _CRITIC,
    "shared-trunk": {**_CRITIC, "method.critic.sharing": "trunk"},
    "value-pretraining": {**_CRITIC, "method.critic.pretrain_steps": "2"},
    "categorical-value": {**_CRITIC, "method.critic.loss": "hl-gauss"},
    "length-adaptive-gae": {**_CRITIC, "method.advantage.length_adaptive_alpha": "0.05"},
    "segment-advantages": {
        "method.advantage.estimator": "segments",
        "method.advantage.scale": "none",
    },
    "tree-advantages": {
        "method.advantage.estimator": "tree",
        "method.advantage.scale": "none",
        "method.tree.branches": "[2, 2]",
        "method.tree.segment_tokens": "1",
    },
    "group-in-pairs": {
        "method.advantage.estimator": "symmetric",
        "method.pairwise.against": "group",
        "method.pairwise.anchors": "reference",
    },
    "anchor-reward": {
        "method.pairwise.against": "anchor",
        "method.pairwise.anchors": "reference",
    },
    "dynamic-sampling": {"method.dynamic_sampling.enabled": "true"},
    "surplus-kept": {
        "method.dynamic_sampling.enabled": "true",
        "method.dynamic_sampling.keep_surplus": "true",
    },
    "fire": {"method.fire.enabled": "true", "method.fire.top_k": "8"},
    "selector (mopps)": {"data.selection.name": "mopps"},
    "hints": {"method.hints.enabled": "true", "data.columns.solution": "solution"},
    "replay": {"method.replay.groups": "8"},
    "recomposition": {"method.recomposition.groups": "8"},
    "token-budget": {"method.token_budget.tokens": "24", "optim.mini_batches": "1"},
    "forced-rethinking": {
        "method.rethinking.share": "0.5",
        "method.rethinking.triggers": '["?"]',
    },
    "partial-starts": {"method.starts.column": "begun"},
    "prof-filter": {"method.filter.prof": "both"},
    "spread-filter": {"method.filter.min_group_std": "0.05"},
    "void-turn-filter": {"method.filter.void": "text", "method.filter.void_answer": "[0-4]"},
    "truncation": {
        **_CRITIC,
        "method.truncation.window": "2",
        "method.critic.pretrain_steps": "2",
    },
    "asynchronous-rollouts": {"method.asynchrony.mode": "bounded"},
    "periodic-asynchrony": {
        "method.asynchrony.mode": "periodic",
        "optim.mini_batches": "1",
        "optim.micro_batch": "4",
    },
    "soft-overlong": {
        "method.shaping.overlong": "soft",
        "method.shaping.overlong_cache": "2",
    },
    "overlong-filter": {"method.shaping.overlong": "filter"},
    "cosine-length": {"method.shaping.cosine": "true"},
    "repetition-penalty": {"method.shaping.repetition_ngram": "2"},
    "concise-bonus": {"method.shaping.concise_bonus": "0.5", "method.shaping.concise_below": "3"},
    "difficulty-length": {
        "method.shaping.budget_penalty": "0.5",
        "method.shaping.budget_least": "1",
    },
    "self-reference": {"method.shaping.progress": "0.5"},
    "noise-backward": {
        "method.noise.correction": "backward",
        "method.noise.false_negative": "0.3",
    },
    "noise-forward": {
        "method.noise.correction": "forward",
        "method.noise.false_negative": "0.3",
        "method.advantage.estimator": "plain",
    },
    "appeal": {"method.noise.appeals": "true"},
    "gold": {"method.gold.verifier": "exact", "method.gold.parameters": "{strict=true}"},
    "no-baseline": {"method.advantage.estimator": "plain"},
    "dense-rewards": _DENSE,
    "progress-attribution": {
        **_CRITIC,
        "method.progress.enabled": "true",
        "method.progress.step_end": "",
    },
    "step-interpolation": {**_DENSE, "method.dense.mix": "interpolate"},
    "advantage-whitening": {"method.advantage.normalise": "batch"},
    "sigma-filter": {"method.advantage.max_sigma": "3"},
    "task-scaling": {"method.advantage.scale": "task"},
    "difficulty-weight": {"method.advantage.difficulty": "exp"},
    "medium-difficulty": {"method.advantage.difficulty": "medium"},
    "sequence-ratio": {"method.loss.ratio": "sequence"},
    "cispo": {"method.loss.objective": "cispo"},
    "constant-normaliser": {"method.loss.aggregation": "constant"},
    "positive-lm-loss": {"method.loss.positive_lm_coef": "0.1"},
    "entropy-bonus": {"method.loss.entropy_coef": "0.01"},
    "kl": {"method.loss.kl_coef": "0.05"},
    "kl in the reward": {
        **_CRITIC,
        "method.loss.kl_coef": "0.05",
        "method.loss.kl_place": "reward",
    },
    "importance-correction": {"method.loss.importance_correction": "token-truncate"},
    "importance-mask": {"method.loss.importance_correction": "icepop"},
    "decoupled-ppo": {"method.loss.importance_correction": "decoupled"},
    "self-verification": {**_CRITIC, "method.turns.mode": "verify"},
    "second-attempt": {**_CRITIC, "method.turns.mode": "reconsider"},
    "episodes": _EPISODES,
    "limited-episodes-out": {
        **_EPISODES,
        "method.episodes.limits": "leave-out",
        "method.episodes.turns": "1",
    },
    "shared-tool-results": {**_EPISODES, "method.episodes.cache": "true"},
    "void-turn-filter (turns)": {**_EPISODES, "method.filter.void": "turn"},
    "agent-credit": {**_EPISODES, "method.turn_credit.unit": "agent"},
    "turn-credit": _TURN,
    "independent-turns": {**_TURN, **_CRITIC},
    "utterance-critic": {**_TURN, **_CRITIC, "method.turn_credit.values": "turns"},
    "state-groups": {**_TURN, "method.turn_credit.compare": "state"},
    "turn-discount": {**_TURN, "method.turn_credit.discount": "0.9"},
    "episode-advantage": {**_TURN, "method.turn_credit.episode_weight": "0.5"},
    "positive-turns": {**_TURN, "method.turn_credit.keep": "positive"},
    "cotrained-verifier": {
        "method.cotraining.enabled": "true",
        "method.cotraining.prompt": "{question}{steps}=",
        "method.cotraining.step_heading": "",
        "method.cotraining.warmup_steps": "1",
        "method.cotraining.prompts_per_step": "4",
        "method.cotraining.group_size": "2",
        "method.cotraining.max_new_tokens": "4",
    },
}
"""How each is switched on, with what it cannot do without."""
SMALL = (
    "data.source=jsonl",
    "data.path=rows.jsonl",
    "reward.verifier=exact",
    "rollout.prompts_per_step=4",
    "rollout.group_size=4",
    "rollout.max_new_tokens=4",
    "optim.mini_batches=2",
    "eval.prompts=0",
)


def together(one: str, other: str) -> dict[str, str] | str:
    """The settings of both; or the setting of which each wants another value."""
    first, second = ON[one], ON[other]
    for key in first.keys() & second.keys():
        if first[key] != second[key]:
            return key
    return {**first, **second}


def loaded(settings: Mapping[str, str], *more: str) -> Config:
    """The settings of a small run.

    Raises:
        ConfigError: they do not go together.
    """
    texts = [f"{key}={value}" for key, value in settings.items()]
    return build({}, [*SMALL, *texts, *more], origin="pair", say=lambda _line: None)


def refusals() -> dict[tuple[str, str], str]:
    """Every pair, and why it is refused; empty where it is not."""
    found: dict[tuple[str, str], str] = {}
    for one, other in combinations(ON, 2):
        settings = together(one, other)
        if isinstance(settings, str):
            found[one, other] = f"`{settings}` has one value"
            continue
        try:
            loaded(settings)
            found[one, other] = ""
        except ConfigError as error:
            found[one, other] = str(error).removeprefix("pair: ")
    return found


def render() -> str:
    """Of each: how many it goes with, and what it does not go with."""
    refused = refusals()
    open_ = sum(not why for why in refused.values())
    values = sum(why.startswith("`") for why in refused.values())
    left = len(refused) - open_ - values
    told = f"{open_} train together, {values} are two values of one setting, {left} are refused"
    lines = [
        f"Of {len(refused)} pairs, {told}.",
        "",
        "| part | goes with | refused with |",
        "|---|---|---|",
    ]
    for name in ON:
        own = {pair: why for pair, why in refused.items() if name in pair}
        others = [
            next(iter({*pair} - {name}))
            for pair, why in own.items()
            if why and not why.startswith("`")
        ]
        count = sum(not why for why in own.values())
        lines.append(f"| {name} | {count} | {', '.join(others) or 'none'} |")
    return "\n".join(lines) + "\n"


def wanted() -> dict[Path, str]:
    """The document as it should be."""
    text = DOCUMENT.read_text(encoding="utf-8")
    return {DOCUMENT: written.between(text, (BEGIN, END), render(), DOCUMENT.name)}


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    return written.run(__doc__, "the pairs", wanted, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
