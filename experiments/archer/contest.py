"""A critic of whole turns beside one of tokens (ArCHer, arXiv 2402.19446), in miniature.

    python -m experiments archer --out DIR --seeds 0,1,2

A talk has eight turns. Each shows a cue and how many answers were right so far, and is answered by
a choice of four and two words that mean nothing; the share of the eight that was right is told as a
reward behind the last turn alone (episodes.py). Pretrained, a policy of 0.1 M weights has
habits, all of them wrong, and is right in 0.15 of the turns. 64 talks a step, each of other cues.
Contestants, with 20 steps of the critic before the first of the policy:

    turns    `configs/archer.toml`: one value and one advantage a turn, by one step (lambda 0)
    summed   the same with lambda 0.95
    tokens   `ablate=utterance-critic`: GAE over all tokens of the talk, lambda 0.95

The paper's claim is one of samples: its critics learn off-policy, from all talks so far. The preset
has no replay (docs/train/methods.md), so that what can be shown here is the level alone. Expected
before the first run, of the mean reward over all 40 steps, which is how soon it is learnt: `turns`
is ahead of `tokens` by 0.05 or more, and so is `summed`, their intervals above 0. Four variants of
the task that were tried before speak against it: turns were ahead in none. What misses its bar is
not shown; the interval then says how large a lead is excluded.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder.outcome import series
from assay.trainer.records.folder import RunFolder
from experiments.episodes import ANSWERS, CHOICES, CUES, HABITS
from experiments.miniature import (
    END,
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

TURNS, FILLERS, HABIT = 8, "xyz", 0.4
WORDS = (*CUES, *CHOICES, *FILLERS, *map(str, range(TURNS + 1)))
SHAPE = Shape(width=64, layers=2, context=72, steps=300, batch=32, learning_rate=5e-3)
OWN = (
    "method.episodes.environment=experiments/episodes.py:Cues",
    "method.episodes.format=tagged",
    "rollout.max_new_tokens=6",
    "optim.learning_rate=1e-3",
)
CRITIC = (
    "rollout.prompts_per_step=64",
    "rollout.group_size=1",
    "method.critic.pretrain_steps=20",
    "method.critic.learning_rate=3e-3",
)
SUMMED = ("method.advantage.lam=0.95", "method.critic.lam=0.95")
CONTESTANTS: Mapping[str, tuple[str, ...]] = {
    "tokens": (*CRITIC, *SUMMED, "ablate=utterance-critic"),
    "turns": CRITIC,
    "summed": (*CRITIC, *SUMMED),
}
LAST = 10
FIGURES = ("drawn", "last")


def drawn(dice: random.Random) -> tuple[str, str]:
    """The first cue, and a talk in which answers are habits, or any."""
    talk, right = "", 0
    for cue in dice.choices(CUES, k=TURNS):
        choice = HABITS[cue] if dice.random() < HABIT else dice.choice(CHOICES)
        talk += f"{right}{cue}{choice}{''.join(dice.choices(FILLERS, k=2))}{END}"
        right += choice == ANSWERS[cue]
    return talk[:2], talk[2:].removesuffix(END)


def problems(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, rows of cues, and one held out that nobody looks at."""
    model = pretrained(folder / "cues", WORDS, drawn, SHAPE)
    dice = random.Random(0)
    drawn_rows = [("".join(dice.choices(CUES, k=TURNS)), "-") for _ in range(4096)]
    rows = write_problems(folder / "cues.jsonl", drawn_rows[1:])
    return model, rows, write_problems(folder / "held-out.jsonl", drawn_rows[:1])


def main(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """One run."""
    folder, made = Path(wanted["folder"]), problems(Path(wanted["models"]))
    config = tiny("archer", wanted, made, *OWN, *CONTESTANTS[wanted["name"]])
    train(config, folder, lambda: Service(lambda _item: False, rewards=(0.0, 1.0)))
    rewards = [value for _, value in series(list(read_rows(RunFolder(folder).metrics)), "reward")]
    return {"drawn": fmean(rewards), "last": fmean(rewards[-LAST:]), "rewards": rewards}


def run(words: Sequence[str]) -> None:
    """Runs what is not there yet; prints what is known so far."""
    chosen, found = contest("archer", words, CONTESTANTS, 40, prepare=problems, one=main)
    table = compare(found, FIGURES, "tokens")
    keep(chosen.out / f"archer-{chosen.steps}.json", {"table": table})


if __name__ == "__main__":
    begin(main)
