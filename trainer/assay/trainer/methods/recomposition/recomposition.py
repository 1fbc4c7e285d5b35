"""Which responses train now and which later: RoRecomp (arXiv 2509.25958), after its abstract.

In each group the shortest correct and the longest other responses are the *priority* part, which
trains at once; the *remainder* goes to a buffer and may train later (*compensation*). Rewards stay:
short correct and long incorrect responses train sooner and more often.

Only the abstract was at hand; the rest is ours:

1. The choice is made within a group, since length is relative to a problem; the same share of both
   kinds is taken, rounded up, equal lengths in the order of the samples.
2. Compensation groups replace fresh prompts in a step's batch, which are not drawn. Their number
   follows half a cosine.
3. Advantages are those of the whole group. Every response trains at most once.
4. The oldest come first. A share below one half makes remainders exceed the places, and the buffer
   forgets the surplus; from one half on everything would train.
5. A group with equal judged rewards has no remainder.
6. A remainder's ratio starts from its sampler's log-probabilities, as in every stale group.
7. A response without a judgement is in neither part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.recomposition.settings import RecompositionConfig
from assay.trainer.rollouts.keepers import Keeper, Plain, Read, size_of
from assay.trainer.rollouts.types import KnownGroup, Place, place


class Recomposing(Hooks):
    """Parts of groups wait for a later batch (RoRecomp, arXiv 2509.25958)."""

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks."""
        prompts = self.config.rollout.prompts_per_step
        return {"keepers": (Recomposition(self.config.method.recomposition, prompts),)}


class Recomposition(Keeper):
    """The waiting remainders."""

    name = "recomposition"

    def __init__(self, config: RecompositionConfig, prompts_per_step: int) -> None:
        self._config = config
        self._prompts_per_step = prompts_per_step
        self._waiting: list[KnownGroup] = []
        self._steps = 0

    def due(self) -> list[KnownGroup]:
        """The groups whose remainders train in the next batch. Changes nothing."""
        count = math.floor(share_at(self._steps, self._config) * self._prompts_per_step + 0.5)
        return self._waiting[:count]

    def left_out(self, groups: Sequence[KnownGroup]) -> frozenset[Place]:
        """The priority part of groups that are due, the remainder of the others."""
        due = {id(group) for group in self.due()}
        found: set[Place] = set()
        for group in groups:
            priority = priority_of(group, self._config.share)
            names = {place(rollout) for rollout in group}
            found |= priority if id(group) in due else names - priority
        return frozenset(found)

    def metrics(self, replaced: int) -> dict[str, float]:
        """How many groups of the step were due."""
        del replaced
        return {"compensation_groups": float(len(self.due()))}

    def keep(self, groups: Sequence[KnownGroup]) -> None:
        """Ends a step: drops what was due, and stores the batch's other remainders."""
        due = self.due()
        come = {id(group) for group in due}
        fresh = [group for group in groups if id(group) not in come]
        waiting = [*self._waiting[len(due) :], *filter(self._waits, fresh)]
        self._waiting = waiting[-self._config.groups :]
        self._steps += 1

    def _waits(self, group: KnownGroup) -> bool:
        judged = {place(one) for one in group if one.result.judgement is not None}
        return size_of(group) > 0 and bool(judged - priority_of(group, self._config.share))

    def state_dict(self, plain: Plain) -> dict[str, Any]:
        """See Keeper."""
        return {"steps": self._steps, "waiting": plain(self._waiting)}

    def load_state_dict(self, state: Mapping[str, Any], read: Read) -> None:
        """See Keeper."""
        self._steps = int(state["steps"])
        self._waiting = read(state["waiting"])


def priority_of(group: KnownGroup, share: float) -> set[Place]:
    """The shortest of the correct responses and the longest of the others. Pure.

    `share` of each kind, in (0, 1], is rounded up; responses without a judgement are neither.
    """
    short: list[tuple[int, Place]] = []
    long: list[tuple[int, Place]] = []
    for rollout in group:
        judgement = rollout.result.judgement
        if judgement is not None and judgement.verdict == "correct":
            short.append((rollout.length, place(rollout)))
        elif judgement is not None:
            long.append((-rollout.length, place(rollout)))
    return {
        name
        for kind in (short, long)
        for _, name in sorted(kind)[: math.ceil(share * len(kind) - 1e-9)]
    }


def share_at(step: int, config: RecompositionConfig) -> float:
    """Compensation's share of a batch at a step, from 0: half a cosine. Pure."""
    gone = min(1.0, step / config.steps)
    return config.last + (config.first - config.last) * (1 + math.cos(math.pi * gone)) / 2
