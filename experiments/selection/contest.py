"""Which problems to train on, in a bandit of difficulties: every selector, at equal rollouts.

    python -m experiments selection
    python -m experiments selection --seeds 0,1,2,3,4 --steps 200 --out DIR

There is no model. A problem of task d with difficulty b is answered rightly with the chance
sigmoid(ability_d - b). A step draws P problems and G responses to each; a group whose rewards
deviate by s moves its task's ability by rate * s / P, and the others' by a share of that. That is
the policy gradient of a logit under advantages (R - mean) / deviation: the mean of A (R - p) over
the group is s (a derivation), 0 for a group that is all right or all wrong. Tasks start out of
balance: the easiest is nearly solved, the hardest nearly never.

On top of uniform drawing also what comes after it, with the trainer's own classes:

    spread filter   groups whose rewards deviate by less than 0.05 leave the batch (ReST-RL's), and
                    the mean is over those that stay
    replay          groups without an advantage leave their place to earlier ones (SSR's), at no new
                    response; their ratio starts from the chance that they were drawn with, and is
                    clipped at 0.2, as if a response were one token (a derivation)
    replay, no ratio  the same where they push by the deviation of the rewards that they had: the
                    mean of A (R - p) is s whatever p has become since, for A has the mean 0
    hints           a problem that nobody solved is answered again at once with a share h of its
                    solution (GHPO's), and costs its responses again. Assumed: a solution has as
                    many steps as one likes, of the same chance each, so that p becomes p ^ (1 - h).
                    Its group moves the ability by s (1 - h) (1 - p) / (1 - p ^ (1 - h)): the
                    gradient of that chance (a derivation); without a hint it is s

The filter and replay make larger steps of the same responses, so that beside them stands `uniform,
double rate`, whose steps are twice as large.

What is told of each contestant is the mean chance of success over all problems when so many
responses were generated, and how many responses it took to get to a threshold. Every response
counts: those that dynamic sampling drops, and those with which Pre-PPO scores the problems. LIMR
reads a uniform run of the same seed, which is not counted, and is said so.

This shows orderings under these assumptions, and no magnitudes. Nothing here knows of overfitting,
of noise in the gradient, or of tasks that teach one another unequally; without noise, a batch that
is all signal is worth what its signal is worth, so that dynamic sampling can gain nothing here.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from assay.clients import Judgement, Result
from assay.trainer.core.batch import Scored
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.filter.filters import filtered
from assay.trainer.methods.filter.settings import FilterConfig
from assay.trainer.methods.hints.settings import HintsConfig
from assay.trainer.methods.replay.replay import Replay
from assay.trainer.methods.replay.settings import ReplayConfig
from assay.trainer.recipes.ladder import plan
from assay.trainer.recipes.ladder.stats import difference
from assay.trainer.rollouts.types import Group, Rollout
from assay.trainer.selection.choose import make_selector
from assay.trainer.selection.subsets import PrePpo, Subset, limr_scores
from assay.trainer.selection.types import Seen, Selector
from assay.trainer.selection.variance import distinct_pairs
from assay.trainer.settings import config as configs
from experiments.miniature import as_data, keep, over_seeds, told

TASKS = ("sums", "products", "proofs", "puzzles")
MEANS = (-2.0, 0.5, 2.5, 4.5)
"""Mean difficulty of each task; abilities start at 0."""
SPREAD = 1.5
PER_TASK = 150
PROMPTS, GROUP = 16, 8
RATE, TRANSFER = 0.5, 0.15
THRESHOLD = 0.6
CURRICULUM = {"tasks": ["sums", "products"], "until_step": 60}
CHOICES: dict[str, dict[str, Any]] = {
    "mopps": {"mopps": {"decay": 0.7}},
    "vade": {},
    "dump": {},
    "dads": {},
    "vas": {"vas": {"refresh_every": 0}},  # by the training's own groups, at no cost of its own
    "curriculum": {"curriculum": CURRICULUM},
    "hard-focus": {"hard_focus": {"after_steps": 40, "every": 40}},
    "pre-ppo": {},
    "limr": {},
}
HINTS = HintsConfig(enabled=True)
SPREAD_FILTER = FilterConfig(min_group_std=0.05)
REPLAY = ReplayConfig(groups=64)
NAMES = (
    "uniform",
    "uniform, double rate",
    "dynamic sampling",
    *CHOICES,
    "mopps, dynamic sampling",
    "spread filter",
    "replay",
    "replay, no ratio",
    "hints",
)
CLIP = 0.2


@dataclass(frozen=True, slots=True)
class Replayed(Seen):
    """An earlier group.

    Attributes:
        chance: of success when it was drawn.
    """

    chance: float = 0.5

    def push(self, now: float) -> float:
        """The mean of the clipped ratio's gradient by a logit; s while the chance is as it was."""
        mean, deviation = float(np.mean(self.rewards)), float(np.std(self.rewards))
        up, down = now / self.chance, (1 - now) / (1 - self.chance)
        right = up * (1 - now) if up <= 1 + CLIP else 0.0
        wrong = down * now if down >= 1 - CLIP else 0.0
        return mean * (1 - mean) / deviation * (right + wrong)


@dataclass
class Bandit:
    """Problems, abilities, and the rollouts that were made so far."""

    seed: int
    rate: float = RATE
    made: int = 0

    def __post_init__(self) -> None:
        dice = np.random.default_rng([self.seed, 1])
        self.dice = np.random.default_rng([self.seed, 2])
        self.task = np.repeat(np.arange(len(TASKS)), PER_TASK)
        self.difficulty = dice.normal(np.array(MEANS)[self.task], SPREAD)
        self.ability = np.zeros(len(TASKS))

    def chances(self) -> np.ndarray[Any, Any]:
        """Of success, on each problem."""
        return np.asarray(1 / (1 + np.exp(self.difficulty - self.ability[self.task])))

    def answer(self, place: int, samples: int = GROUP) -> Seen:
        """A group of judged responses; right ones are alike, wrong ones differ.

        A place beyond the problems is one with a hint: p + l * n of problem p of n at level l.
        """
        rest, chance = self.asked(place)
        right = self.dice.random(samples) < chance**rest
        self.made += samples
        wrong = self.dice.integers(3, 20, (samples, 3)).tolist()
        ids = [(0, 1, 2) if yes else tuple(wrong[n]) for n, yes in enumerate(right)]
        rewards = tuple(map(float, right))
        return Seen(place, rewards, int(right.sum()), distinct_pairs(ids))

    def train(self, groups: Sequence[Seen]) -> None:
        """One step, by the mean over the groups."""
        gains = np.zeros(len(TASKS))
        for group in groups:
            rest, chance = self.asked(group.place)
            push = float(np.std(group.rewards))
            if isinstance(group, Replayed):
                push = group.push(chance)
            elif rest < 1:
                push *= rest * (1 - chance) / (1 - chance**rest)
            gains[self.task[group.place % len(self.task)]] += self.rate * push / len(groups)
        self.ability += (1 - TRANSFER) * gains + TRANSFER * gains.mean()

    def asked(self, place: int) -> tuple[float, float]:
        """The share of the solution that is left to do, and the chance of all of it."""
        level, problem = divmod(place, len(self.task))
        gap = self.difficulty[problem] - self.ability[self.task[problem]]
        return 1 - (0, *HINTS.shares)[level], 1 / (1 + math.exp(gap))


def problems() -> list[Problem]:
    """What selectors are told of the problems: their task."""
    labels = [task for task in TASKS for _ in range(PER_TASK)]
    return [Problem(str(n), str(n), (), "", label, solution="-") for n, label in enumerate(labels)]


def as_group(seen: Seen, number: int, chance: float) -> Group:
    """A group as the trainer has it, drawn with a chance of success above 0 and below 1."""
    draw = Draw(number, Problem(str(seen.place), "", (), ""), (0,))
    told = {True: (math.log(chance),), False: (math.log1p(-chance),)}
    return tuple(
        Rollout(
            Request(draw, n),
            Response((0,), "-", told[reward > 0], truncated=False),
            Result(str(n), Judgement(reward, "correct" if reward else "incorrect")),
            number,
        )
        for n, reward in enumerate(seen.rewards)
    )


def as_seen(group: Group) -> Replayed:
    """The way back."""
    rewards = tuple(float(rollout.result.reward or 0) for rollout in group)
    (logp,) = group[0].response.logprobs or (math.nan,)
    chance = math.exp(logp) if rewards[0] else -math.expm1(logp)
    place = int(group[0].request.draw.problem.id)
    return Replayed(place, rewards, int(sum(rewards)), chance=chance)


@dataclass
class Batch:
    """What a step's groups become before they train.

    Attributes:
        replay: earlier groups, for those without an advantage; None for none.
        ratio: whether those start from the chance that they were drawn with.
        settings: which groups stay.
    """

    replay: Replay | None = None
    ratio: bool = True
    settings: FilterConfig = field(default_factory=FilterConfig)

    def of(self, drawn: Sequence[Seen], first: int, bandit: Bandit) -> list[Seen]:
        """The groups that train, `first` being the number of the first draw."""
        if self.replay is None and not self.settings.min_group_std:
            return list(drawn)
        own = [as_group(s, first + n, bandit.asked(s.place)[1]) for n, s in enumerate(drawn)]
        groups = own
        if self.replay is not None:
            groups = self.replay.mix(own, first)
            self.replay.keep(own)
        items = filtered([[Scored(r, r.result.reward) for r in g] for g in groups], self.settings)
        size, fresh = (
            len(groups[0]),
            {id(group): seen for group, seen in zip(own, drawn, strict=True)},
        )
        return [
            fresh.get(id(group)) or self._again(as_seen(group))
            for n, group in enumerate(groups)
            if items[n * size].trains
        ]

    def _again(self, group: Replayed) -> Seen:
        return group if self.ratio else Seen(group.place, group.rewards, group.correct)


def batch_of(name: str, seed: int) -> Batch:
    """That of a contestant."""
    if name.startswith("replay"):
        return Batch(Replay(REPLAY, seed), ratio="no ratio" not in name)
    return Batch(settings=SPREAD_FILTER if name == "spread filter" else FilterConfig())


def contestant(name: str, bandit: Bandit, steps: int) -> Selector:
    """The selector of a name, told what it must know beforehand."""
    choice = name.partition(",")[0]
    size = len(TASKS) * PER_TASK
    if choice == "limr":
        return earlier_run(bandit.seed, steps)
    if choice not in CHOICES:
        return Subset(range(size), bandit.seed)
    tree = {"data": {"selection": {"name": choice, **CHOICES[choice]}}}
    selection = configs.build(tree, origin="bench").data.selection
    made = make_selector(selection, problems(), bandit.seed)
    assert made is not None
    if isinstance(made, PrePpo):
        made.score([bandit.answer(n, 1) for n in made.unscored])
    return made


def earlier_run(seed: int, steps: int) -> Subset:
    """LIMR's problems, by the visits of a uniform run."""
    visits: dict[str, list[float]] = defaultdict(list)
    bandit = Bandit(seed + 1000)
    bandit.difficulty = Bandit(seed).difficulty
    for groups in played(bandit, Subset(range(len(bandit.task)), seed), steps, dynamic=False):
        for group in groups:
            visits[str(group.place)].append(float(np.mean(group.rewards)))
    scores = limr_scores(visits)
    return Subset([int(name) for name, score in scores.items() if score > 0.6], seed)


def played(
    bandit: Bandit,
    selector: Selector,
    steps: int,
    *,
    dynamic: bool,
    batch: Batch | None = None,
    hints: Sequence[float] = (),
) -> Iterator[list[Seen]]:
    """Steps until so many rollouts are made as `steps` steps without dynamic sampling make; what
    each has drawn, those that were answered again with a hint each time."""
    cursor, budget, batch = 0, steps * PROMPTS * GROUP, batch or Batch()
    while bandit.made + PROMPTS * GROUP <= budget:
        drawn: list[Seen] = []
        answered: list[Seen] = []
        kept: list[Seen] = []
        for place in selector.order(cursor):
            group = bandit.answer(place)
            drawn.append(group)
            answered.append(group)
            for _ in hints:
                if group.correct:
                    break
                group = bandit.answer(group.place + len(bandit.task))
                answered.append(group)
            if not dynamic or 0 < group.correct < GROUP:
                kept.append(group)
            if len(kept) == PROMPTS or bandit.made >= budget:
                break
        if len(kept) == PROMPTS:
            bandit.train(batch.of(kept, cursor, bandit))
        cursor += len(drawn)
        selector.learn(drawn)
        yield answered


def one_run(name: str, seed: int, steps: int) -> dict[str, float | None]:
    """A contestant's figures."""
    bandit = Bandit(seed, rate=2 * RATE if "double" in name else RATE)
    selector, batch = contestant(name, bandit, steps), batch_of(name, seed)
    reached: int | None = None
    wasted = groups = updates = 0
    hints = HINTS.shares if name == "hints" else ()
    for drawn in played(
        bandit, selector, steps, dynamic="dynamic" in name, batch=batch, hints=hints
    ):
        updates += 1
        groups += len(drawn)
        wasted += sum(group.correct in (0, GROUP) for group in drawn)
        if reached is None and float(bandit.chances().mean()) >= THRESHOLD:
            reached = bandit.made
    chances = bandit.chances()
    return {
        "success": float(chances.mean()),
        "worst_task": float(min(chances[bandit.task == d].mean() for d in range(len(TASKS)))),
        "rollouts_to_threshold": reached,
        "without_signal": wasted / groups,
        "updates": updates,
    }


def run(options: Sequence[str]) -> None:
    """Plays all contestants over all seeds, and prints them from the best."""
    parser = argparse.ArgumentParser(prog="experiments selection")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--steps", type=int, default=200, help="of a run without dynamic sampling")
    parser.add_argument("--out", type=Path, default=Path("runs/experiments/selection"))
    chosen = parser.parse_args(options)
    seeds = plan.read_seeds(chosen.seeds)
    runs = {name: {s: one_run(name, s, chosen.steps) for s in seeds} for name in NAMES}
    found = {name: figures(runs, name) for name in NAMES}
    order = sorted(NAMES, key=lambda name: -found[name]["success"]["mean"])
    print(
        f"\n{len(seeds)} seeds, {chosen.steps * PROMPTS * GROUP:,} responses each; means with 95 % "
        f"intervals\n{'':<26}{'success':<24}{'less uniform':<26}{'to ' + str(THRESHOLD):<22}"
        f"{'no signal':<11}{'worst task':<11}updates"
    )
    for name in order:
        print(line(name, runs, seeds))
    chosen.out.mkdir(parents=True, exist_ok=True)
    keep(chosen.out / "selection.json", {"from_the_best": order, "contestants": found})


Runs = dict[str, dict[int, dict[str, float | None]]]


def column(runs: Runs, name: str, key: str) -> dict[int, float]:
    """A figure for each seed that has it."""
    return {s: float(v) for s, one in runs[name].items() if (v := one[key]) is not None}


def figures(runs: Runs, name: str) -> dict[str, Any]:
    """Means over seeds, and the change from uniform, paired by seed."""
    keys = ("success", "worst_task", "rollouts_to_threshold", "without_signal", "updates")
    found: dict[str, Any] = {
        key: as_data(over_seeds(dict(column(runs, name, key)))) for key in keys
    }
    changed = difference(column(runs, name, "success"), column(runs, "uniform", "success"))
    reached = len(column(runs, name, "rollouts_to_threshold"))
    return {**found, "change": as_data(changed), "reached": reached}


def line(name: str, runs: Runs, seeds: Sequence[int]) -> str:
    """One row of the table."""
    mean: Callable[[str], float] = lambda key: float(  # noqa: E731
        np.mean(list(column(runs, name, key).values()))
    )
    success = column(runs, name, "success")
    changed = difference(success, column(runs, "uniform", "success"))
    reached = column(runs, name, "rollouts_to_threshold")
    count = f" ({len(reached)} of {len(seeds)})" if len(reached) < len(seeds) else ""
    to_it = f"{np.mean(list(reached.values())):,.0f}{count}" if reached else "never"
    return (
        f"{name:<26}{told(over_seeds(dict(success))):<24}"
        f"{'' if name == 'uniform' else told(changed):<26}{to_it:<22}"
        f"{mean('without_signal'):<11.1%}{mean('worst_task'):<11.3f}{mean('updates'):.0f}"
    )
