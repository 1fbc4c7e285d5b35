"""What ReTool (arXiv 2504.11536) does before reinforcement learning: a cold start on traces."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from assay.kit.runs.rollouts import read_rollouts
from assay.trainer.records.folder import RunFolder
from experiments.claim import Claim
from experiments.miniature import Service, Shape, pretrained, tiny, train
from experiments.tools.contest import (
    HELD_OUT,
    OVER,
    PROGRAM,
    WORDS,
    drawn,
    is_right,
    offer,
    products,
)

BEGUN = 0.25
STEPS, LONGER, COLD = 20, 60, 24
SHAPE = Shape(width=64, layers=2, context=64, steps=500, batch=96, learning_rate=5e-3)
PROBLEMS = 400
OWN = (
    "method.episodes.environment=experiments/episodes.py:Flaky",
    "method.episodes.settings.failures=0",
    "method.episodes.format=code",
    "method.episodes.turns=3",
    "method.episodes.tokens=0",
    "rollout.max_new_tokens=12",
    f"eval.prompts={HELD_OUT}",
    "eval.samples=2",
)
RL = ("optim.learning_rate=5e-4",)
SFT = ("optim.learning_rate=1e-3",)
SETUP = (
    "products of two numbers of two digits, which a model of 0.1 M weights guesses. Pretrained, it"
    " writes a program out where one was begun (98 times in 100) and reads off what a tool printed"
    " (89), but begins one once in 16,000 times."
    f" `retool` of the presets, {STEPS} steps of 8 x 8 episodes behind {COLD} steps of supervised"
    " fine-tuning on 32 right responses each, drawn by a model that always calls."
)
FIGURE = " Accuracy: of two samples, at temperature 1, of each of 100 held-out products."
CLAIMS = (
    Claim(
        "retool-cold-start",
        "After a cold start on traces that call the tool, RL learns to use it.",
        "ReTool, arXiv 2504.11536, abstract; held against RL from the base by us",
        f"{SETUP} The other arm has {LONGER} steps of RL from the base, and no fine-tuning; it"
        f" draws more tokens than the first draws and is fine-tuned on.{FIGURE}",
        "Only a call earns a reward, and the base hardly ever makes one. With a cold start two"
        " pilots came to 0.69 and 0.72, and one of 30 steps to 0.73; without one, a pilot of 90"
        " steps made one call in 5,760 episodes, and came to 0. A base that calls six times in a"
        " hundred finds the tool by itself: `experiments tools`.",
        "accuracy",
        "cold start",
        "from the base",
        0.4,
        0.1,
    ),
    Claim(
        "retool-rl-after-cold-start",
        "RL improves on what the cold start imitates.",
        "ReTool, arXiv 2504.11536, abstract",
        f"{SETUP}{FIGURE} Gain: the accuracy after RL less that after the cold start.",
        "The cold start ends at an imitation that was right in 0.19 to 0.23 of samples, so that"
        " there is something to gain; the same three pilots gained 0.50 to 0.53. What more"
        " fine-tuning would have gained in the place of RL it does not ask.",
        "gain",
        "cold start",
        "",
        0.4,
        0.1,
    ),
)


def said(dice: random.Random) -> tuple[str, str]:
    """What the base writes: as in `tools`, without a call, or how a program goes on."""
    if dice.random() >= BEGUN:
        return drawn(dice, calls=0.0)
    one, other = dice.randrange(10, 100), dice.randrange(10, 100)
    return f"{offer()}{one}*{other}={PROGRAM}", f"{one}*{other}{OVER}"


def problems(models: Path) -> tuple[Path, Path, Path]:
    """The base, the training problems and the held-out ones."""
    model = pretrained(models / "base", (*WORDS, offer()), said, SHAPE)
    return model, *products(models, PROBLEMS)


def prepare(models: Path) -> None:
    """The base, a model that always calls, and its traces: two of each training problem."""
    calls = partial(drawn, calls=1.0)
    teacher = pretrained(models / "teacher", (*WORDS, offer()), calls, SHAPE)
    made = (teacher, *problems(models)[1:])
    if not (models / "traces" / "report.json").is_file():
        wanted = {"steps": 13, "seed": 0}
        drawing = ("optim.learning_rate=0", "optim.mini_batches=1")
        sizes = ("rollout.prompts_per_step=31", "rollout.group_size=2")
        train(tiny("retool", wanted, made, *OWN, *drawing, *sizes), models / "traces", judge)


def judge() -> Service:
    """Right or wrong."""
    return Service(is_right, rewards=(0.0, 1.0))


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """Fine-tuning and RL, or RL alone; `tokens`: fine-tuned on, and drawn by the policy."""
    made, cold, tokens = problems(models), None, 0
    if arm == "cold start":
        wanted = {"steps": COLD, "seed": seed}
        rows = (f"method.offline.rows={models / 'traces'}", "method.offline.most=0")
        sizes = ("optim.mini_batches=1", "rollout.prompts_per_step=32", "rollout.group_size=1")
        config = tiny("offline/sft", wanted, made, *rows, *sizes, "rollout.max_new_tokens=40", *SFT)
        tuned = folder.with_name(f"{folder.name}-cold")
        train(config, tuned, judge)
        cold, tokens = RunFolder(tuned).model, written(tuned, "trained")
        made = (cold, *made[1:])
    wanted = {"steps": STEPS if cold else LONGER, "seed": seed}
    report = train(tiny("retool", wanted, made, *OWN, *RL), folder, judge)
    before, after = report["before"], report["after"]
    return {
        "accuracy": after["accuracy"],
        "gain": after["accuracy"] - before["accuracy"],
        "calls_before": before["turns"]["episodes_calls"],
        "calls": after["turns"]["episodes_calls"],
        "tokens": tokens + written(folder, "own"),
    }


def written(folder: Path, spans: str) -> int:
    """Tokens of the policy's turns that a run fine-tuned on (`trained`) or drew (`own`)."""
    rows: Any = read_rollouts(folder, phase="train")
    return sum(end - start for row in rows for start, end, *_ in row[spans])
