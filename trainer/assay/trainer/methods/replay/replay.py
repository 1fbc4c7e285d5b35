"""What taught something comes again: VL-Rethinker's groups, or ARPO's successes.

VL-Rethinker's selective sample replay (SSR), `mode = "groups"`: a group whose rewards are all alike
has no advantage, and leaves its place in the batch to one of an earlier step whose rewards are not,
drawn with a chance in proportion to its mean |A| ^ alpha.

ARPO (arXiv 2505.16282), `mode = "success"`: a group in which nobody was right takes one earlier
success of its own problem among its responses, if there is one, and has an advantage for it.

Differences:

1. VL-Rethinker: whole groups are replayed, not single samples, so that an advantage stays one
   within a group. |A| is that of the judged rewards, before any shaping. A fault has none.
2. ARPO: of its paper the abstract was at hand, and a version of its code. The latest success of a
   problem is kept, in the prompt that it was shown; it takes the place of a response without a
   judgement where there is one, else of one that the seed chooses. [derivation]
3. What is replayed was answered by an earlier policy: its ratio starts from the log-probabilities
   that its sampler told, as that of every stale group does.
4. What is in the step already, as its remainder is (RoRecomp), is not replayed beside itself.
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
    """Groups of earlier steps come again, or their successes."""

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks."""
        return {"keepers": (make_replay(self.config.method.replay, self.config.run.seed),)}


def make_replay(config: ReplayConfig, seed: int) -> Keeper:
    """What the settings ask for."""
    return Replay(config, seed) if config.mode == "groups" else ReplayedSuccesses(config, seed)


class Replay(Keeper):
    """The latest groups with an advantage."""

    name = "replay"

    def __init__(self, config: ReplayConfig, seed: int) -> None:
        self._config = config
        self._seed = seed
        self._groups: list[KnownGroup] = []

    def mix(self, groups: Sequence[KnownGroup], first: int) -> list[KnownGroup]:
        """A step's groups, those without advantage replaced as far as there is something to replay.

        Pure: see `keep`.

        Args:
            groups: of the step, in the order of their draws.
            first: the number of a draw that no other step has, which fixes what is drawn.
        """
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
        """How many groups came again."""
        return {"replayed_groups": float(replaced)}

    def keep(self, groups: Sequence[KnownGroup]) -> None:
        """Takes in a step's own groups, each once; the oldest make room."""
        size = self._config.groups
        known = {number_of(group) for group in self._groups}
        new = [g for g in groups if size_of(g) > 0 and number_of(g) not in known]
        self._groups = [*self._groups, *new][-size:] if size else []

    def state_dict(self, plain: Plain) -> list[dict[str, Any]]:
        """See Keeper: the groups."""
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
        """See Keeper: a group in which nobody was right takes an earlier success of its problem."""
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
        """In how many groups a success came again."""
        return {"replayed_groups": float(replaced)}

    def keep(self, groups: Sequence[KnownGroup]) -> None:
        """Takes in the successes of a step's own groups; those of the oldest problems make room."""
        for group in groups:
            for rollout in group:
                judgement = rollout.result.judgement
                if judgement is not None and judgement.verdict == CORRECT:
                    self._latest.pop(_asked(rollout), None)  # the newest stand last
                    self._latest[_asked(rollout)] = rollout
        for oldest in list(self._latest)[: -self._most]:
            del self._latest[oldest]

    def state_dict(self, plain: Plain) -> list[dict[str, Any]]:
        """See Keeper: the successes, each as a group."""
        return plain([(rollout,) for rollout in self._latest.values()])

    def load_state_dict(self, state: Sequence[Mapping[str, Any]], read: Read) -> None:
        """See Keeper."""
        self._latest = {_asked(rollout): rollout for (rollout,) in read(state)}


def _asked(rollout: Known) -> tuple[str, tuple[int, ...]]:
    """The problem, and the prompt that it was shown in."""
    return rollout.request.draw.problem.id, rollout.request.draw.prompt_ids
