"""What SPO (arXiv 2505.23564) says of advantages by a tree of segments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from assay.kit.runs.records import Row, read_rows
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from experiments.claim import Claim
from experiments.miniature import IsRight, Service, train
from experiments.tasks import (
    CHAIN_LIMIT,
    LIMIT,
    LINKS,
    chain_right,
    chains,
    counting,
    counts_right,
)


@dataclass(frozen=True, slots=True)
class Task:
    """What both arms learn, from as many tokens.

    Attributes:
        make: the model and the problems.
        right: of a response.
        limit: tokens of a response.
        segment: tokens of a tree's segment.
        tokens: what each arm may draw.
        steps: of each arm, enough for them.
    """

    make: Callable[[Path], tuple[Path, ...]]
    right: IsRight
    limit: int
    segment: int
    tokens: int
    steps: Mapping[str, int]


TASKS: Mapping[str, Task] = {
    "": Task(counting, counts_right, LIMIT, 3, 24_000, {"groups": 60, "tree": 80}),
    "long": Task(chains, chain_right, CHAIN_LIMIT, 64, 370_000, {"groups": 31, "tree": 60}),
}
"""By what stands behind the hyphen of an arm's name."""
_WHY = (
    "A mistake is a step of the {}, which a branch before it can do without; shared beginnings are"
    " drawn once, so that a tree makes more updates of as many tokens. "
)
CLAIMS = (
    Claim(
        "spo-tree-tokens",
        "Advantages of segments by a tree learn more from as many tokens than those of groups.",
        "SPO, arXiv 2505.23564, SPO-tree against GRPO",
        f"Counting in up to {LIMIT} tokens, eight prompts a step and eight responses to each: a"
        " tree of 2 x 2 x 2 segments of three tokens, or eight by themselves, both without a"
        f" deviation; {TASKS[''].tokens:,} drawn tokens.",
        _WHY.format("count") + "Responses are short, and the authors made the tree for long ones.",
        "correct",
        "tree",
        "groups",
        0.1,
        0.1,
    ),
    Claim(
        "spo-tree-tokens-long",
        "Advantages of segments by a tree learn more from as many tokens than those of groups.",
        "SPO, arXiv 2505.23564, SPO-tree against GRPO",
        f"Chains of {LINKS} links, {2 * LINKS} tokens, in which the pretrained model slips once or"
        " twice: eight prompts a step and eight responses to each, a tree of 2 x 2 x 2 segments of"
        " 64 tokens, or eight by themselves, both without a deviation;"
        f" {TASKS['long'].tokens:,} drawn tokens.",
        _WHY.format("chain") + "A slip lies in one segment of three.",
        "correct",
        "tree-long",
        "groups-long",
        0.1,
        0.06,
    ),
)


def prepare(models: Path) -> None:
    """The models and their problems."""
    for task in TASKS.values():
        task.make(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """Correct responses in the last fifth of the steps that the tokens paid for, and the steps."""
    sort, _, end = arm.partition("-")
    task = TASKS[end]
    model, problems, *_ = task.make(models)
    tree = (
        "method.advantage.estimator=tree",
        "method.tree.branches=[2,2,2]",
        f"method.tree.segment_tokens={task.segment}",
        "method.tree.mask_sure=false",
    )
    own = (
        "data.source=jsonl",
        "data.template={question}",
        "model.precision=float32",
        "reward.verifier=miniature",
        "method.advantage.scale=none",
        "method.loss.aggregation=token-mean",
        "optim.learning_rate=4e-4",
        f"rollout.max_new_tokens={task.limit}",
        "rollout.prompts_per_step=8",
        "rollout.group_size=8",
        "eval.prompts=0",
        "run.checkpoint_every=0",
        "run.samples_every=0",
        "run.rollouts=none",
        "run.report_to=[]",
        f"model.name={model}",
        f"data.path={problems}",
        f"run.steps={task.steps[sort]}",
        f"run.seed={seed}",
        f"data.seed={seed}",
    )
    config = configs.build({}, (*own, *(tree if sort == "tree" else ())), origin="experiments")
    train(config, folder, functools.partial(Service, task.right))
    spent, paid = 0, []
    for row in read_rows(RunFolder(folder).metrics):
        spent += drawn(row)
        if spent > task.tokens:
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
