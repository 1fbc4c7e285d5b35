"""What ReTool (arXiv 2504.11536) does before reinforcement learning: a cold start on traces."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from assay.kit.runs.records import read_rows
from assay.kit.runs.rollouts import read_rollouts
from assay.trainer.recipes.ladder.outcome import series
from assay.trainer.records.folder import RunFolder
from experiments.claim import Claim
from experiments.miniature import Service, Shape, pretrained, tiny, train, write_problems
from experiments.tools.contest import WORDS, drawn, is_right, offer

CALLS = 0.001
STEPS, LONGER, COLD = 15, 45, 12
SHAPE = Shape(width=64, layers=2, context=64, steps=500, batch=96, learning_rate=5e-3)
PROBLEMS, HELD_OUT = 400, 100
OWN = (
    "method.episodes.environment=experiments/episodes.py:Flaky",
    "method.episodes.settings.failures=0",
    "method.episodes.format=code",
    "method.episodes.turns=3",
    "method.episodes.tokens=0",
    f"eval.prompts={HELD_OUT}",
)
RL = ("optim.learning_rate=1e-3", "rollout.max_new_tokens=12")
CLAIMS = (
    Claim(
        "retool-cold-start",
        "After a cold start on traces that call the tool, RL learns to use it.",
        "ReTool, arXiv 2504.11536, abstract; held against RL from the base by us",
        "products of two numbers of two digits, which a model of 0.1 M weights guesses; it was"
        " taught to read off what a tool printed, and calls it once in a thousand times."
        f" `retool` of the presets, {STEPS} steps of 8 x 8 episodes behind {COLD} steps of"
        " supervised fine-tuning on 64 responses each, drawn by a model that always calls;"
        f" the other arm has {LONGER} steps, and sees as many tokens or more. Held out: 100"
        " products.",
        "Only a call earns a reward, and the base hardly ever makes one. The arms differ in where"
        " the calls come from; how good an imitation of a stronger model would be in the place of"
        " RL it does not ask.",
        "accuracy",
        "cold start",
        "from the base",
        0.5,
        0.3,
    ),
)


def problems(models: Path, name: str, calls: float) -> tuple[Path, Path, Path]:
    """A pretrained model that calls so often, the training problems and the held-out ones."""
    model = pretrained(models / name, (*WORDS, offer()), partial(drawn, calls=calls), SHAPE)
    dice = random.Random(0)
    pairs = [(a, b) for a in range(10, 100) for b in range(10, 100)]
    dice.shuffle(pairs)
    rows = [(f"{a}*{b}=", str(a * b)) for a, b in pairs[: HELD_OUT + PROBLEMS]]
    train_path = write_problems(models / "products-train.jsonl", rows[HELD_OUT:])
    return model, train_path, write_problems(models / "products-test.jsonl", rows[:HELD_OUT])


def prepare(models: Path) -> None:
    """Both models, and the traces: two of each training problem."""
    problems(models, "base", CALLS)
    made = problems(models, "teacher", 1.0)
    if not (models / "traces" / "report.json").is_file():
        wanted = {"steps": 13, "seed": 0}
        drawing = ("optim.learning_rate=0", "optim.mini_batches=1", "rollout.max_new_tokens=12")
        sizes = ("rollout.prompts_per_step=31", "rollout.group_size=2")
        train(tiny("retool", wanted, made, *OWN, *drawing, *sizes), models / "traces", judge)


def judge() -> Service:
    """Right or wrong."""
    return Service(is_right, rewards=(0.0, 1.0))


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """Fine-tuning and RL, or RL alone; `tokens` of the policy, trained or drawn."""
    made, cold, tokens = problems(models, "base", CALLS), None, 0
    if arm == "cold start":
        wanted = {"steps": COLD, "seed": seed}
        rows = (f"method.offline.rows={models / 'traces'}", "method.offline.most=0")
        sizes = ("optim.mini_batches=1", "rollout.prompts_per_step=64", "rollout.group_size=1")
        config = tiny("offline/sft", wanted, made, *rows, *sizes, "rollout.max_new_tokens=40")
        before = folder.with_name(f"{folder.name}-cold")
        train(config, before, judge)
        cold, tokens = RunFolder(before).model, written(before)
        made = (cold, *made[1:])
    wanted = {"steps": STEPS if cold else LONGER, "seed": seed}
    report = train(tiny("retool", wanted, made, *OWN, *RL), folder, judge)
    rewards = [value for _, value in series(list(read_rows(RunFolder(folder).metrics)), "reward")]
    return {
        "accuracy": report["after"]["accuracy"],
        "before": report["before"]["accuracy"],
        "first": rewards[0],
        "tokens": tokens + written(folder),
    }


def written(folder: Path) -> int:
    """Tokens of the policy's turns in what a run trained on."""
    rows: Any = read_rollouts(folder, phase="train")
    return sum(end - start for row in rows for start, end, *_ in row["own"])
