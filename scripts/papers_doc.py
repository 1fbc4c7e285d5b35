"""Keeps the table of parts in docs/papers.md equal to assay/trainer/methods.

python scripts/papers_doc.py write    rewrites the table
python scripts/papers_doc.py check    exits with 1 when it differs

Golden names and differences are read from the page's own tables, by the function.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import written
from assay.trainer.methods.parts import PARTS

DOCUMENT = written.ROOT / "docs" / "papers.md"
BEGIN = "<!-- parts: written by scripts/papers_doc.py from assay/trainer/methods -->\n"
END = "<!-- end of parts -->\n"
_MOST_CELLS = 6
_PLACES = {"clients": "clients", "genrm": "genrm", "trainer": "trainer"}

# The function, or the class, in which a part's arithmetic is: below assay.trainer, or whole.
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "dynamic-sampling": ("rollouts.dynamic.keeps",),
    "surplus-kept": ("rollouts.collector.Collector",),
    "group-sampling": ("settings.RolloutConfig",),
    "fire": ("algos.sampling.fire_first_token_probs",),
    "mopps": ("selection.bayes.ByBelief",),
    "vade": ("selection.bayes.ByBelief",),
    "dump": ("algos.selection.dump_domain_weights",),
    "dads": ("algos.selection.dads_domain_weights",),
    "curriculum": ("selection.domains.Curriculum",),
    "hard-focus": ("selection.subsets.HardFocus",),
    "vas": ("selection.variance.VarianceAware",),
    "pre-ppo": ("algos.selection.pre_ppo_select",),
    "limr": ("algos.selection.lim_score",),
    "hints": ("methods.hints.hints.Hinted",),
    "replay": ("methods.replay.replay.Replay",),
    "recomposition": ("methods.recomposition.recomposition.Recomposition",),
    "void-turn-filter": ("methods.filters.filters.without_void",),
    "prof-filter": ("algos.selection.prof_filter",),
    "spread-filter": ("methods.filters.filters.filtered",),
    "truncation": ("algos.gae.boundary_values",),
    "asynchronous-rollouts": ("methods.asynchrony.settings.admits",),
    "periodic-asynchrony": ("methods.asynchrony.periodic.Iteration",),
    "soft-overlong": ("algos.shaping.soft_overlong",),
    "overlong-filter": ("methods.shaping.shape.shape",),
    "cosine-length": ("algos.shaping.cosine_length_reward",),
    "repetition-penalty": ("algos.shaping.ngram_repetition_penalty",),
    "dense-rewards": ("algos.dense.dense_group_advantages", "core.build.with_spans"),
    "span-normalisation": ("core.build.with_spans",),
    "neutral-comments": ("assay.genrm.steps.code.mask_idle",),
    "outcome-weighted-spans": ("core.build.with_spans",),
    "anchor-reward": ("rollouts.pairs.as_win",),
    "group-in-pairs": ("rollouts.pairs.fold",),
    "best-of-n-anchors": ("methods.pairwise.anchors.choose",),
    "order-gap-fault": ("rollouts.pairs.order_gap",),
    "centred-win": ("algos.shaping.win_reward",),
    "log-odds-win": ("algos.shaping.win_reward",),
    "group-normalisation": ("algos.advantages.group_advantages",),
    "leave-one-out": ("algos.advantages.rloo_advantages",),
    "symmetric-group": ("algos.advantages.symmetric_advantages",),
    "std-scaling": ("algos.advantages.group_advantages",),
    "segment-advantages": ("algos.segments.segment_advantages", "algos.segments.cut_points"),
    "probability-mask": ("methods.segments.collector.segments",),
    "task-scaling": ("algos.advantages.group_advantages",),
    "difficulty-weight": ("algos.difficulty.weights", "algos.difficulty.smoothed"),
    "advantage-whitening": ("algos.advantages.standardise",),
    "sigma-filter": ("algos.advantages.within_sigmas",),
    "discount": ("algos.gae.gae",),
    "length-adaptive-gae": ("algos.gae.length_adaptive_lambda",),
    "critic": ("algos.gae.gae",),
    "value-init": ("critic.model.load_critic",),
    "value-pretraining": ("critic.pretraining.pretrain",),
    "decoupled-gae": ("algos.gae.decoupled_gae",),
    "shared-trunk": ("critic.trunk.TrunkCritic",),
    "value-clipping": ("algos.value_losses.clipped_value_losses",),
    "categorical-value": ("algos.value_losses.ValueBins",),
    "clip-higher": ("algos.policy_losses.ppo_token_losses",),
    "dual-clip": ("algos.policy_losses.ppo_token_losses",),
    "pre-clip": ("algos.ratios.pre_clip_log_ratio",),
    "sequence-ratio": ("algos.ratios.sequence_log_ratio",),
    "cispo": ("algos.policy_losses.cispo_token_losses",),
    "token-level-loss": ("algos.aggregation.aggregate",),
    "constant-normaliser": ("algos.aggregation.aggregate",),
    "whole-response-loss": ("algos.aggregation.aggregate",),
    "positive-lm-loss": ("algos.auxiliary.positive_lm_loss",),
    "entropy-bonus": ("core.objective.policy_loss",),
    "kl": ("algos.kl.kl_token_losses",),
    "importance-correction": ("algos.ratios.truncated_importance_weights",),
    "decoupled-ppo": ("algos.policy_losses.decoupled_ppo_token_losses",),
    "self-verification": ("methods.turns.dialogues.Dialogues",),
    "second-attempt": ("methods.turns.dialogues.Dialogues",),
    "selective-revision": ("methods.turns.dialogues.Dialogues",),
    "turn-rewards": ("methods.turns.credit.turn_tokens",),
    "first-attempt-reward": ("methods.turns.credit.rewards_of",),
    "verifier-reward": ("assay.clients.self_verification.turn_rewards",),
    "turn-shaping": ("assay.clients.self_verification.turn_rewards",),
    "turn-independence": ("algos.turns.turn_gae",),
    "role-normalisation": ("algos.advantages.standardise",),
    "cotrained-verifier": ("methods.cotraining.roles.Partner",),
    "verifier-warmup": ("methods.cotraining.schedule.Schedule",),
    "verification-form": ("methods.cotraining.measures.reward_of",),
    "class-weights": ("methods.cotraining.measures.inverse_root_weights",),
    "step-interpolation": ("core.batch.group_advantages",),
    "step-decay": ("settings.DenseConfig",),
}


@dataclass(frozen=True, slots=True)
class Row:
    """What a row of the page's tables says of a function."""

    section: str
    paper: str
    golden: tuple[str, ...]
    differences: str


def rows_of(document: str) -> dict[str, list[Row]]:
    """The rows of the page's tables by function, as `module.function`."""
    found: dict[str, list[Row]] = {}
    for section in re.split(r"^## ", document, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        for line in re.findall(r"^\|.*\|$", body, re.MULTILINE):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if len(cells) < _MOST_CELLS - 1:
                continue
            _, _, paper, functions, golden, *rest = cells
            row = Row(title, paper, tuple(re.findall(r"`(\w+)`", golden)), "".join(rest))
            for name in re.findall(r"`(\w+\.\w+)`", functions):
                found.setdefault(name, []).append(row)
    return found


def rows_for(rows: list[Row], reference: str) -> list[Row]:
    """Those of a function's rows that name the part's paper; all where none does."""
    words = [re.findall(r"\d{4}\.\d{5}", row.paper) or row.paper.split()[:1] for row in rows]
    named = [row for row, own in zip(rows, words, strict=True) if any(w in reference for w in own)]
    return named or rows


def exists(path: str) -> bool:
    """Whether the module of the function defines it."""
    *modules, name = path.split(".")
    file = written.ROOT / _PLACES[modules[1]] / Path(*modules).with_suffix(".py")
    defined = rf"^(?:def|class) {name}\b"
    return file.is_file() and bool(re.search(defined, file.read_text(), re.MULTILINE))


def render_table(document: str) -> str:
    """The table, in the order in which `assay train --explain` lists parts.

    Raises:
        ValueError: a part is not in FUNCTIONS, or a function is not there.
    """
    names = {part.name for part in PARTS}
    if names != set(FUNCTIONS):
        raise ValueError(f"FUNCTIONS must name every part: {sorted(names ^ set(FUNCTIONS))}")
    rows = rows_of(document)
    lines = ["| part | paper | function | golden | formula, differences |", "|---|---|---|---|---|"]
    for part in PARTS:
        whole = [
            p if p.startswith("assay.") else f"assay.trainer.{p}" for p in FUNCTIONS[part.name]
        ]
        missing = [path for path in whole if not exists(path)]
        if missing:
            raise ValueError(f"part {part.name}: there is no {missing[0]}")
        keys = [".".join(path.split(".")[-2:]) for path in whole]
        told = [row for key in keys for row in rows_for(rows.get(key, []), part.reference)]
        golden = dict.fromkeys(f"`{name}`" for row in told for name in row.golden)
        notes = dict.fromkeys(
            f"[{row.section}](#{row.section.lower().replace(' ', '-')})"
            + (f" {row.differences}" if row.differences else "")
            for row in told
        )
        functions = ", ".join(f"`{path}`" for path in whole)
        cells = (part.name, part.reference, functions, ", ".join(golden), "; ".join(notes))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_table(document: str) -> str:
    """The document with its table replaced.

    Raises:
        ValueError: the document does not hold both marks, once and in order.
    """
    before, _, rest = document.partition(BEGIN)
    table = render_table(before + rest.partition(END)[2])
    return written.between(document, (BEGIN, END), table, DOCUMENT.name)


def wanted() -> dict[Path, str]:
    """The document as it should be."""
    return {DOCUMENT: with_table(DOCUMENT.read_text(encoding="utf-8"))}


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    return written.run(__doc__, "the parts", wanted, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
