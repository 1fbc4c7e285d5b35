"""What Self-Critique (arXiv 2510.09259) says of rows that a model was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.claim import Claim
from experiments.contamination.planted import audited, made

STEPS = 400
SOURCE = "Self-Critique, arXiv 2510.09259, abstract"
SETUP = (
    "a policy of 0.1 M weights writes five digits in any order; GRPO, 400 steps of 20 problems with"
    " 8 responses each, pays orders that begin with a digit which is the problem's own; 40 problems"
    " were trained on and 40 were not, which is exchanged from seed to seed; `assay contamination`"
    " tells one from the other."
)
WHY = (
    "The digit follows from nothing, so that members are solved by heart (over 0.9, others below"
    " 0.25 in pilots), and 24 orders are right, so that there is another way to be asked for."
)
CLAIMS = (
    Claim(
        "self-critique-auc",
        "The entropies of two answers tell rows that RL trained on from others.",
        SOURCE,
        SETUP,
        WHY,
        "AUC self-critique less 0.5",
        "trained",
        "",
        0.1,
        0.06,
    ),
    Claim(
        "self-critique-over-perplexity",
        "They do it better than the likelihood of the answer does.",
        SOURCE,
        SETUP,
        WHY + " RL makes a policy sure of all it writes, which is what perplexity measures.",
        "AUC self-critique less AUC perplexity",
        "trained",
        "",
        0.1,
        0.06,
    ),
)


def prepare(models: Path) -> None:
    """The model and both halves of the problems."""
    made(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """One run and its audit."""
    return audited(arm, seed, folder, models, STEPS)
