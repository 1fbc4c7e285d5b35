"""Errands: responses whose lengths have a long tail, and whose first token decides.

A prompt is a number, and a response "A" or "B" and the count down from it: "012" is answered
"A011010...001". How long a response is, the prompt says: numbers are drawn by a log-normal law, 17
on average, and one in eight is longer than a third of `LIMIT`. On errand A a response is right with
a high chance, on B seldom, and one that is cut at `LIMIT` is wrong; the coin is the judge's. The
count leaves nothing to learn, so that the tail stays. A policy learns from the first token, which
in a long response is drawn steps before the response ends.
"""

from __future__ import annotations

import hashlib
import math
import random
from pathlib import Path

from experiments.miniature import IsRight, Item, Shape, pretrained, write_problems

LIMIT = 96
MEAN, SIGMA = 17.0, 0.8
TAKES_A = 0.3
RIGHT_A, RIGHT_B = 0.9, 0.2
HIGHEST = LIMIT + 16
PROBLEMS, HELD_OUT = 512, 32
WORDS = ("A", "B", *(f"{n:03d}" for n in range(1, HIGHEST + 1)))
SHAPE = Shape(width=64, layers=1, context=HIGHEST + 8, steps=250, batch=16, learning_rate=1e-2)


def drawn_number(dice: random.Random) -> int:
    """What a response counts down from; it is as long, with the errand and its end one longer."""
    drawn = round(dice.lognormvariate(math.log(MEAN) - SIGMA**2 / 2, SIGMA))
    return min(max(drawn, 1), HIGHEST)


def counted_down(number: int, errand: str) -> str:
    """The response."""
    return errand + "".join(f"{n:03d}" for n in range(number - 1, 0, -1))


def drawn_errand(dice: random.Random) -> tuple[str, str]:
    """A prompt and a response for the pretraining, half of them of even lengths: rare numbers have
    to be learnt, too."""
    number = drawn_number(dice) if dice.random() < 0.5 else dice.randint(1, HIGHEST)
    return f"{number:03d}", counted_down(number, "A" if dice.random() < TAKES_A else "B")


def errands_right(seed: int) -> IsRight:
    """A coin for each response, of the seed and the draw, and so the same however it was drawn."""

    def right(item: Item) -> bool:
        text = f"{seed}/{item.group_id}/{item.response}"
        coin = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
        chance = RIGHT_A if item.response.startswith("A") else RIGHT_B
        return not item.truncated and coin < chance

    return right


def errands(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems and the held-out ones."""
    model = pretrained(folder / "errands", WORDS, drawn_errand, SHAPE)
    dice = random.Random(0)
    numbers = [f"{drawn_number(dice):03d}" for _ in range(PROBLEMS + HELD_OUT)]
    train = write_problems(folder / "errands-train.jsonl", ((n, "-") for n in numbers[HELD_OUT:]))
    test = write_problems(folder / "errands-test.jsonl", ((n, "-") for n in numbers[:HELD_OUT]))
    return model, train, test
