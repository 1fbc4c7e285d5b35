"""What SPO (arXiv 2505.23564) says of advantages by a tree of segments."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from assay.kit.runs.records import Row, read_rows
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from experiments.claim import Claim
from experiments.miniature import Service, train
from experiments.tasks import LIMIT, counting, counts_right

TOKENS = 24_000
"""What each arm may draw."""
STEPS = {"groups": 60, "tree": 80}
"""Enough for them."""
ARMS: Mapping[str, tuple[str, ...]] = {
    "groups": ("method.advantage.scale=none",),
    "tree": (
        "method.advantage.estimator=tree",
        "method.advantage.scale=none",
        "method.tree.branches=[2,2,2]",
        "method.tree.segment_tokens=3",
        "method.tree.mask_sure=false",
    ),
}
CLAIMS = (
    Claim(
        "spo-tree-tokens",
        "Advantages of segments by a tree learn more from as many tokens than those of groups.",
        "SPO, arXiv 2505.23564, SPO-tree against GRPO",
        f"Counting in up to {LIMIT} tokens, eight prompts a step and eight responses to each: a"
        " tree of 2 x 2 x 2 segments of three tokens, or eight by themselves, both without a"
        f" deviation; {TOKENS:,} drawn tokens.",
        "A mistake is a step of the count, which a branch before it can do without; shared"
        " beginnings are drawn once, so that a tree makes more updates of as many tokens. Responses"
        " are short, and the authors made the tree for long ones.",
        "correct",
        "tree",
        "groups",
        0.1,
        0.1,
    ),
)


def prepare(models: Path) -> None:
    """The model and its problems."""
    counting(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """Correct responses in the last fifth of the steps that the tokens paid for, and the steps."""
    model, problems, held_out = counting(models)
    own = (
        "data.source=jsonl",
        "data.template={question}",
        "model.precision=float32",
        "reward.verifier=miniature",
        "method.loss.aggregation=token-mean",
        "optim.learning_rate=4e-4",
        f"rollout.max_new_tokens={LIMIT}",
        "rollout.prompts_per_step=8",
        "rollout.group_size=8",
        "eval.prompts=0",
        "run.checkpoint_every=0",
        "run.samples_every=0",
        "run.rollouts=none",
        "run.report_to=[]",
        f"model.name={model}",
        f"data.path={problems}",
        f"data.eval_path={held_out}",
        f"run.steps={STEPS[arm]}",
        f"run.seed={seed}",
        f"data.seed={seed}",
    )
    config = configs.build({}, (*own, *ARMS[arm]), origin="experiments")
    train(config, folder, functools.partial(Service, counts_right))
    spent, paid = 0, []
    for row in read_rows(RunFolder(folder).metrics):
        spent += drawn(row)
        if spent > TOKENS:
            break
        paid.append(row)
    late = paid[-max(1, len(paid) // 5) :]
    return {
        "correct": sum(row["correct"] for row in late) / len(late),
        "steps": float(len(paid)),
        "tokens a step": sum(map(drawn, paid)) / len(paid),
    }


def drawn(row: Row) -> int:
    """Tokens that a step drew."""
    return int(row["tree_tokens"] or row["generated_tokens"])
