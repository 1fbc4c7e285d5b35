"""Errands: responses whose lengths have a long tail, and whose first token decides.

A response is "A" or "B", and then some milestones, as many as a log-normal law says: 17 on average,
and one response in eight is longer than a third of `LIMIT`. On errand A it is right with a high
chance, on B seldom, and a response that is cut at `LIMIT` is wrong; the coin is the judge's. What
comes after the first token does not matter, and nothing says so: a policy learns from the first
token alone, which in a long response is drawn steps before the response ends.
"""

from __future__ import annotations

import hashlib
import math
import random
from pathlib import Path

from bench.miniature import IsRight, Item, Shape, pretrained, write_problems

LIMIT = 96
MEAN, SIGMA = 17.0, 0.8
TAKES_A = 0.3
RIGHT_A, RIGHT_B = 0.9, 0.2
PROMPTS, HELD_OUT = "abcdefghijklmnop", "qrst"
MARKS = LIMIT + 16
WORDS = (*PROMPTS, *HELD_OUT, "A", "B", *(f"{n:03d}" for n in range(1, MARKS + 1)))
SHAPE = Shape(width=64, layers=1, context=MARKS + 8, steps=600, batch=32, learning_rate=1e-2)


def drawn_marks(dice: random.Random) -> int:
    """How many milestones a response has."""
    return round(dice.lognormvariate(math.log(MEAN) - SIGMA**2 / 2, SIGMA))


def drawn_errand(dice: random.Random) -> tuple[str, str]:
    """A prompt that says nothing, and a response without a limit but the model's."""
    marks = "".join(f"{n:03d}" for n in range(1, min(drawn_marks(dice), MARKS) + 1))
    return dice.choice(PROMPTS + HELD_OUT), ("A" if dice.random() < TAKES_A else "B") + marks


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
    train = write_problems(folder / "errands-train.jsonl", ((p, "-") for p in PROMPTS))
    test = write_problems(folder / "errands-test.jsonl", ((p, "-") for p in HELD_OUT))
    return model, train, test
