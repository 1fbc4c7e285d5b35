"""Which responses train now and which later: RoRecomp (arXiv 2509.25958), after its abstract.

A step's judged responses are told apart within each group: the shortest of the correct ones and the
longest of the others are the *priority* part, which trains at once; the *remainder* goes to a
buffer, and trains when its turn comes (*compensation*). Rewards stay as they are: what is correct
and short is trained on sooner and more often than what is correct and long, and the other way round
for what is not correct.

Only the abstract was at hand; from there on it is ours:

1. The choice is made within a group, so that a response is long or short for its own problem; of
   both kinds the same share is taken, rounded up, equal lengths in the order of the samples.
2. Both parts share a step's batch: compensation groups take the places of so many fresh prompts,
   which then are not drawn. How many falls, or rises, along half a cosine.
3. Advantages are those of the whole group, whichever part of it trains. Every response trains once
   at most.
4. What waits longest comes first. The share is below one half, so that remainders come up, which
   the buffer then forgets: with one half and more, all of them would train, and nothing would be
   preferred.
5. A group whose judged rewards are all alike has no remainder to wait for.
6. A remainder was answered by an earlier policy: its ratio starts from its sampler's
   log-probabilities, as that of every stale group does.
7. A response without a judgement is in neither part, and never trains.
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
    """The remainders that wait."""

    name = "recomposition"

    def __init__(self, config: RecompositionConfig, prompts_per_step: int) -> None:
        self._config = config
        self._prompts_per_step = prompts_per_step
        self._waiting: list[KnownGroup] = []
        self._steps = 0

    def due(self) -> list[KnownGroup]:
        """The groups of the next batch whose remainders train in it. Changes nothing."""
        count = math.floor(share_at(self._steps, self._config) * self._prompts_per_step + 0.5)
        return self._waiting[:count]

    def left_out(self, groups: Sequence[KnownGroup]) -> frozenset[Place]:
        """What does not train: of groups that are due the priority part, else the remainder."""
        due = {id(group) for group in self.due()}
        found: set[Place] = set()
        for group in groups:
            priority = priority_of(group, self._config.share)
            names = {place(rollout) for rollout in group}
            found |= priority if id(group) in due else names - priority
        return frozenset(found)

    def metrics(self, replaced: int) -> dict[str, float]:
        """How many groups of the step wait no longer."""
        del replaced
        return {"compensation_groups": float(len(self.due()))}

    def keep(self, groups: Sequence[KnownGroup]) -> None:
        """Ends a step: what was due has trained, and the batch's other remainders wait."""
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
        """See Keeper: what waits."""
        return {"steps": self._steps, "waiting": plain(self._waiting)}

    def load_state_dict(self, state: Mapping[str, Any], read: Read) -> None:
        """See Keeper."""
        self._steps = int(state["steps"])
        self._waiting = read(state["waiting"])


def priority_of(group: KnownGroup, share: float) -> set[Place]:
    """The shortest of the correct responses and the longest of the others. Pure.

    Args:
        group: all samples of a draw; those without a judgement are neither.
        share: of each kind, in (0, 1]; rounded up.
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
    """Compensation's share of a batch at a step, from 0: half a cosine between two values. Pure."""
    gone = min(1.0, step / config.steps)
    return config.last + (config.first - config.last) * (1 + math.cos(math.pi * gone)) / 2
