"""A talk that does not fit its window, behind summaries (SUPO, arXiv 2510.06727), in miniature.

    python -m experiments supo --out DIR --seeds 0,1,2

Digits come one by one, 6, 12, 18 or 24 of them, and a policy of 0.1 M weights says at each which
was the first, and last of all for a reward of 1 (episodes.py). Its window holds 40
tokens: 13 turns, so that talks of 18 and 24 digits (`long`) do not fit, and shorter ones do.
Pretrained, it keeps the digit from turn to turn 98 times in a hundred; of its summaries three in
ten name it and the others any digit. `configs/supo.toml` with 8 rows of 8 samples a step.
Contestants:

    summaries   the preset: a summary after each five digits, one advantage for all conversations
    uncredited  the same, but the last conversation alone is credited
    window      the same window without summaries: what does not fit is left out, as in the preset

Expected before the first run, of the last ten of 60 steps, in each of three seeds:

1. `summaries` is right in 0.8 of the long talks or more, and in less than 0.2 in its first two
   steps. `window` never is, which is arithmetic; in its short talks it is right in 0.7 or more.
2. Credit is what trains summaries: `uncredited` is at least 0.3 behind in the long talks, its
   interval above 0.

Pilots with seeds 100 and 101 found the task and the number of steps: 20 steps reached 0.9 of the
long talks, and 0.1 uncredited.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from assay.environments import Observation, Reply
from assay.kit.runs.rollouts import read_rollouts
from experiments.episodes import BASE, Recall, RecallSettings
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

KEEPS, SUMS_UP, NOTHING = 0.98, 0.3, "-"
LENGTHS, FITS = (6, 12, 18, 24), 12
WINDOW = 40
TAGS = ("<question>", "</question>", "<summary>", "</summary>")
WORDS = (*map(str, range(BASE)), NOTHING, "?", "\n", *TAGS)
SHAPE = Shape(width=64, layers=2, context=WINDOW, steps=600, batch=64, learning_rate=5e-3)
CONTESTANTS: Mapping[str, tuple[str, ...]] = {
    "summaries": (),
    "uncredited": ('method.episodes.settings.earns="last"', "method.turn_credit.unit=agent"),
    "window": ('method.episodes.settings.context="history"',),
}
OWN = (
    "method.episodes.environment=experiments/episodes.py:Recall",
    "method.episodes.format=tagged",
    "method.episodes.settings.summary_turns=5",
    "method.episodes.turns=40",
    "rollout.max_new_tokens=4",
)
LAST = 10
FIGURES = ("long_first", "long", "short_first", "short")


def drawn(dice: random.Random) -> tuple[str, str]:
    """What a conversation begins with, and all that follows; half of the talks have no summary."""
    summed_up = dice.random() < 0.5
    told = Recall(RecallSettings(context="summary" if summed_up else "history"))
    length = dice.choice(LENGTHS if summed_up else [n for n in LENGTHS if n <= FITS])
    observed: Observation | None = told.reset({"prompt": digits(dice, length)})
    talks: list[list[str]] = []
    kept = NOTHING
    while observed is not None:
        read, chance = "".join(one.content for one in observed.messages), KEEPS
        if observed.messages and observed.messages[0].role == "system":
            talks.append([read, ""])
        else:
            kept, chance = read[0] if kept == NOTHING else kept, SUMS_UP if told.is_asked else KEEPS
            talks[-1][1] += read
        if kept != NOTHING and dice.random() > chance:
            kept = str(dice.randrange(BASE))
        talks[-1][1] += f"{kept}{END}"
        observed = told.turn(Reply(kept, answer=kept))
    begun, rest = dice.choice(talks)
    return begun, rest.removesuffix(END)


def digits(dice: random.Random, length: int) -> str:
    """Of a talk."""
    return "".join(str(dice.randrange(BASE)) for _ in range(length))


def problems(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, rows of digits, and one held out that nobody looks at."""
    model = pretrained(folder / "recalls", WORDS, drawn, SHAPE)
    dice = random.Random(0)
    talks = [(digits(dice, LENGTHS[n % len(LENGTHS)]), "-") for n in range(2049)]
    rows = write_problems(folder / "digits.jsonl", talks[1:])
    return model, rows, write_problems(folder / "held-out.jsonl", talks[:1])


def right(folder: Path, *, long: bool) -> list[float]:
    """The share of talks that ended with the right answer, by training step."""
    found: dict[int, list[float]] = {}
    for row in read_rollouts(folder, phase="train"):
        if (len(row["question"]) > FITS) == long:
            earned = max(row["episode"]["rewards"].values(), default=row["reward"])
            found.setdefault(row["step"], []).append(earned * (row["ending"] == "answered"))
    return [fmean(some) for _, some in sorted(found.items())]


def main(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """One run."""
    folder, made = Path(wanted["folder"]), problems(Path(wanted["models"]))
    config = tiny("supo", wanted, made, *OWN, *CONTESTANTS[wanted["name"]])
    train(config, folder, lambda: Service(lambda _item: False, rewards=(0.0, 1.0)))
    long, short = right(folder, long=True), right(folder, long=False)
    return {
        "long_first": fmean(long[:2]),
        "long": fmean(long[-LAST:]),
        "short_first": fmean(short[:2]),
        "short": fmean(short[-LAST:]),
        "shares": {"long": long, "short": short},
    }


def run(words: Sequence[str]) -> None:
    """Runs what is not there yet; prints what is known so far."""
    chosen, found = contest("supo", words, CONTESTANTS, 60, prepare=problems, one=main)
    table = compare(found, FIGURES, "summaries")
    keep(chosen.out / f"supo-{chosen.steps}.json", {"table": table})


if __name__ == "__main__":
    begin(main)
