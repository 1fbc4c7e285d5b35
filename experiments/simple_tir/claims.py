"""What SimpleTIR (arXiv 2509.02479) says of its filter, where training without it does collapse."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder.outcome import series
from assay.trainer.records.folder import RunFolder
from experiments.claim import Claim
from experiments.episodes import NAMES, PROSE, bit_of
from experiments.miniature import Service, Shape, pretrained, tiny, train, write_problems
from experiments.simple_tir.contest import is_right
from experiments.tools.contest import BOX, CLOSE, FENCE, OVER, PROGRAM, SHOWN, offer
from experiments.tools.contest import WORDS as CALLING

CALLS, AGAIN = 0.5, 0.15
STEPS, LAST = 25, 5
WORDS = (*CALLING, *NAMES, *PROSE, offer())
SHAPE = Shape(width=64, layers=2, context=128, steps=350, batch=32, learning_rate=5e-3)
ARMS: Mapping[str, tuple[str, ...]] = {"naive": ("method.filter.void=none",), "filter": ()}
OWN = (
    "method.episodes.environment=experiments/episodes.py:Lookup",
    "method.episodes.turns=8",
    "method.episodes.tokens=0",
    "method.dynamic_sampling.enabled=false",
    "method.loss.dual_clip=0",
    "optim.learning_rate=2e-3",
    "optim.mini_batches=4",
    "rollout.max_new_tokens=24",
)
SETUP = (
    "a policy of 0.1 M weights says which of two signs a key stands for: it guesses, or calls a"
    " tool that fails in two of three calls, by chance. Pretrained, it calls in half of the"
    " episodes, reads off what the tool says, and goes on behind a traceback, words that it"
    " knows from texts alone, with words: a void turn; in 15 of 100 it calls again."
    f" `simple_tir` of the presets, {STEPS} steps of 8 x 8 episodes, four updates a step at a"
    " learning rate of 2e-3, without dual clip and without dynamic sampling."
)
WHY = (
    "Both halves of the paper's account are there: tokens behind a traceback are improbable, each"
    " of 160 words, and their failures punish the calls before. Of four pilots without the filter"
    " one ended at a reward of 0 and one had a gradient of norm 18, of medians of 0.3. The arms"
    " differ in the filter alone."
)
CLAIMS = (
    Claim(
        "simple-tir-reward",
        "Without episodes that have a void turn, training does not collapse.",
        "SimpleTIR, arXiv 2509.02479, abstract",
        f"{SETUP} Figure: the mean reward of the last {LAST} steps.",
        WHY,
        "last",
        "filter",
        "naive",
        0.3,
        0.28,
    ),
    Claim(
        "simple-tir-norm",
        "It takes the largest gradients out.",
        "SimpleTIR, arXiv 2509.02479, abstract",
        f"{SETUP} Figure: the logarithm, to base 2, of the largest gradient norm of a step.",
        WHY,
        "largest",
        "filter",
        "naive",
        -2.0,
        2.1,
    ),
)


def drawn(dice: random.Random) -> tuple[str, str]:
    """A turn: the first, the one behind what the tool said, or the one behind a traceback."""
    key = f"{dice.randrange(1000):03d}"
    ask = f"{offer()}{key}="
    program = f"{PROGRAM}{dice.choice(NAMES)}={key}{OVER}"
    kind, bit = dice.random(), dice.randrange(2)
    if kind < 0.4:
        return ask, program if dice.random() < CALLS else f"{BOX}{bit}{CLOSE}"
    if kind < 0.7:
        return f"{ask}{program}{SHOWN}\n{bit}\n{FENCE}", f"{BOX}{bit}{CLOSE}"
    before = f"{ask}{program}{SHOWN}\n{_words(dice)}\n{FENCE}"
    if dice.random() < AGAIN:
        return before, f"{PROGRAM}{dice.choice(NAMES)}={key}{OVER}"
    return before, _words(dice)


def _words(dice: random.Random) -> str:
    return "".join(dice.choice(PROSE) for _ in range(1 + min(6, int(dice.expovariate(1 / 5)))))


def problems(models: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, the keys, and one that is held out and nobody looks at."""
    model = pretrained(models / "looks-up", WORDS, drawn, SHAPE)
    keys = [f"{n:03d}" for n in range(1000)]
    random.Random(0).shuffle(keys)
    rows = [(f"{key}=", bit_of(key)) for key in keys]
    train_path = write_problems(models / "keys.jsonl", rows[1:])
    return model, train_path, write_problems(models / "held-out.jsonl", rows[:1])


def prepare(models: Path) -> None:
    """The model and the keys."""
    problems(models)


def run(arm: str, seed: int, folder: Path, models: Path) -> Mapping[str, float | None]:
    """One run; beside the claims' figures the share of episodes with a void turn, and calls."""
    wanted = {"steps": STEPS, "seed": seed}
    judge = Service(is_right, rewards=(0.0, 1.0))
    train(tiny("simple_tir", wanted, problems(models), *OWN, *ARMS[arm]), folder, lambda: judge)
    rows = list(read_rows(RunFolder(folder).metrics))
    keys = ("reward", "grad_norm", "episodes_with_void", "episodes_calls", "ratio_max")
    curves = {key: [value for _, value in series(rows, key)] for key in keys}
    return {
        "last": fmean(curves["reward"][-LAST:]),
        "largest": math.log2(max(curves["grad_norm"])),
        "void": fmean(curves["episodes_with_void"][-LAST:]),
        "calls": fmean(curves["episodes_calls"][-LAST:]),
        "ratio": max(curves["ratio_max"]),
    }
