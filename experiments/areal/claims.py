"""What AReaL (arXiv 2505.24298) says of staleness, and of an objective that knows of it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.kit.runs.records import read_rows
from assay.trainer.records.folder import RunFolder
from experiments.areal.contest import settings
from experiments.claim import Claim
from experiments.miniature import Service, train
from experiments.tasks import counting, counts_right

STEPS, LATE = 40, 10
RATE = 2e-4
SIZES = ("rollout.prompts_per_step=16", "rollout.group_size=8", "optim.mini_batches=4")
ARMS = {
    "fresh": (0, "none"),
    "naive at eta 4": (4, "none"),
    "decoupled at eta 4": (4, "decoupled"),
}
"""How many steps old each batch is, and `method.loss.importance_correction`."""

SOURCE = "AReaL, arXiv 2505.24298, table of staleness"
SETUP = (
    f"counting by a model of 0.1 M weights, `areal`, {STEPS} steps of 16 x 8 responses, four"
    f" updates a step, rate {RATE:g}; the share of right answers in the last {LATE} steps. From a"
    " full queue: a run of eta makes eta steps more, and its figures begin where every batch is eta"
    " steps old, so that all arms are held against each other after equally many updates"
)
CLAIMS = (
    Claim(
        "areal-naive-falls",
        "At eta 4 PPO whose ratio starts at the sampler loses accuracy (AIME24 42.0 to 23.3,"
        " MATH500 89.2 to 66.9).",
        SOURCE,
        SETUP + "; eta 4 and the naive ratio, or batches of the step's own weights.",
        "A pilot reaches 0.77 with fresh batches, and three reach 0.45 to 0.47 with naive"
        " ones, whose clipped tokens are 12 times as many: the ratio may leave the sampler by"
        " a fifth in five steps, not in one. The effect is a fifth of what is right, as of"
        " MATH500. The deviation is of three seeds of 24 steps.",
        "late",
        "naive at eta 4",
        "fresh",
        -0.15,
        0.07,
    ),
    Claim(
        "areal-decoupled-over-naive",
        "At eta 4 the decoupled objective is far better than the naive one (AIME24 42.2 against"
        " 23.3, MATH500 89.5 against 66.9).",
        SOURCE,
        SETUP + "; eta 4 in both arms, the same initial queue.",
        "Three pilots reach 0.66 to 0.69, against 0.45 to 0.47; the base is right in 0.3. At"
        " the rate of 5e-4 and eta 8 the policy moves too far for the weight of the stale"
        " tokens, and a pilot had the naive objective ahead: the rate is part of the claim.",
        "late",
        "decoupled at eta 4",
        "naive at eta 4",
        0.1,
        0.05,
    ),
    Claim(
        "areal-decoupled-keeps",
        "At eta 4 the decoupled objective is as good as training without staleness (AIME24 42.2"
        " against 42.0, MATH500 89.5 against 89.2).",
        SOURCE,
        SETUP + "; eta 4 and the decoupled objective, or batches of the step's own weights.",
        "What may be lost is a third of what the naive objective loses in pilots. One pilot"
        " lost 0.106: accuracy grows by 0.02 a step here, so that an objective which is four"
        " steps behind and otherwise as good loses 0.08. The paper's runs are 250 steps, on a"
        " curve that is flat.",
        "late",
        "decoupled at eta 4",
        "fresh",
        0.1,
        0.07,
        keeps=True,
    ),
)


def prepare(models: Path) -> None:
    """The model and its problems."""
    counting(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """A run of eta makes eta steps more."""
    eta, correction = ARMS[arm]
    own = (
        f"method.loss.importance_correction={correction}",
        f"method.asynchrony.max_staleness={eta}",
        f"optim.learning_rate={RATE:g}",
        f"run.steps={STEPS + eta}",
        f"run.seed={seed}",
    )
    train(settings(models, (*SIZES, *own)), folder, lambda: Service(counts_right))
    return summary(read_rows(RunFolder(folder).metrics), eta)


def summary(rows: Sequence[Mapping[str, Any]], eta: int) -> dict[str, float | None]:
    """Figures from a full queue: of the steps whose batch is eta steps old, so of the batches that
    the policy drew after 0, 1, ... updates; shares of right answers, and of clipped tokens.

    Args:
        rows: of all steps.
        eta: the first so many, which learn from the initial policy's batches, are left out.

    Raises:
        ValueError: a batch that counts has another age.
    """
    counted = rows[eta:]
    ages = {row["staleness"] for row in counted}
    if ages != {eta}:
        raise ValueError(f"batches are {sorted(ages)} steps old, not all of them {eta}")
    right = [row["correct"] for row in counted]
    return {
        "late": statistics.fmean(right[-LATE:]),
        "mean": statistics.fmean(right),
        "entropy": statistics.fmean(row["entropy"] for row in counted[-LATE:]),
        "clipped": statistics.fmean(row["clip_low"] + row["clip_high"] for row in counted),
    }
