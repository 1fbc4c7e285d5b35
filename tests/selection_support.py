"""Selectors of every kind over a few problems, and what they are told."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice
from typing import Any

from assay.trainer.data.problems import Problem
from assay.trainer.selection.choose import make_selector
from assay.trainer.selection.types import Scorable, Seen, Selector
from assay.trainer.settings import config as configs
from assay.trainer.settings.selecting import SelectionConfig

LEARNING = ("mopps", "vade", "dump", "dads", "curriculum", "hard-focus", "vas", "pre-ppo")


def problems(count: int) -> list[Problem]:
    """Of three tasks."""
    tasks = ("math", "code", "chat")
    return [
        Problem(
            f"train-{n}",
            f"what is {n}?",
            (("user", f"what is {n}?"),),
            str(n),
            tasks[n % 3],
            solution="" if n % 5 == 4 else f"first {n} then more, at last {n}",
        )
        for n in range(count)
    ]


HINTED = "hints"
"""All in turn, and with a hint where nothing was right."""


def settings(name: str, **sections: Any) -> SelectionConfig:
    """With tasks and times that suit few problems and steps."""
    small = {
        "curriculum": {"until_step": 4},
        "hard_focus": {"after_steps": 2, "every": 2, "least": 3},
        "pre_ppo": {"fraction": 0.5},
    }
    selection = {"name": name, **small, **sections}
    data: dict[str, Any] = {"selection": selection}
    if name == HINTED or "hints" in sections:
        chosen = {"hints": {"enabled": True}, **sections}
        chosen["name"] = "uniform" if name == HINTED else name
        columns = {"solution": "solution"}
        data = {"source": "jsonl", "path": "rows.jsonl", "columns": columns, "selection": chosen}
    return configs.build({"data": data}, origin="test").data.selection


def selector(name: str, count: int = 12, *, seed: int = 0, **sections: Any) -> Selector:
    made = make_selector(settings(name, **sections), problems(count), seed)
    assert made is not None
    if isinstance(made, Scorable):
        made.score({place: (place * 7 % 5) / 5 for place in made.unscored})
    return made


def first(of: Selector, count: int, start: int = 0) -> list[int]:
    """The next places."""
    return list(islice(of.order(start), count))


def told(places: Sequence[int], seed: int, *, faults: float = 0.0) -> list[Seen]:
    """Random groups of at most four responses of these problems."""
    dice = random.Random(seed)
    found = []
    for place in places:
        judged = [] if dice.random() < faults else [float(dice.random() < 0.4) for _ in range(4)]
        ids = tuple(tuple(dice.choices(range(5), k=3)) for _ in judged)
        found.append(Seen(place, tuple(judged), int(sum(judged)), ids))
    return found
