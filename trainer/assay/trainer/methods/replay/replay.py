"""Replay: VL-Rethinker's groups, or ARPO's successes.

VL-Rethinker's selective sample replay (SSR), `mode = "groups"`: a group with equal rewards has no
advantage, and is replaced by one of an earlier step whose rewards differ, drawn with a probability
proportional to its mean |A| ^ alpha.

ARPO (arXiv 2505.16282), `mode = "success"`: a group in which nobody was right takes one earlier
success of its problem, if there is one.

Differences:

1. VL-Rethinker: whole groups are replayed, so that advantages stay relative to a group. |A| is that
   of the judged rewards, before shaping.
2. ARPO: its abstract was at hand, and a version of its code. The latest success of a problem is
   kept, with its prompt; it replaces a response without a judgement, else one that the seed
   chooses. [derivation]
3. A replayed response's ratio starts from its sampler's log-probabilities, as in every stale group.
4. A group that is already in the step, as a remainder (RoRecomp), is not replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.replay.settings import ReplayConfig
from assay.trainer.rollouts.dynamic import CORRECT, kind_of
from assay.trainer.rollouts.keepers import Keeper, Plain, Read, number_of, size_of
from assay.trainer.rollouts.types import Known, KnownGroup
from assay.trainer.selection.orders import dice


class Replaying(Hooks):
    """Replays groups of earlier steps, or their successes."""

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks."""
        return {"keepers": (make_replay(self.config.method.replay, self.config.run.seed),)}


def make_replay(config: ReplayConfig, seed: int) -> Keeper:
    """The keeper of the settings."""
    return Replay(config, seed) if config.mode == "groups" else ReplayedSuccesses(config, seed)


class Replay(Keeper):
    """The latest groups with an advantage."""

    name = "replay"

    def __init__(self, config: ReplayConfig, seed: int) -> None:
        self._config = config
        self._seed = seed
        self._groups: list[KnownGroup] = []

    def mix(self, groups: Sequence[KnownGroup], first: int) -> list[KnownGroup]:
        """See Keeper: replaces groups without advantage, as far as there are others."""
        here = {number_of(group) for group in groups}
        others = [group for group in self._groups if number_of(group) not in here]
        if not others:
            return list(groups)
        weights = np.array([size_of(g) for g in others]) ** self._config.alpha
        silent = [n for n, group in enumerate(groups) if size_of(group) == 0]
        roll = dice(self._seed, first)
        count = min(len(silent), len(others))
        drawn = roll.choice(len(weights), count, replace=False, p=weights / weights.sum())
        mixed = list(groups)
        for place, which in zip(silent, drawn.tolist(), strict=False):
            mixed[place] = others[which]
        return mixed

    def metrics(self, replaced: int) -> dict[str, float]:
        """How many groups were replayed."""
        return {"replayed_groups": float(replaced)}

    def keep(self, groups: Sequence[KnownGroup]) -> None:
        """Stores a step's own groups, each once; the oldest make room."""
        size = self._config.groups
        known = {number_of(group) for group in self._groups}
        new = [g for g in groups if size_of(g) > 0 and number_of(g) not in known]
        self._groups = [*self._groups, *new][-size:] if size else []

    def state_dict(self, plain: Plain) -> list[dict[str, Any]]:
        """See Keeper."""
        return plain(self._groups)

    def load_state_dict(self, state: Sequence[Mapping[str, Any]], read: Read) -> None:
        """See Keeper."""
        self._groups = read(state)


class ReplayedSuccesses(Keeper):
    """The latest success of each of the latest problems that had one."""

    name = "replay"

    def __init__(self, config: ReplayConfig, seed: int) -> None:
        self._most = config.groups
        self._seed = seed
        self._latest: dict[tuple[str, tuple[int, ...]], Known] = {}

    def mix(self, groups: Sequence[KnownGroup], first: int) -> list[KnownGroup]:
        """See Keeper: a group in which nobody was right takes a success of its problem."""
        roll = dice(self._seed, first)
        mixed = list(groups)
        for place, group in enumerate(groups):
            success = self._latest.get(_asked(group[0]))
            if success is None or kind_of(group) != "all_wrong":
                continue
            faults = [n for n, one in enumerate(group) if one.result.judgement is None]
            out = faults[0] if faults else int(roll.integers(len(group)))
            mixed[place] = (*group[:out], success, *group[out + 1 :])
        return mixed

    def metrics(self, replaced: int) -> dict[str, float]:
        """How many groups took a success."""
        return {"replayed_groups": float(replaced)}

    def keep(self, groups: Sequence[KnownGroup]) -> None:
        """Stores the successes of a step's own groups; the oldest problems make room."""
        for group in groups:
            for rollout in group:
                judgement = rollout.result.judgement
                if judgement is not None and judgement.verdict == CORRECT:
                    self._latest.pop(_asked(rollout), None)  # the newest stand last
                    self._latest[_asked(rollout)] = rollout
        for oldest in list(self._latest)[: -self._most]:
            del self._latest[oldest]

    def state_dict(self, plain: Plain) -> list[dict[str, Any]]:
        """See Keeper: each success is a group."""
        return plain([(rollout,) for rollout in self._latest.values()])

    def load_state_dict(self, state: Sequence[Mapping[str, Any]], read: Read) -> None:
        """See Keeper."""
        self._latest = {_asked(rollout): rollout for (rollout,) in read(state)}


def _asked(rollout: Known) -> tuple[str, tuple[int, ...]]:
    """The problem, and the prompt's tokens."""
    return rollout.request.draw.problem.id, rollout.request.draw.prompt_ids
