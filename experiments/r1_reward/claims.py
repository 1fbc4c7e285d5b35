"""What R1-Reward (arXiv 2505.02835) says of a consistency that multiplies the result."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

from assay.api.reward.v1 import reward_pb2
from assay.kit.runs.records import read_rows
from assay.trainer.records.folder import RunFolder
from experiments.claim import Claim
from experiments.miniature import Item, train
from experiments.prof import contest
from experiments.prof.contest import LATE, Judged, Steps, problems, settings

STEPS = 120
WEIGHT = 0.5
VAGUE, MISLED = 0.12, 0.9
"""The chances that a pretrained step is vague, and that the judge takes such a step for right."""
SETUP = (
    "count on four times from a digit and say whether the last is small or big; that word is the"
    " result, 0 or 1, and the consistency of the steps with it is judged from -1 to 1 by one who is"
    " misled: a step that is a '?' passes nine times in ten. The reward is result x (1 + 0.5 x"
    " consistency), or result + 0.5 x consistency. GRPO, 16 x 8 responses, 120 steps."
)
WHY = (
    "Added, what a misled judge gives pays for answers that are wrong too; multiplied, it pays for"
    " nothing where the result is 0. The arms differ in the composition alone."
)
SOURCE = "R1-Reward, arXiv 2505.02835, its reward; that adding is worse is our reading"
CLAIMS = (
    Claim(
        "r1-reward-product",
        "A consistency that multiplies the result is worth more than one that is added.",
        SOURCE,
        SETUP,
        WHY,
        "accuracy",
        "multiplied",
        "added",
        0.08,
        0.08,
    ),
    Claim(
        "r1-reward-misled",
        "Multiplied, it is gamed less: fewer responses hold a step that misleads the judge.",
        SOURCE,
        SETUP,
        WHY,
        "vague",
        "multiplied",
        "added",
        -0.15,
        0.08,
    ),
)


class Composed(Steps):
    """A judge of results and of a consistency; composed by product or by sum."""

    def __init__(self, arm: str, seed: int) -> None:
        super().__init__(Judged(seed, 0.0, blend=False, misled=MISLED, vague=VAGUE))
        self._is_product = arm == "multiplied"

    def _judged(self, item: Item) -> reward_pb2.Result:
        result = super()._judged(item)
        found = result.judgement
        scores = [span.reward for span in found.spans]
        consistency = 2.0 * statistics.fmean(scores) - 1.0 if scores else -1.0
        if self._is_product:
            consistency *= found.reward
        found.reward += WEIGHT * consistency
        found.components.add(name="consistency", score=consistency, weight=WEIGHT)
        return result


def prepare(models: Path) -> None:
    """The model and the problems, those of PROF."""
    problems(models, VAGUE)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """One run."""
    config = settings("grpo", problems(models, VAGUE), seed, STEPS)
    report = train(config, folder, lambda: Composed(arm, seed))
    rows = read_rows(RunFolder(folder).samples)
    late = [row for row in rows if row["step"] > STEPS - LATE]
    return {
        "before": report["before"]["accuracy"],
        "accuracy": report["after"]["accuracy"],
        "right": statistics.fmean(row["verdict"] == "correct" for row in late),
        "vague": statistics.fmean(contest.VAGUE in row["response"] for row in late),
    }
