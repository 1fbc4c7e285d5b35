"""A part of the problems, each in turn: Pre-PPO, LIMR, and DRIVE's second stage.

Differences:

1. Pre-PPO (arXiv 2503.22230) adds a tenth of new prompts to earlier ones; `keep_tasks` names the
   tasks of the earlier ones. A problem without judged responses has no score and is not chosen. A
   verifier of 0 and 1 makes many scores equal; the seed breaks ties. [derivation]
2. LIMR (arXiv 2502.11886): the k-th mean reward is that of the k-th judged draw of a problem, and
   the average is over the problems with so many. Problems drawn once are not scored and not kept. A
   question identifies its problem. [derivation]
3. Of DRIVE only the abstract was at hand: stage one is uniform; in stage two each look keeps the
   hardest share, by the success over all visits since the last look, which an unvisited problem
   keeps. The number of samples is the run's; for 64 in stage two, start a second run from the
   first. [derivation]
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from assay.kit.errors import ConfigError
from assay.kit.runs.records import read_rows
from assay.trainer.algos.selection import lim_score, pre_ppo_select
from assay.trainer.selection.declared import HardFocusConfig, LimrConfig, PrePpoConfig
from assay.trainer.selection.orders import Passes, dice
from assay.trainer.selection.types import Seen, Selector


class Subset(Selector):
    """A Selector of some problems, each in turn; `kept` is None until they are known."""

    def __init__(self, kept: Sequence[int] | None, seed: int) -> None:
        self._seed = seed
        self.keep(kept)

    def keep(self, kept: Sequence[int] | None) -> None:
        """Sets the problems."""
        self.kept = None if kept is None else tuple(sorted(kept))
        self._passes = Passes(self.kept, self._seed) if self.kept else None

    def order(self, first: int) -> Iterator[int]:
        """See Selector. Raises RuntimeError: the problems are not known yet."""
        if self._passes is None:
            raise RuntimeError("the problems were not scored before the first draw")
        passes = self._passes
        return (passes.place(number) for number in count(first))

    def state_dict(self) -> dict[str, Any]:
        """The places."""
        return {"kept": None if self.kept is None else list(self.kept)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        self.keep(state["kept"])


class PrePpo(Subset):
    """The problems that are hardest for the initial policy; Scorable.

    Raises:
        ConfigError: no problem is left to choose from.
    """

    def __init__(self, config: PrePpoConfig, labels: Sequence[str], seed: int) -> None:
        super().__init__(None, seed)
        self.samples = config.samples
        self._config = config
        self._labels = tuple(labels)
        self._before = [n for n, label in enumerate(labels) if label in config.keep_tasks]
        self._new = [n for n, label in enumerate(labels) if label not in config.keep_tasks]
        if not self._new:
            raise ConfigError("data.selection.pre_ppo.keep_tasks leaves no problem to choose from")

    @property
    def unscored(self) -> Sequence[int]:
        """See Scorable."""
        return () if self.kept is not None else tuple(self._new)

    def score(self, seen: Sequence[Seen]) -> None:
        """See Scorable."""
        known = {one.place: fmean(one.rewards) for one in seen if one.rewards}
        if not known:
            raise ConfigError(
                'no problem could be scored for data.selection.name = "pre-ppo": every response '
                "was a fault; see that the reward services run"
            )
        places = sorted(known)
        chosen = pre_ppo_select(
            [known[place] for place in places],
            [self._labels[place] for place in places],
            self._config.fraction,
            ties=dice(self._seed, 0).permutation(len(places)).tolist(),
        )
        self.keep([*self._before, *(places[n] for n in chosen)])


def limr(config: LimrConfig, questions: Sequence[str], seed: int) -> Subset:
    """The problems whose learning curve in an earlier run followed the average.

    Raises:
        ConfigError: there are no such records, or no problem of this run passes the threshold.
    """
    scores = limr_scores(_visits(config, set(questions)))
    kept = [n for n, text in enumerate(questions) if scores.get(text, -math.inf) > config.threshold]
    if not kept:
        best = max(scores.values(), default=None)
        raise ConfigError(
            f"data.selection.limr.records = {config.records!r}: {len(scores)} problems came twice "
            f"or more, and none is above data.selection.limr.threshold = {config.threshold:g}"
            + ("" if best is None else f"; the best is {best:.3f}, lower the threshold")
        )
    return Subset(kept, seed)


def limr_scores(visits: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """LIMR's score of each problem drawn at least twice; see `lim_score`.

    `visits` holds each problem's mean rewards of its judged draws, in order; at most 1.
    """
    most = max(map(len, visits.values()), default=0)
    columns = [[v[k] for v in visits.values() if len(v) > k] for k in range(most)]
    average_K = torch.tensor([sum(c) / len(c) for c in columns], dtype=torch.float64)
    found = {}
    for name, own in visits.items():
        own_K = torch.tensor(own, dtype=torch.float64)
        score = float(lim_score(own_K, average_K[: len(own)])) if len(own) > 1 else math.nan
        if not math.isnan(score):
            found[name] = score
    return found


def _visits(config: LimrConfig, questions: set[str]) -> dict[str, list[float]]:
    path = Path(config.records)
    path = path / "samples.jsonl" if path.is_dir() else path
    if not config.records or not path.is_file():
        raise ConfigError(
            f"data.selection.limr.records = {config.records!r} is no samples.jsonl of an earlier "
            "run; make one with run.samples_every=1"
        )
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in read_rows(path):
        if row["question"] in questions and row["reward"] is not None and not row.get("hint"):
            groups[row["question"], row["draw"]].append(row["reward"])
    visits: dict[str, list[float]] = defaultdict(list)
    for (question, _), rewards in sorted(groups.items(), key=lambda item: item[0][1]):
        visits[question].append(sum(rewards) / len(rewards))
    return visits


class HardFocus(Selector):
    """A Selector in two stages: every problem in turn, then the hardest."""

    def __init__(self, config: HardFocusConfig, size: int, seed: int) -> None:
        self._config = config
        self._seed = seed
        self._step = 0
        self._left = list(range(size))
        self._passes = Passes(self._left, seed)
        self._counts: dict[int, tuple[int, int]] = {}
        self._hard: dict[int, float] = {}

    def order(self, first: int) -> Iterator[int]:
        """See Selector."""
        return (self._passes.place(number) for number in count(first))

    def learn(self, seen: Sequence[Seen]) -> None:
        """See Selector."""
        for one in seen:
            if one.rewards:
                correct, judged = self._counts.get(one.place, (0, 0))
                self._counts[one.place] = (correct + one.correct, judged + len(one.rewards))
        self._step += 1
        since = self._step - self._config.after_steps
        if since >= 0 and since % self._config.every == 0:
            self._look()

    def estimate(self, place: int) -> float | None:
        """The success at the latest look."""
        return self._hard.get(place)

    def state_dict(self) -> dict[str, Any]:
        """The remaining problems, and their estimates."""
        return {
            "step": self._step,
            "left": list(self._left),
            "counts": [[place, *counts] for place, counts in self._counts.items()],
            "hard": [[place, rate] for place, rate in self._hard.items()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        self._step, self._left = int(state["step"]), list(state["left"])
        self._passes = Passes(self._left, self._seed)
        self._counts = {place: (correct, judged) for place, correct, judged in state["counts"]}
        self._hard = dict(state["hard"])

    def _look(self) -> None:
        """Keeps the hardest of the remaining problems, and those without an estimate."""
        self._hard |= {p: correct / judged for p, (correct, judged) in self._counts.items()}
        self._counts = {}
        keep = max(self._config.least, math.ceil(self._config.keep * len(self._left) - 1e-9))
        by_rate = sorted(self._left, key=lambda place: (self._hard.get(place, -1.0), place))
        self._left = sorted(by_rate[:keep])
        self._passes = Passes(self._left, self._seed)
