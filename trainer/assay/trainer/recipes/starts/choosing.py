"""Which prompts train, and where their responses start: ReST-RL (arXiv 2508.19576).

After the authors' code (THUDM/ReST-RL, process_gen_data.py):

1. The whole response is no starting point: nothing is left to write. It is one there.
2. States are drawn by the seed and the prompt, with replacement as there.
3. A response without a judgement is in no deviation.
"""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.runs.records import read_rows
from assay.kit.runs.rollouts import TRAIN, is_rollouts, read_rollouts
from assay.trainer.algos.selection import accepted_best, exponential_weights

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StartsPlan:
    """What is read, and what is chosen of it; see `assay starts`."""

    source: Path
    least_std: float = 0.05
    least_best: float = 0.9
    share: float = 0.5
    alpha: float = 0.95
    separator: str = "\n"
    seed: int = 0


@dataclass(slots=True)
class StartsTally:
    """How many there are of each."""

    prompts: int = 0
    kept: int = 0
    begun_from: int = 0
    starts: int = 0

    def __str__(self) -> str:
        return (
            f"{self.kept} of {self.prompts} prompts train, and {self.starts} beginnings of "
            f"{self.begun_from} good responses"
        )


def write_starts(plan: StartsPlan, out: Path) -> StartsTally:
    """Writes the rows to train on.

    Raises:
        ConfigError: there are no rollouts, or no prompt stays.
    """
    if not 0 < plan.alpha < 1 or not 0 < plan.share <= 1 or not plan.separator:
        raise ConfigError("--alpha is between 0 and 1, --share in (0, 1], --separator not empty")
    chosen = StartsTally()
    rows = list(starting_rows(_recorded(plan.source), plan, chosen))
    if not rows:
        raise ConfigError(
            f"{plan.source}: of {chosen.prompts} prompts none has rewards that deviate by "
            f"{plan.least_std:g}; sample more responses, or lower --least-std"
        )
    out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return chosen


def starting_rows(
    rows: Iterable[Row], plan: StartsPlan, chosen: StartsTally
) -> Iterator[dict[str, Any]]:
    """The rows to train on, of recorded responses; `chosen` counts. Pure but for that."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.get("reward") is not None:
            groups[json.dumps(row["prompt"])].append(row)
    for name, group in groups.items():
        chosen.prompts += 1
        kept, best = accepted_best(
            [float(row["reward"]) for row in group],
            least_std=plan.least_std,
            least_best=plan.least_best,
        )
        if not kept:
            continue
        chosen.kept += 1
        yield _asked(group[0])
        if best is None:
            continue
        drawn = drawn_states(str(group[best]["response"]), plan, f"{plan.seed}-{name}")
        chosen.begun_from += bool(drawn)
        chosen.starts += len(drawn)
        for begun in drawn:
            yield {**_asked(group[0]), "begun": begun}


def drawn_states(response: str, plan: StartsPlan, seed: str) -> list[str]:
    """Beginnings of a response, drawn with weights alpha^i; empty where it is one line. Pure."""
    lines = [line + plan.separator for line in response.rstrip().split(plan.separator)]
    states = list(accumulate(lines[:-1]))
    if not states:
        return []
    weights = exponential_weights(len(states), alpha=plan.alpha)
    chance = random.Random(seed)  # noqa: S311  # no secret
    return chance.choices(states, weights, k=math.ceil(len(lines) * plan.share))


def _asked(row: Row) -> dict[str, Any]:
    kept = {name: row[name] for name in ("reference", "tests", "task", "anchor") if row.get(name)}
    return {"prompt": row["prompt"], **kept}


def _recorded(source: Path) -> Iterable[Row]:
    if source.exists() and is_rollouts(source):
        return read_rollouts(source, phase=TRAIN)
    if rows := read_rows(source):
        return rows
    raise ConfigError(f"{source} is no run with recorded rollouts, and no file of their rows")
