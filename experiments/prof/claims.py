"""What PROF (arXiv 2509.03403) says of a filter by step scores beside a blend of the rewards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.claim import Claim
from experiments.prof.contest import Judged, one_run, problems

STEPS = 120
VAGUE, MISLED = 0.12, 0.9
"""The chances that a pretrained step is vague, and that the judge takes such a step for right."""
SAME = (
    "count on four times from a digit and say whether the last is small or big; only that word is"
    " the outcome. One step in eight of the pretrained model is a '?', and the judge of steps, who"
    " else knows the truth, takes it for right nine times in ten. 16 x 8 responses, 120 steps"
)
WHY = (
    "The judge errs where the policy can go: a vague step earns more than an attempt at a digit"
    " that is mostly missed, and what it leaves out is missing for the answer. Flips that do not"
    " depend on what is written, as in an earlier miniature, leave a score right on average."
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
    problems(models, VAGUE)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """One run of 120 steps."""
    judged = Judged(
        seed, None if arm == "grpo" else 0.0, blend=arm == "blend", misled=MISLED, vague=VAGUE
    )
    found: Mapping[str, Any] = one_run(arm, judged, folder, models, STEPS)
    return {key: found[key] for key in ("before", "accuracy", "right", "sound", "sound_of_right")}
