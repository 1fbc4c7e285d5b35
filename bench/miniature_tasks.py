"""The tasks of the trainer's miniatures.

Counting: "3+4=" is answered by counting on from 3, in the last digit alone: "4567=7". The answer is
what stands after the last "=". The pretrained model miscounts, and sometimes begins again ("4567=7;
4567=7"), into the limit of `LIMIT` tokens: responses have lengths, longer problems are harder, and
a part of the responses is cut.
"""

from __future__ import annotations

import random
from pathlib import Path

from bench.miniature import Item, Shape, pretrained, write_problems

# Counting.

LIMIT = 20
COUNTING_WORDS = (*"0123456789", "+", "=", ";")
COUNTING_SHAPE = Shape(width=64, layers=2, context=64, steps=500, batch=64)
MISCOUNTS = 0.1
BELIEFS = {3: 0.85, 7: 0.85}
"""After these digits the pretrained model miscounts most of the time."""
BEGINS_AGAIN = 0.3
COUNTING = [(a, b) for a in range(10) for b in range(2, 10)]


def counted(a: int, b: int) -> str:
    """The right response."""
    return "".join(str((a + n) % 10) for n in range(1, b + 1)) + f"={(a + b) % 10}"


def drawn_count(dice: random.Random) -> tuple[str, str]:
    """A prompt, and a response with the mistakes of the pretrained model."""
    a, b = dice.choice(COUNTING)
    response = _attempt(a, b, dice)
    while dice.random() < BEGINS_AGAIN:
        response += ";" + _attempt(a, b, dice)
    return f"{a}+{b}=", response[: 2 * LIMIT]


def _attempt(a: int, b: int, dice: random.Random) -> str:
    at, digits = a, []
    for _ in range(b):
        at += dice.choice((0, 2)) if dice.random() < BELIEFS.get(at % 10, MISCOUNTS) else 1
        digits.append(str(at % 10))
    return "".join(digits) + f"={at % 10}"


def counts_right(item: Item) -> bool:
    """The last answer, in a response that ended by itself."""
    if item.truncated or "=" not in item.response:
        return False
    return item.response.rpartition("=")[2].strip() == item.reference.text


def counting(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems and the held-out ones (a fifth)."""
    model = pretrained(folder / "counting", COUNTING_WORDS, drawn_count, COUNTING_SHAPE)
    shuffled = random.Random(0).sample(COUNTING, len(COUNTING))
    problems = [(f"{a}+{b}=", str((a + b) % 10)) for a, b in shuffled]
    held_out = len(problems) // 5
    train = write_problems(folder / "counting-train.jsonl", problems[held_out:])
    test = write_problems(folder / "counting-test.jsonl", problems[:held_out])
    return model, train, test
