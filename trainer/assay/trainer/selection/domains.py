"""Tasks by weights, and within a task every problem in turn: DUMP, DADS, RECAP, some tasks first.

A step uses the weights of its start; a draw's number gives the random number that picks its task.
Draws without a judgement count as drawn, and change no weight.

Differences:

1. DUMP (arXiv 2504.09710): its mean |A| is over a task's latest responses, with advantages within
   their group, whatever the run's estimator.
2. DADS (RuleReasoner, arXiv 2506.08672): the authors' decay divides the decayed sum of rewards by
   their plain count; here it is a weighted mean, so that the target is a reward. An unjudged task
   counts as the worst of the judged. [derivation]
3. Some tasks first (arXiv 2503.22230): the paper shows a curve without numbers; here a straight
   line. [derivation]
4. RECAP (arXiv 2510.21978): of the paper the abstract was at hand, which weighs losses by signals
   of convergence and instability over few steps. Here the draws of tasks are weighed, by the slope
   and the variance of a moving mean of rewards; a task without draws keeps both. [derivation]
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from statistics import fmean
from typing import Any

import numpy as np
import torch

from assay.trainer.algos.selection import (
    dads_domain_weights,
    dump_domain_weights,
    recap_weights,
)
from assay.trainer.selection.declared import CurriculumConfig, DadsConfig, DumpConfig, RecapConfig
from assay.trainer.selection.orders import Passes, Vector, dice
from assay.trainer.selection.types import Seen, Selector


class ByTask(Selector):
    """A Selector of tasks, `names` sorted; subclasses weigh them."""

    def __init__(self, labels: Sequence[str], seed: int) -> None:
        self.names = sorted(set(labels))
        place_of = {name: n for n, name in enumerate(self.names)}
        self._task = [place_of[label] for label in labels]
        members: list[list[int]] = [[] for _ in self.names]
        for place, task in enumerate(self._task):
            members[task].append(place)
        self._passes = [Passes(m, f"{seed}-{n}") for n, m in enumerate(members)]
        self._seed = seed
        self._drawn = [0] * len(self.names)

    @abstractmethod
    def weights(self) -> Vector:
        """A probability for each task; they sum to 1."""

    def note(self, task: int, seen: Seen) -> None:  # nothing, unless a subclass says
        """Learns a draw with at least one judgement."""

    def close_step(self) -> None:  # the same
        """Called after a step's last draw."""

    def order(self, first: int) -> Iterator[int]:
        """See Selector."""
        bounds = np.cumsum(self.weights())
        drawn = list(self._drawn)
        for number in count(first):
            chance = dice(self._seed, number).random() * bounds[-1]
            task = min(int(np.searchsorted(bounds, chance, side="right")), len(bounds) - 1)
            yield self._passes[task].place(drawn[task])
            drawn[task] += 1

    def learn(self, seen: Sequence[Seen]) -> None:
        """See Selector."""
        for one in seen:
            self._drawn[self._task[one.place]] += 1
            if one.rewards:
                self.note(self._task[one.place], one)
        self.close_step()

    def state_dict(self) -> dict[str, Any]:
        """Draws of each task."""
        return {"drawn": list(self._drawn)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        self._drawn = list(state["drawn"])


class Dump(ByTask):
    """Tasks by an upper confidence bound of mean |advantage|; see `dump_domain_weights`."""

    def __init__(self, config: DumpConfig, labels: Sequence[str], seed: int) -> None:
        super().__init__(labels, seed)
        self._tau = config.tau
        self._sizes = [deque[float](maxlen=config.window) for _ in self.names]
        self._counts = [0] * len(self.names)

    def weights(self) -> Vector:
        """See ByTask."""
        means = [sum(sizes) / len(sizes) if sizes else 0.0 for sizes in self._sizes]
        counts = torch.tensor(self._counts, dtype=torch.float64)
        weights = dump_domain_weights(
            torch.tensor(means, dtype=torch.float64), counts, tau=self._tau
        )
        return np.asarray(weights.numpy())

    def note(self, task: int, seen: Seen) -> None:
        """See ByTask."""
        self._sizes[task].extend(np.abs(seen.advantages).tolist())
        self._counts[task] += len(seen.rewards)

    def state_dict(self) -> dict[str, Any]:
        """The latest |advantages| and the counts."""
        sizes = [list(sizes) for sizes in self._sizes]
        return {**super().state_dict(), "sizes": sizes, "counts": list(self._counts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        super().load_state_dict(state)
        self._counts = list(state["counts"])
        for sizes, saved in zip(self._sizes, state["sizes"], strict=True):
            sizes.clear()
            sizes.extend(saved)


class Dads(ByTask):
    """Tasks by how far their mean reward is below the target; see `dads_domain_weights`."""

    def __init__(self, config: DadsConfig, labels: Sequence[str], seed: int) -> None:
        super().__init__(labels, seed)
        self._config = config
        self._sums = [0.0] * len(self.names)
        self._weights = [0.0] * len(self.names)

    def weights(self) -> Vector:
        """See ByTask."""
        known = [s / w for s, w in zip(self._sums, self._weights, strict=True) if w > 0]
        worst = min(known, default=0.0)
        means = [s / w if w > 0 else worst for s, w in zip(self._sums, self._weights, strict=True)]
        config = self._config
        weights = dads_domain_weights(
            torch.tensor(means, dtype=torch.float64), target=config.target, tau=config.tau
        )
        return np.asarray(weights.numpy())

    def note(self, task: int, seen: Seen) -> None:
        """See ByTask."""
        self._sums[task] += sum(seen.rewards)
        self._weights[task] += len(seen.rewards)

    def close_step(self) -> None:
        """See ByTask."""
        self._sums = [self._config.decay * value for value in self._sums]
        self._weights = [self._config.decay * value for value in self._weights]

    def state_dict(self) -> dict[str, Any]:
        """Decayed sums of rewards and of weights."""
        return {**super().state_dict(), "sums": self._sums, "weights": self._weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        super().load_state_dict(state)
        self._sums, self._weights = list(state["sums"]), list(state["weights"])


class Recap(ByTask):
    """Tasks by the slope and the variance of their mean reward; see `recap_weights`."""

    def __init__(self, config: RecapConfig, labels: Sequence[str], seed: int) -> None:
        super().__init__(labels, seed)
        self._config = config
        self._rewards: list[list[float]] = [[] for _ in self.names]  # of this step
        self._means: list[float | None] = [None] * len(self.names)
        self._slopes = [0.0] * len(self.names)
        self._variances = [0.0] * len(self.names)

    def weights(self) -> Vector:
        """See ByTask."""
        slopes, variances = torch.tensor([self._slopes, self._variances], dtype=torch.float64)
        weights = recap_weights(slopes, variances, tau=self._config.tau)
        floor = self._config.floor
        return np.asarray(floor / len(self.names) + (1 - floor) * weights.numpy())

    def note(self, task: int, seen: Seen) -> None:
        """See ByTask."""
        self._rewards[task] += seen.rewards

    def close_step(self) -> None:
        """See ByTask."""
        decay = self._config.decay
        for task, rewards in enumerate(self._rewards):
            if not rewards:
                continue
            now, mean = fmean(rewards), self._means[task]
            if mean is None:
                self._means[task] = now
                continue
            self._slopes[task] = slope = (1 - decay) * (now - mean)
            self._means[task] = mean + slope
            self._variances[task] = decay * (self._variances[task] + slope * (now - mean))
        self._rewards = [[] for _ in self.names]

    def state_dict(self) -> dict[str, Any]:
        """Moving means, their slopes and variances."""
        moments = {"slopes": list(self._slopes), "variances": list(self._variances)}
        return {**super().state_dict(), "means": list(self._means), **moments}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        super().load_state_dict(state)
        self._means, self._slopes = list(state["means"]), list(state["slopes"])
        self._variances = list(state["variances"])


class Curriculum(ByTask):
    """Some tasks first; their share moves to the data's in a straight line."""

    def __init__(self, config: CurriculumConfig, labels: Sequence[str], seed: int) -> None:
        chosen = ["first" if label in config.tasks else "then" for label in labels]
        super().__init__(chosen, seed)
        self._config = config
        self._natural = chosen.count("first") / len(chosen)
        self._step = 0

    @property
    def share(self) -> float:
        """Share of the draws for the first tasks."""
        done = min(1.0, self._step / self._config.until_step)
        return self._config.first_share + done * (self._natural - self._config.first_share)

    def weights(self) -> Vector:
        """See ByTask."""
        return np.array([self.share, 1 - self.share])

    def close_step(self) -> None:
        """See ByTask."""
        self._step += 1

    def state_dict(self) -> dict[str, Any]:
        """Steps made."""
        return {**super().state_dict(), "step": self._step}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        super().load_state_dict(state)
        self._step = int(state["step"])
