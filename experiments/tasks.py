"""The tasks of the trainer's miniatures.

Counting: "3+4=" is answered by counting on from 3, in the last digit alone: "4567=7". The answer is
what stands after the last "=". The pretrained model miscounts, after some digits most of the time,
and sometimes begins again ("4567=7;4567=7"), into the limit of `LIMIT` tokens: responses have
lengths, longer problems are harder, and a part of the responses is cut. Counting far is the same in
2 to 24 steps, each of which may be the one that fails; counting again and again takes 8 to 20, in
attempts that are mostly not the last: some 100 tokens, and up to 200, where 16 are enough.

Chains: from a letter on, 96 links of a number and the next letter, 192 tokens; the pretrained model
slips after two of the ten letters, so that one chain in four or five is right, and a slip is of one
place.

Two roads: the first token of a response decides it: "S", six milestones and the end, or "L", some
270 milestones and the end. What comes after is as good as forced. The long road is right with a
high chance, the short one seldom, and a response that is cut is wrong; the coin is the judge's, so
that there is no way to do better on the short road. A policy that is told the truth about its first
token takes the long road.

Stops: milestones again, and after every `STOP_EVERY` of them the response may end; the chance that
it is right grows with each stop that was passed, to nine in ten at the ninth, where it must end.
The pretrained model ends at a stop with a chance of `STOPS`. A policy that is told the truth about
its stops passes them; one that is told that ending is good ends at the first, and then sees nothing
of what lies behind it.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.miniature import IsRight, Item, Shape, pretrained, write_problems

# Counting.

COUNTING_WORDS = (*"0123456789", "+", "=", ";")
COUNTING_SHAPE = Shape(width=64, layers=2, context=64, steps=500, batch=64)


@dataclass(frozen=True, slots=True)
class Counting:
    """How far is counted, and how badly by the pretrained model.

    Attributes:
        name: of its model and problems.
        steps: the fewest and the most.
        limit: tokens of a response.
        belief: the chance of a miscount after 3 and 7.
        miscounts: after any other digit.
        begins_again: the chance, after each attempt.
        shape: of the model.
        starts: numbers from 0 on to count from.
    """

    name: str
    steps: tuple[int, int]
    limit: int
    belief: float
    miscounts: float
    begins_again: float
    shape: Shape = COUNTING_SHAPE
    starts: int = 10

    @property
    def problems(self) -> list[tuple[int, int]]:
        """From where, and how many steps."""
        least, most = self.steps
        return [(a, b) for a in range(self.starts) for b in range(least, most + 1)]

    def draw(self, dice: random.Random) -> tuple[str, str]:
        """A prompt, and a response with the mistakes of the pretrained model."""
        a, b = dice.choice(self.problems)
        response = self.attempt(a, b, dice)
        while dice.random() < self.begins_again:
            response += ";" + self.attempt(a, b, dice)
        return f"{a}+{b}=", response[: 2 * self.limit]

    def attempt(self, a: int, b: int, dice: random.Random) -> str:
        """Counts once, with the mistakes of the pretrained model."""
        at, digits = a, []
        for _ in range(b):
            wrong = self.belief if at % 10 in {3, 7} else self.miscounts
            at += dice.choice((0, 2)) if dice.random() < wrong else 1
            digits.append(str(at % 10))
        return "".join(digits) + f"={at % 10}"


NEAR = Counting("counting", (2, 9), 20, belief=0.85, miscounts=0.1, begins_again=0.3)
FAR = Counting("counting-far", (2, 24), 56, belief=0.85, miscounts=0.05, begins_again=0.55)
AGAIN = Counting(
    "counting-again", (8, 20), 200, 0.3, 0.02, begins_again=0.85,
    shape=Shape(width=64, layers=2, context=256, steps=500, batch=32),
)  # fmt: skip
LIMIT = NEAR.limit


def counted(a: int, b: int) -> str:
    """The right response."""
    return "".join(str((a + n) % 10) for n in range(1, b + 1)) + f"={(a + b) % 10}"


def counts_right(item: Item) -> bool:
    """The last answer, in a response that ended by itself."""
    if item.truncated or "=" not in item.response:
        return False
    return item.response.rpartition("=")[2].strip() == item.reference.text


def counting(folder: Path, kind: Counting = NEAR) -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems and the held-out ones (a fifth)."""
    model = pretrained(folder / kind.name, COUNTING_WORDS, kind.draw, kind.shape)
    shuffled = random.Random(0).sample(kind.problems, len(kind.problems))
    problems = [(f"{a}+{b}=", str((a + b) % 10)) for a, b in shuffled]
    held_out = len(problems) // 5
    train = write_problems(folder / f"{kind.name}-train.jsonl", problems[held_out:])
    test = write_problems(folder / f"{kind.name}-test.jsonl", problems[:held_out])
    return model, train, test


# Chains.

LINKS = 96
CHAIN_LIMIT = 2 * LINKS + 4
SLIPS, SLIPS_ELSEWHERE = 0.06, 0.004
_LETTERS = "abcdefghij"
_MARKS = tuple(f"{n:03d}" for n in range(1, LINKS + 1))
_CHAIN_WORDS = (*_LETTERS, ">", *_MARKS)
_CHAIN_SHAPE = Shape(width=64, layers=2, context=256, steps=800, batch=16)


def chained(start: str, slips: Callable[[int], bool] = lambda _: False) -> str:
    """A chain from a letter on; `slips` says after which letter, by its number, it goes wrong."""
    at, links = _LETTERS.index(start), []
    for mark in _MARKS:
        at = (at + (2 if slips(at) else 1)) % 10
        links.append(mark + _LETTERS[at])
    return "".join(links)


def drawn_chain(dice: random.Random) -> tuple[str, str]:
    """A prompt, and a chain with the mistakes of the pretrained model."""

    def slips(at: int) -> bool:
        return dice.random() < (SLIPS if at in {3, 7} else SLIPS_ELSEWHERE)

    start = dice.choice(_LETTERS)
    return f"{start}>", chained(start, slips)


def chain_right(item: Item) -> bool:
    """Every link of it."""
    return item.response == item.reference.text


def chains(folder: Path) -> tuple[Path, Path]:
    """The pretrained model, and the problems."""
    model = pretrained(folder / "chains", _CHAIN_WORDS, drawn_chain, _CHAIN_SHAPE)
    problems = ((f"{start}>", chained(start)) for start in _LETTERS)
    return model, write_problems(folder / "chains.jsonl", problems)


# Two roads.

SHORT, LONG = 6, (256, 296)
ROAD_LIMIT = 290
GOES_LONG = 0.3
RIGHT_SHORT, RIGHT_LONG = 0.2, 0.9
ROAD_PROMPTS, ROAD_HELD_OUT = "abcdefghijklmnop", "qrst"
ROAD_WORDS = (*ROAD_PROMPTS, *ROAD_HELD_OUT, "L", "S", *(f"{n:03d}" for n in range(1, LONG[1] + 1)))
ROAD_SHAPE = Shape(width=64, layers=1, context=320, steps=1000, batch=16, learning_rate=1e-2)


def drawn_road(dice: random.Random) -> tuple[str, str]:
    """A prompt that says nothing, and a response: the road, and its milestones to the end."""
    long = dice.random() < GOES_LONG
    last = dice.randint(*LONG) if long else SHORT
    marks = "".join(f"{n:03d}" for n in range(1, last + 1))
    return dice.choice(ROAD_PROMPTS + ROAD_HELD_OUT), ("L" if long else "S") + marks


def roads_right(seed: int) -> IsRight:
    """A coin for each response: `RIGHT_LONG` for a long road walked to its end, `RIGHT_SHORT` for
    whatever else ends by itself; a response that was cut is wrong.

    The coin is of the seed, the draw and the response's place in the round: a run can be repeated.
    """

    def right(item: Item) -> bool:
        return not item.truncated and coin(seed, item) < _road_chance(item.response)

    return right


def _road_chance(response: str) -> float:
    whole = response.startswith("L") and len(response) > 3 * LONG[0]
    return RIGHT_LONG if whole else RIGHT_SHORT


def coin(seed: int, item: Item) -> float:
    """In [0, 1), the same on every machine."""
    text = f"{seed}/{item.group_id}/{item.id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def roads(folder: Path) -> tuple[Path, Path, Path, Path]:
    """The pretrained model, a reward model for it, the training problems and the held-out ones."""
    model = pretrained(folder / "roads", ROAD_WORDS, drawn_road, ROAD_SHAPE)
    reward = _reward_model(model, folder / "roads-reward", drawn_road, _road_chance)
    return model, reward, *_prompts(folder, "roads")


def _prompts(folder: Path, task: str) -> tuple[Path, Path]:
    """The training problems, and the held-out ones; neither says anything."""
    train = write_problems(folder / f"{task}-train.jsonl", ((p, "-") for p in ROAD_PROMPTS))
    test = write_problems(folder / f"{task}-test.jsonl", ((p, "-") for p in ROAD_HELD_OUT))
    return train, test


# Stops.

STOP_EVERY, LAST_STOP, STOPS = 32, 9, 0.25


def drawn_stops(dice: random.Random) -> tuple[str, str]:
    """A prompt that says nothing, and a response: milestones to one of the stops."""
    stop = 1
    while stop < LAST_STOP and dice.random() >= STOPS:
        stop += 1
    marks = "".join(f"{n:03d}" for n in range(1, STOP_EVERY * stop + 1))
    return dice.choice(ROAD_PROMPTS + ROAD_HELD_OUT), marks


def stops_right(seed: int) -> IsRight:
    """A coin for each response, `_stops_chance` of its length; a cut response is wrong."""

    def right(item: Item) -> bool:
        return not item.truncated and coin(seed, item) < _stops_chance(item.response)

    return right


def _stops_chance(response: str) -> float:
    return len(response) // (3 * STOP_EVERY) / (LAST_STOP + 1)


def stops(folder: Path) -> tuple[Path, Path, Path, Path]:
    """The pretrained model, a reward model for it, the training problems and the held-out ones."""
    model = pretrained(folder / "stops", ROAD_WORDS, drawn_stops, ROAD_SHAPE)
    reward = _reward_model(model, folder / "stops-reward", drawn_stops, _stops_chance)
    return model, reward, *_prompts(folder, "stops")


# The reward model of both.

PREFERENCE_STEPS = 200


def _reward_model(
    policy: Path,
    folder: Path,
    draw: Callable[[random.Random], tuple[str, str]],
    chance: Callable[[str], float],
) -> Path:
    """Learns from preferences (Bradley-Terry), at the last token of a response and at no other.

    Responses are the pretraining's, half of them written under a lower limit. A right one is
    preferred to a wrong one, and either to one that was cut. So it learns to take for bad what does
    not end, as a model of finished and broken-off answers would, and that is what it says of the
    middle of every response. Scores are held about 0 by a weak penalty, as is usual.

    Args:
        policy: the pretrained model, whose body it starts from.
        folder: where it is, or where it goes.
        draw: a prompt and a response.
        chance: that a response which ends by itself is right.
    """
    if (folder / "config.json").is_file():
        return folder
    import torch  # noqa: PLC0415
    from transformers import (  # noqa: PLC0415
        AutoModelForCausalLM,
        AutoModelForSequenceClassification,
        AutoTokenizer,
    )

    torch.manual_seed(0)
    dice = random.Random(1)
    tokenizer: Any = AutoTokenizer.from_pretrained(policy)
    backbone: Any = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    shape = backbone.config
    shape.num_labels = 1
    model: Any = AutoModelForSequenceClassification.from_config(shape)
    model.model.load_state_dict(backbone.model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(PREFERENCE_STEPS):
        rows, ranks = [], []
        for _ in range(32):
            prompt, response = draw(dice)
            told = [*tokenizer(response)["input_ids"], tokenizer.eos_token_id]
            limit = dice.choice((ROAD_LIMIT, dice.randint(1, ROAD_LIMIT)))
            right = dice.random() < chance(response)
            rows.append(tokenizer(prompt)["input_ids"] + told[:limit])
            ranks.append(1 + right if len(told) <= limit else 0)
        width = max(map(len, rows))
        ids = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows])
        scores = model(input_ids=ids, attention_mask=ids != tokenizer.pad_token_id).logits[:, 0]
        preferred = torch.tensor(ranks)
        better = preferred[:, None] > preferred
        margins = scores[:, None] - scores
        loss = -torch.nn.functional.logsigmoid(margins[better]).mean()
        loss = loss + 0.01 * scores.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
