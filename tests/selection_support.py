"""Selectors of every kind over a few problems, and what they are told."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from assay.trainer.core.hooks import hooks_of
from assay.trainer.data.problems import Problem
from assay.trainer.selection.choose import make_selector
from assay.trainer.selection.types import Scorable, Seen, Selector
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from assay.trainer.settings.selecting import SelectionConfig

LEARNING = (
    "mopps", "vade", "dump", "dads", "recap", "curriculum", "hard-focus", "vas", "pre-ppo",
)  # fmt: skip


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
"""All in turn, and again with a hint where nothing was right."""


def settings(name: str, seed: int = 0, **sections: Any) -> SelectionConfig:
    """With tasks and times that suit few problems and steps."""
    return run(name, seed, **sections).data.selection


def run(name: str, seed: int = 0, **sections: Any) -> Config:
    """A run that chooses so; `hints` are those of method.hints."""
    small = {
        "curriculum": {"until_step": 4},
        "hard_focus": {"after_steps": 2, "every": 2, "least": 3},
        "pre_ppo": {"fraction": 0.5},
    }
    small = {table: own for table, own in small.items() if table == name.replace("-", "_")}
    hints = sections.pop("hints", {"enabled": name == HINTED})
    chosen = {"name": "uniform" if name == HINTED else name, **small, **sections}
    data: dict[str, Any] = {"selection": chosen, "seed": seed}
    if hints["enabled"]:
        data |= {"source": "jsonl", "path": "rows.jsonl", "columns": {"solution": "solution"}}
    return configs.build({"data": data, "method": {"hints": hints}}, origin="test")


def selector(name: str, count: int = 12, *, seed: int = 0, **sections: Any) -> Selector:
    """As a run makes it."""
    made = make_selector(settings(name, seed, **sections), problems(count), seed)
    assert made is not None
    if isinstance(made, Scorable):
        made.score([Seen(place, ((place * 7 % 5) / 5,)) for place in made.unscored])
    return made


def forms(name: str, **sections: Any) -> tuple[int, Callable[[Problem, int], Problem]] | None:
    """The forms that problems come in, in a run that chooses so."""
    found = [hook.variants() for hook in hooks_of(run(name, **sections))]
    return next(filter(None, found), None)


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
