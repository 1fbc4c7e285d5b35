"""What SPA-RL (arXiv 2505.20732) says of an outcome that is divided among the steps."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

from assay.kit.runs.records import read_rows
from assay.trainer.records.folder import RunFolder
from experiments.claim import Claim
from experiments.miniature import Service, tiny, train
from experiments.tasks import SPREAD, counting, counts_right

STEPS, EVERY = 60, 10
SETUP = (
    f"Count on from a digit by {SPREAD.steps[0]} to {SPREAD.steps[1]} steps, in the last digit"
    f" alone, in up to {SPREAD.limit} tokens; a pretrained model miscounts. PPO with a critic,"
    f" {STEPS} steps of 16 x 8 responses; what a response earned lies on its last token, or is"
    f" divided among its tokens. Held-out accuracy every {EVERY} steps, averaged over the run"
)
WHY = (
    "An outcome hangs on some of up to 17 tokens, each of which may be the one that fails, and the"
    " last hidden state at a token tells the digit that it counted to. Both arms have the same"
    " critic, and the parts sum to the outcome."
)
CLAIMS = (
    Claim(
        "spa-rl-over-outcome",
        "Stepwise progress is a better reward than the delayed outcome.",
        "SPA-RL, arXiv 2505.20732, abstract",
        SETUP + ".",
        WHY,
        "over the run",
        "progress",
        "outcome",
        0.05,
        0.05,
    ),
)


def prepare(models: Path) -> None:
    """The model and the problems."""
    counting(models, SPREAD)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """Held-out accuracies before and after the run, and over it."""
    own = [
        f"rollout.max_new_tokens={SPREAD.limit}", "rollout.prompts_per_step=16",
        "optim.learning_rate=3e-4", "method.critic.learning_rate=1e-3",
        "eval.prompts=30", "eval.samples=8", f"eval.every={EVERY}",
    ]  # fmt: skip
    if arm == "progress":
        own += ["method.progress.enabled=true", 'method.progress.step_end=""']
    report = train(
        tiny("ppo", {"seed": seed, "steps": STEPS}, counting(models, SPREAD), *own),
        folder,
        lambda: Service(counts_right, rewards=(0.0, 1.0)),
    )
    after = report["after"]["accuracy"]
    evals = [row["accuracy"] for row in read_rows(RunFolder(folder).evals)]
    return {
        "before": report["before"]["accuracy"],
        "after": after,
        "over the run": statistics.fmean([*evals, after]),
    }
