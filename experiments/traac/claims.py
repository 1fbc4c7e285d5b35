"""What TRAAC (arXiv 2510.01581) says of a length reward that follows a prompt's difficulty."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from assay.kit.runs.records import read_rows
from assay.trainer.records.folder import RunFolder
from experiments.claim import Claim
from experiments.miniature import Service, tiny, train
from experiments.tasks import LIMIT, counting, counts_right

STEPS = 60
SAME = (
    "count on from a digit by two to nine, in the last digit alone; a pretrained model miscounts,"
    " and begins again three times in ten. GRPO, 8 x 8 responses of at most 20 tokens, 60 steps;"
    " held out: 16 problems, 16 responses each"
)
WHY = (
    "Harder problems need more tokens (5 to 12), and beginning again costs tokens at any of them."
    " The arms differ in TRAAC's reward alone, with budgets from 6 tokens, where all samples of a"
    " prompt are right, to 14, where none is. The paper's pruning by attention is in neither."
)
CLAIMS = (
    Claim(
        "traac-shorter",
        "A length reward by difficulty shortens responses (by 29.4 % of the best RL baseline's).",
        "TRAAC, arXiv 2510.01581, abstract",
        SAME + ". Length: of the last ten steps' responses.",
        WHY,
        "length",
        "traac",
        "grpo",
        -1.0,
        0.35,
    ),
    Claim(
        "traac-accuracy",
        "It raises accuracy (by 7.9 points over the best RL baseline).",
        "TRAAC, arXiv 2510.01581, abstract",
        SAME + ".",
        WHY,
        "accuracy",
        "traac",
        "grpo",
        0.1,
        0.1,
    ),
)
TRAAC = (
    "method.shaping.budget_penalty=1",
    "method.shaping.budget_least=6",
    "method.shaping.budget_most=14",
)


def prepare(models: Path) -> None:
    """The model and the problems."""
    counting(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """One run of 60 steps."""
    own = [f"rollout.max_new_tokens={LIMIT}", "optim.learning_rate=3e-4", "optim.mini_batches=1"]
    own += ["eval.prompts=16", "eval.samples=16", "method.loss.kl_coef=0"]
    own += TRAAC if arm == "traac" else ()
    wanted = {"seed": seed, "steps": STEPS}
    report = train(
        tiny("grpo", wanted, counting(models), *own),
        folder,
        lambda: Service(counts_right, rewards=(0.0, 1.0)),
    )
    last = list(read_rows(RunFolder(folder).metrics))[-10:]
    length = sum(row["response_length"] for row in last) / len(last)
    return {
        "before": report["before"]["accuracy"],
        "accuracy": report["after"]["accuracy"],
        "length": length,
    }
