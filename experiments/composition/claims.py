"""What RoRecomp (arXiv 2509.25958) says of batches made of short right and long wrong responses."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from assay.trainer.records.folder import RunFolder
from experiments.claim import Claim
from experiments.composition.contest import figures, run_config
from experiments.miniature import Service, train
from experiments.tasks import AGAIN, counting, counts_right

PART, STEPS = "recomposition", 40
SETUP = (
    "Counting again and again: 8 to 20 steps, and after each attempt another with a chance of 0.85,"
    f" in up to {AGAIN.limit} tokens; 16 x 8 responses a step, {STEPS} steps, half of each batch"
    " composed of short right and long wrong responses, the rest in batches of its own, or all at"
    " once"
)
WHY = (
    "Four tokens in five are attempts that nothing needs: of some 85 at first 17 suffice. GRPO"
    " itself leaves most of them out, as a longer response is cut more often; in pilots it ends 3"
    " to 6 tokens above what is needed, and two of these are the effect."
)
CLAIMS = (
    Claim(
        "rorecomp-shorter",
        "Recomposed batches make responses shorter (reasoning by 27.7 %).",
        "RoRecomp, arXiv 2509.25958, abstract",
        SETUP + ".",
        WHY,
        "length_late",
        "recomposed",
        "all at once",
        -2.0,
        1.3,
    ),
    Claim(
        "rorecomp-keeps",
        "Accuracy is kept.",
        "RoRecomp, arXiv 2509.25958, abstract",
        SETUP + ".",
        WHY,
        "correct_late",
        "recomposed",
        "all at once",
        0.15,
        0.14,
        keeps=True,
    ),
)


def prepare(models: Path) -> None:
    """The model and its problems."""
    counting(models, AGAIN)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """Lengths and correct responses of the first and the last tenth of the steps."""
    config = run_config(PART, arm, models, STEPS, seed, kind=AGAIN)
    train(config, folder, functools.partial(Service, counts_right))
    found = figures(PART, RunFolder(folder), 0)
    return {key: found[key] for key in ("length_first", "length_late", "correct_late")}
