"""Two agents of unequal rewards (Dr. MAS, arXiv 2602.08847), in miniature.

    python -m experiments dr_mas --out DIR --seeds 0,1,2

One policy of 0.1 M weights is two agents (episodes.py): `up` counts up from a digit for a
reward of 10, `down` counts down from it for a reward of 1; pretrained, either is right one time in
four. `configs/dr_mas.toml` without a limit on the gradient's norm, so that a spike can do what
spikes do. Contestants:

    apart       the preset: mean and deviation of each agent's own rewards
    together    the same with `ablate=roles-apart`: one mean and one deviation for both

Expected before the first run, of the last ten of 100 steps:

1. Both agents learn `apart`: right in 0.8 of the episodes or more, in each seed. `together` the
   agent with the small reward does not: at least 0.3 behind, its interval above 0.
2. Spikes, the paper's headline: the largest norm over the run's median, lower `apart`, its interval
   below 0. Against this bar speaks that the mean square of the advantages is 1 under either; what
   one agent's gains, the other's loses. The paper's agents have weights of their own.

Pilots with seeds 100 and 101 found the learning rate and the number of steps, and shares that
differ by 0.9: three seeds suffice for the first. Of norms they said nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from assay.kit.runs.records import read_rows
from assay.kit.runs.rollouts import read_rollouts
from assay.trainer.recipes.ladder.outcome import series
from assay.trainer.records.folder import RunFolder
from experiments.episodes import BASE, SIGNS, STEPS
from experiments.miniature import (
    Service,
    Shape,
    begin,
    contest,
    keep,
    pretrained,
    tiny,
    train,
    write_problems,
)
from experiments.report import compare

WORDS = (*map(str, range(BASE)), *SIGNS.values())
SHAPE = Shape(width=64, layers=2, context=16, steps=300, batch=128, learning_rate=5e-3)
MISCOUNTS = 0.35
CONTESTANTS: Mapping[str, tuple[str, ...]] = {"apart": (), "together": ("ablate=roles-apart",)}
OWN = (
    "method.episodes.environment=experiments/episodes.py:Counters",
    "method.episodes.format=tagged",
    "optim.mini_batches=1",
    "optim.max_grad_norm=0",
    "optim.learning_rate=1e-3",
)
LAST = 10
FIGURES = ("up", "down", "norm", "peak")


def drawn(dice: random.Random) -> tuple[str, str]:
    """A digit, and a count from it that goes wrong here and there."""
    at, (agent, sign) = dice.randrange(BASE), dice.choice(list(SIGNS.items()))
    prompt, digits = f"{at}{sign}", []
    for _ in range(STEPS):
        step = dice.choice((0, 2)) if dice.random() < MISCOUNTS else 1
        at = (at + (step if agent == "up" else -step)) % BASE
        digits.append(str(at))
    return prompt, "".join(digits)


def problems(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, a row for each digit, and one held out that nobody looks at."""
    model = pretrained(folder / "counters", WORDS, drawn, SHAPE)
    rows = write_problems(folder / "digits.jsonl", [(str(n), "-") for n in range(BASE)])
    return model, rows, write_problems(folder / "held-out.jsonl", [("00", "-")])


def right(folder: Path) -> dict[str, list[float]]:
    """The share of right answers of each agent, by training step."""
    found: dict[str, dict[int, list[float]]] = {agent: {} for agent in SIGNS}
    for row in read_rollouts(folder, phase="train"):
        for agent, value in row["episode"]["rewards"].items():
            found[agent].setdefault(row["step"], []).append(float(value > 0))
    return {
        agent: [fmean(some) for _, some in sorted(by_step.items())]
        for agent, by_step in found.items()
    }


def main(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """One run."""
    folder, made = Path(wanted["folder"]), problems(Path(wanted["models"]))
    config = tiny("dr_mas", wanted, made, *OWN, *CONTESTANTS[wanted["name"]])
    train(config, folder, lambda: Service(lambda _item: False, rewards=(0.0, 1.0)))
    norms = [value for _, value in series(list(read_rows(RunFolder(folder).metrics)), "grad_norm")]
    shares = right(folder)
    return {
        **{agent: fmean(values[-LAST:]) for agent, values in shares.items()},
        "norm": fmean(norms),
        "peak": max(norms) / median(norms),
        "norms": norms,
        "shares": shares,
    }


def run(words: Sequence[str]) -> None:
    """Runs what is not there yet; prints what is known so far."""
    chosen, found = contest("dr_mas", words, CONTESTANTS, 100, prepare=problems, one=main)
    table = compare(found, FIGURES, "apart")
    keep(chosen.out / f"dr_mas-{chosen.steps}.json", {"table": table})


if __name__ == "__main__":
    begin(main)
