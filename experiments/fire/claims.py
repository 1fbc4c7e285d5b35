"""What FIRE (arXiv 2410.21236) says of rollouts, and of what they do to a policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.claim import Claim
from experiments.fire.task import FIRE, files, one_run, sampled, settings

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
SAMPLED = "16 responses of the pretrained model to each of the 48 problems, no training."
CLAIMS = (
    Claim(
        "fire-sampled-16",
        "Flat first tokens solve more problems in n samples.",
        "FIRE, arXiv 2410.21236, abstract",
        SAMPLED,
        WHY,
        "pass@16",
        "sampled, fire",
        "sampled, regular",
        0.05,
        0.05,
    ),
    Claim(
        "fire-different",
        "Flat first tokens make answers more different.",
        "FIRE, arXiv 2410.21236, abstract",
        SAMPLED,
        WHY,
        "different answers",
        "sampled, fire",
        "sampled, regular",
        0.5,
        0.2,
    ),
    Claim(
        "fire-pass-1",
        "Training with FIRE's rollouts loses no accuracy of a single sample (exact mode).",
        "FIRE, arXiv 2410.21236, abstract",
        STRATEGIES + ".",
        WHY,
        "pass@1 after",
        "fire, exact",
        "regular",
        0.03,
        0.07,
        keeps=True,
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
        0.03,
        0.07,
        keeps=True,
    ),
)


def prepare(models: Path) -> None:
    """The model and both writings of the problems."""
    files(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """One run, or samples of the model that no run has trained."""
    kind, _, how = arm.partition("sampled, ")
    if not kind:
        return sampled(models, FIRE if how == "fire" else None, seed)
    return one_run(settings(arm, models, seed, STEPS), folder)
