"""What "Data scaling trends in RLHF" (arXiv 2503.22230) says of judges and of prompts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.claim import FIRST_SEED, Claim
from experiments.pre_ppo.contest import Arm, one_run, task

STEPS, SEEDS = 40, 16
ARMS: Mapping[str, Arm] = {
    "verifier": Arm("rtv", 0.0),
    "judge with references": Arm("gt", 0.3),
    "judge of samples": Arm("bon", 0.6),
    **{
        f"trained on {one}": Arm("gt", 0.9, "easy", one)
        for one in ("all", "random-10", "lowest-10", "lowest-50")
    },
}
COUNTING = (
    "counting by a model of 0.1 M weights, 40 steps of 16 x 8 responses, GRPO; up to three marks at"
    " the end of a response mean nothing, and a judge with a hole of h takes a wrong response with"
    " three of them for right with the chance h"
)
JUDGED = COUNTING + "; a hole of 0.3 with the true reference, of 0.6 with the best of four samples"
CHOSEN = (
    COUNTING + "; a hole of 0.9 in the easier half of the prompts; Pre-PPO scores each prompt by"
    " four responses, judged by the same judge"
)
FOR_JUDGES = (
    "Pilots reach 0.74 with the verifier and 0.35 to 0.52 with the judges. That the hole is larger"
    " where references are samples is the paper's, its size is assumed."
)
FOR_PROMPTS = (
    "What scores high is what can be hacked, by construction, which is the paper's reason for its"
    " choice; held-out prompts are of all kinds and judged by the truth."
)
SOURCE = "Data scaling trends in RLHF, arXiv 2503.22230, "
CLAIMS = (
    Claim(
        "rtv-over-genrm",
        "A reasoning verifier withstands hacking better than a judge with the ground truth.",
        SOURCE + "abstract",
        JUDGED + ".",
        FOR_JUDGES,
        "true",
        "verifier",
        "judge with references",
        0.15,
        0.133,
    ),
    Claim(
        "genrm-truth-over-best-of-n",
        "A judge with the ground truth withstands it better than one with references of its own.",
        SOURCE + "abstract",
        JUDGED + ".",
        FOR_JUDGES,
        "true",
        "judge with references",
        "judge of samples",
        0.12,
        0.145,
    ),
    *(
        Claim(
            f"pre-ppo-over-{other}",
            f"The tenth of the prompts with the lowest scores is better to train on than {words}.",
            SOURCE + "prompt selection",
            CHOSEN + ".",
            FOR_PROMPTS,
            "true",
            "trained on lowest-10",
            f"trained on {other}",
            0.12,
            deviation,
        )
        for other, words, deviation in (
            ("all", "all of them", 0.154),
            ("random-10", "a random tenth", 0.155),
            ("lowest-50", "the lower half", 0.123),
        )
    ),
)


def prepare(models: Path) -> None:
    """The model, the problems, and the random tenth of each seed."""
    models.mkdir(parents=True, exist_ok=True)
    task(models, range(FIRST_SEED, FIRST_SEED + SEEDS))


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """One run of 40 steps."""
    wanted = {"seed": seed, "steps": STEPS, "models": str(models), "folder": str(folder)}
    found: Mapping[str, Any] = one_run(ARMS[arm]._asdict() | wanted)
    return {key: found[key] for key in ("before", "true", "accepted", "marked", "drawn_hackable")}
