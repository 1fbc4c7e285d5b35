"""What FIRE (arXiv 2410.21236) says of rollouts, and of what they do to a policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.claim import Claim
from experiments.fire.contest import files, one_run, settings

STEPS = 40
STRATEGIES = (
    "the first token of eight picks a strategy, one is right for each problem and nearly always"
    " another is taken; GRPO, 40 steps of 16 problems with 8 responses each; regular decoding"
    " afterwards, 48 problems in a writing that was not trained on"
)
WHY = (
    "Half of the problems need a strategy that regular sampling takes twice in a hundred, so that"
    " there is something for flat first tokens to find; the arms differ in the sampler alone."
)
CLAIMS = (
    Claim(
        "fire-pass-1",
        "Training with FIRE's rollouts loses no accuracy of a single sample (exact mode).",
        "FIRE, arXiv 2410.21236, abstract",
        STRATEGIES + ".",
        WHY + " At most 0.03 lost.",
        "pass@1 after",
        "fire, exact",
        "regular",
        0.05,
        0.07,
        0.03,
    ),
    Claim(
        "fire-pass-16",
        "Training with FIRE's rollouts solves more problems in n samples (exact mode).",
        "FIRE, arXiv 2410.21236, abstract",
        STRATEGIES + ".",
        WHY,
        "pass@16 after",
        "fire, exact",
        "regular",
        0.08,
        0.07,
    ),
    Claim(
        "fire-mask",
        "With the first token out of the loss nothing is lost either (the default mode).",
        "FIRE, arXiv 2410.21236, abstract; the mode is our choice",
        STRATEGIES + ".",
        WHY + " It shows the mask at its worst: the first token is all there is to learn.",
        "pass@1 after",
        "fire, mask",
        "regular",
        0.05,
        0.07,
        0.03,
    ),
)


def prepare(models: Path) -> None:
    """The model and both writings of the problems."""
    files(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """One run of an arm of the contest."""
    return one_run(settings(arm, models, seed, STEPS), folder)
