"""What PAG (arXiv 2506.10406) says of its parts, and of its verifier as a judge of samples."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from experiments.claim import Claim
from experiments.miniature import likely, write_problems
from experiments.pag.contest import (
    LONG,
    MIDDLE,
    MODULUS,
    SHORT,
    asked,
    contestants,
    one_run,
    problems,
)

STEPS = 40
MANY = {SHORT: 24, MIDDLE: 300, LONG: 476}
"""Held-out problems of the claim about samples: of two digits there are 64 in all."""
RIGHT_AT_FIRST = 0.45
"""Of the pretrained models' first attempts, at least."""
SUMS = (
    "sums modulo 8, of two digits (mostly right at a glance), three and five; 40 steps of 128"
    " dialogues; the verification adds up three digits and then says 'correct' whatever it found"
)
POOR = " The model was pretrained to revise poorly, so that what a verdict earns by itself decides."
SAME = "; the two arms share the model, the problems and all settings but the part"

CLAIMS = (
    Claim(
        "pag-final-reward",
        "With the final reward alone the verifier comes to call everything correct.",
        "PAG, arXiv 2506.10406, ablations (failure modes)",
        SUMS + "." + POOR,
        "Where revising pays nothing by itself, only the verdict's own reward speaks for 'wrong'"
        + SAME
        + ". With a model that revises well it pays, and the pilots show it.",
        "wrong_recall",
        "pag-poor-reviser",
        "final-reward-only-poor-reviser",
        0.35,
        0.49,
    ),
    Claim(
        "pag-first-reward",
        "Without a reward for the first attempt, first attempts decline.",
        "PAG, arXiv 2506.10406, ablations (failure modes)",
        SUMS + ".",
        "First attempts start at 0.51 and reach 0.57 with their reward: they can fall by far more"
        " than the effect" + SAME + ".",
        "first_correct",
        "pag",
        "without-first-attempt-reward",
        0.02,
        0.03,
    ),
    Claim(
        "pag-role-normalisation",
        "Normalising advantages by role makes last attempts better (65.2 against 64.4).",
        "PAG, arXiv 2506.10406, ablations (Qwen2.5-1.5B, MATH500)",
        SUMS + ".",
        "Last attempts start at 0.50, PAG ends at 0.65, and what can be repaired is 0.8: there is"
        " room on both sides" + SAME + ". In tables the part is worth 0.05.",
        "final_correct",
        "pag",
        "without-role-normalisation",
        0.02,
        0.03,
    ),
    Claim(
        "pag-shaping",
        "Shaping the reward of a revision makes last attempts better (65.2 against 64.7).",
        "PAG, arXiv 2506.10406, ablations (Qwen2.5-1.5B, MATH500)",
        SUMS + ".",
        "As for normalisation by role" + SAME + ". In tables the part is worth 0.03.",
        "final_correct",
        "pag",
        "without-turn-shaping",
        0.02,
        0.03,
    ),
    Claim(
        "pag-turn-independence",
        "Without turn independence the verifier calls everything wrong.",
        "PAG, arXiv 2506.10406, ablations (failure modes)",
        SUMS + ".",
        "Wrong, called wrong and then right earns more than right and called right" + SAME + ".",
        "correct_recall",
        "pag",
        "without-turn-independence",
        0.4,
        0.2,
    ),
    Claim(
        "pag-best-of-n",
        "Best of n by the policy's own P(correct) beats the majority vote by 1 to 1.5 points.",
        "PAG, arXiv 2506.10406, self-verification (MATH500 +1, AIME24 +1.5)",
        SUMS + "; 800 held-out problems, eight dialogues of each, both by the same first attempts.",
        "800 problems in place of 80: the difference of a run has a standard error of a point."
        " A verification can find wrong sums of three digits, and the majority of attempts at them"
        " is often wrong.",
        "best_less_majority",
        "pag, 800 problems",
        "",
        0.015,
        0.02,
    ),
)


def prepare(models: Path) -> None:
    """The two models and their problems."""
    for reviser in ("", "-poor-reviser"):
        model, _, held_out = problems(models, reviser=reviser)
        right = likely(model, held_out)
        if right < RIGHT_AT_FIRST:
            raise RuntimeError(
                f"{model}: its first attempts are right {right:.2f} of the time, which is not the "
                f"set-up of the claims ({RIGHT_AT_FIRST}): remove it, and look at SHAPE"
            )
    _many(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """A rung of the ladder, or PAG with many held-out problems."""
    name = arm.partition(",")[0]
    [config] = contestants(models, (seed,), STEPS)[name][seed]
    if name != arm:
        data = replace(config.data, eval_path=str(_many(models)))
        config = replace(config, data=data, eval=replace(config.eval, prompts=sum(MANY.values())))
    return one_run((config,), folder)


def _many(models: Path) -> Path:
    """Problems that no run trains on, beside the 80 of the other claims."""
    path, dice = models / "sums-some-800.jsonl", random.Random(1)
    if path.is_file():
        return path
    trained = (models / "sums-train.jsonl").read_text(encoding="utf-8")
    rows: dict[str, str] = {}
    for some, count in MANY.items():
        zeros = [0] * (LONG - some)
        wanted = len(rows) + count
        while len(rows) < wanted:
            question, answer = asked([*(dice.randrange(MODULUS) for _ in range(some)), *zeros])
            if f'"{question}"' not in trained:
                rows[question] = answer
    return write_problems(path, rows.items())
