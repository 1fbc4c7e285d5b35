"""What SASR (arXiv 2505.13026) says of supervised steps among those of reinforcement."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

from experiments.claim import Claim
from experiments.miniature import Shape, pretrained, tiny, train, write_problems
from experiments.offline.contest import MOST, WORDS, judge

STEPS, SHOWN = 60, 40
SHAPE = Shape(width=64, layers=2, context=32, steps=1500, batch=128)
RIGHT = 0.3
SAME = (
    "sums of two numbers below 20; the pretrained model is right three times in ten, by its data."
    " 300 sums to learn from, the right answers to 40 of them as demonstrations; held out: 100,"
    " 8 responses each, as sampled. 60 steps of 64 responses"
)
WHY = (
    "Reinforcement finds little to reward at first, and the demonstrations are few enough to be"
    " learnt by heart. The arms have the same steps and responses a step: all supervised, none, or"
    " SASR's 10 first and then by the gradient's norm."
)
CLAIMS = (
    Claim(
        "sasr-over-rl",
        "Supervised steps between others are better than reinforcement alone.",
        "SASR, arXiv 2505.13026, abstract",
        SAME + ".",
        WHY,
        "accuracy",
        "sasr",
        "grpo",
        0.1,
        0.1,
    ),
    Claim(
        "sasr-over-sft",
        "They are better than supervision alone.",
        "SASR, arXiv 2505.13026, abstract",
        SAME + ".",
        WHY,
        "accuracy",
        "sasr",
        "sft",
        0.1,
        0.1,
    ),
)
MIXED = ("method.offline.reference=none", "method.offline.mix=sasr")
ARMS: Mapping[str, tuple[str, ...]] = {
    "sasr": MIXED,
    "grpo": (),
    "sft": (*MIXED, "method.offline.mix_warmup=60"),
}


def drawn(dice: random.Random) -> tuple[str, str]:
    """A sum; its result is right three times in ten."""
    a, b = dice.randrange(MOST), dice.randrange(MOST)
    result = a + b if dice.random() < RIGHT else dice.randrange(2 * MOST - 1)
    return f"{a}+{b}=", str(result)


def problems(models: Path) -> tuple[tuple[Path, Path, Path], Path]:
    """The model, the sums to learn from and those held out; and the demonstrations."""
    model = pretrained(models / "sasr-sums", WORDS, drawn, SHAPE)
    sums = [(f"{a}+{b}=", str(a + b)) for a in range(MOST) for b in range(MOST)]
    random.Random(0).shuffle(sums)
    rows = write_problems(models / "sasr-sums.jsonl", sums[:300])
    shown = models / "sasr-shown.jsonl"
    told = (
        {"prompt": asked, "response": right, "reward": 1.0, "verdict": "correct"}
        for asked, right in sums[:SHOWN]
    )
    shown.write_text("".join(json.dumps(row) + "\n" for row in told), encoding="utf-8")
    return (model, rows, write_problems(models / "sasr-held-out.jsonl", sums[300:])), shown


def prepare(models: Path) -> None:
    """The model, the problems and the demonstrations."""
    problems(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """One run of 60 steps."""
    made, shown = problems(models)
    own = ["optim.mini_batches=1", "rollout.max_new_tokens=4", "eval.prompts=100"]
    own += ["eval.samples=8", "method.loss.kl_coef=0", *ARMS[arm]]
    if ARMS[arm]:
        own.append(f"method.offline.rows={shown}")
    report = train(tiny("grpo", {"seed": seed, "steps": STEPS}, made, *own), folder, judge)
    return {
        when: report[now]["accuracy"] for when, now in (("before", "before"), ("accuracy", "after"))
    }
