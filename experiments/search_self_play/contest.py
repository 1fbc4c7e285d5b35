"""Self-play that keeps its difficulty (SSP, arXiv 2510.18821), in miniature.

    python -m experiments search_self_play --out DIR --seeds 0,1,2

One policy of 0.1 M weights writes sums of one to eight digits modulo 8 and solves them
(game.py). Pretrained, it proposes short sums mostly and solves sums of up to three
digits. Contestants, by what the proposer earns when a share p of four solvers is right:

    difficulty   4 p (1 - p), nothing where all or none are right
    1-acc        1 - p

Expected before the first run, for the mean of p over the last ten of 40 steps: `difficulty` within
0.15 of one half in each seed, `1-acc` below it in each seed. Three seeds tell such a difference.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from assay.kit.runs.rollouts import read_rollouts
from experiments.miniature import (
    Service,
    Shape,
    as_data,
    begin,
    contest,
    keep,
    over_seeds,
    pretrained,
    tiny,
    told,
    train,
    write_problems,
)
from experiments.search_self_play.game import LONGEST, MODULUS

ASKS = "?"
WORDS = (*map(str, range(MODULUS)), "=", ASKS)
SHAPE = Shape(width=64, layers=2, context=32, steps=900, batch=128, learning_rate=5e-3)
CONTESTANTS = ("difficulty", "1-acc")
LAST = 10
OWN = (
    "method.episodes.environment=experiments/search_self_play/game.py:SumsSelfPlay",
    "method.episodes.format=tagged",
    "method.episodes.turns=5",
    "method.turn_credit.unit=agent",
    "method.advantage.normalise=role",
)


def drawn(dice: random.Random) -> tuple[str, str]:
    """A sum that is proposed, or one that is solved: long ones by chance."""
    length = min(LONGEST, 1 + int(dice.expovariate(0.6)))
    digits = [dice.randrange(MODULUS) for _ in range(length)]
    text = "".join(map(str, digits)) + "="
    if dice.random() < 0.3:
        return ASKS, text
    right = dice.random() < max(0.0, 1.05 - 0.15 * length)
    return text, str(sum(digits) % MODULUS if right else dice.randrange(MODULUS))


def problems(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, rows that only ask, and one held out that nobody looks at."""
    model = pretrained(folder / "proposes", WORDS, drawn, SHAPE)
    rows, held_out = folder / "asks.jsonl", folder / "held-out.jsonl"
    if not held_out.is_file():
        write_problems(rows, [(ASKS, "-")] * 64)
        write_problems(held_out, [(ASKS * 2, "-")])
    return model, rows, held_out


def solved(folder: Path) -> list[float | None]:
    """The share of right answers to the sums of each training step; None without a sum."""
    rates: dict[int, list[float]] = {}
    for row in read_rollouts(folder, phase="train"):
        rate = _rate(row["episode"])
        rates.setdefault(row["step"], []).extend([] if rate is None else [rate])
    return [fmean(some) if some else None for _, some in sorted(rates.items())]


def _rate(episode: Mapping[str, Any]) -> float | None:
    rights = [value for agent, value in episode["rewards"].items() if agent.startswith("solver")]
    return fmean(rights) if rights else None


def main(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """One run."""
    folder = Path(wanted["folder"])
    reward = f'method.episodes.settings={{reward = "{wanted["name"]}"}}'
    config = tiny("grpo", wanted, problems(Path(wanted["models"])), *OWN, reward)
    train(config, folder, lambda: Service(lambda _item: False, rewards=(0.0, 1.0)))
    rates = solved(folder)
    known = [rate for rate in rates[-LAST:] if rate is not None]
    return {"rates": rates, "first": rates[0], "last": fmean(known) if known else None}


def run(words: Sequence[str]) -> None:
    """Runs what is not there yet; prints what is known so far."""
    chosen, found = contest("search_self_play", words, CONTESTANTS, 40, prepare=problems, one=main)
    table: dict[str, Any] = {}
    print(f"\n{'proposer':12}{'solved, first step':>26}{f'last {LAST} steps':>26}")
    for name, runs in found.items():
        means = {
            key: over_seeds({seed: one[key] for seed, one in runs.items()})
            for key in ("first", "last")
        }
        table[name] = {key: as_data(mean) for key, mean in means.items()}
        print(f"{name:12}{told(means['first']):>26}{told(means['last']):>26}")
    keep(chosen.out / f"search_self_play-{chosen.steps}.json", {"table": table})


if __name__ == "__main__":
    begin(main)
