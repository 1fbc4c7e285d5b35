"""What PROF (arXiv 2509.03403) says of a filter by step scores beside a blend of the rewards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.claim import Claim
from experiments.prof.contest import Judged, one_run, problems

STEPS = 120
MISLED = 0.8
"""The chance that a step which repeats the one before it is taken for right."""
SAME = (
    "count on four times from a digit and say whether the last is small or big; only that word is"
    " the outcome. The judge of steps knows the truth, except that four times in five it takes a"
    " step for right that repeats the one before. GRPO's sizes of 16 x 8, 120 steps"
)
WHY = (
    "The judge errs where the policy can go: a row of one digit is never right, earns nearly all"
    " that the right steps earn, and is easier to write. Flips that do not depend on what is"
    " written, as in an earlier miniature, leave a score that is right on average."
)
CLAIMS = (
    Claim(
        "prof-over-blend",
        "A filter by step scores is better than adding them to the reward.",
        "PROF, arXiv 2509.03403, comparison with the blend",
        SAME + ".",
        WHY,
        "accuracy",
        "prof",
        "blend",
        0.08,
        0.1,
    ),
    Claim(
        "prof-blend-harms",
        "Step scores in the reward are worse than no step scores (35.3 against 37.2).",
        "PROF, arXiv 2509.03403, comparison with the blend",
        SAME + ".",
        WHY,
        "accuracy",
        "grpo",
        "blend",
        0.08,
        0.1,
    ),
    Claim(
        "prof-sound",
        "The filter leaves more of the right answers right by their steps.",
        "PROF, arXiv 2509.03403, quality of reasoning steps",
        SAME + ".",
        WHY,
        "sound_of_right",
        "prof",
        "grpo",
        0.1,
        0.12,
    ),
)


def prepare(models: Path) -> None:
    """The model and the problems."""
    problems(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """One run of 120 steps."""
    judged = Judged(seed, None if arm == "grpo" else 0.0, blend=arm == "blend", misled=MISLED)
    found: Mapping[str, Any] = one_run(arm, judged, folder, models, STEPS)
    return {key: found[key] for key in ("before", "accuracy", "right", "sound", "sound_of_right")}
