"""Batches by tokens: C3PO of Ring-lite (arXiv 2506.14731), after its abstract.

Responses are taken whole, in the order of their draws, until the next does not fit. The rest opens
the next step, in place of so many new prompts: each response trains once, long ones as often as
short ones, and the sum of a step's gradients is over nearly as many tokens as any other's.

Differences:

1. The paper draws responses at random from what was generated, and drops the others. [derivation]
2. Advantages are those of the whole group, in whichever step a response trains.
3. A waiting response's ratio starts from its sampler's log-probabilities, as in every stale group.
4. A response without a judgement takes no part. A group that another method replaced is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.trainer.algos.selection import within_budget
from assay.trainer.core.hooks import Hooks
from assay.trainer.rollouts.keepers import Keeper, Plain, Read
from assay.trainer.rollouts.types import Known, KnownGroup, Place, place


class Budgeting(Hooks):
    """A step trains on a number of tokens (C3PO, arXiv 2506.14731)."""

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks."""
        return {"keepers": (TokenBudget(self.config.method.token_budget.tokens),)}


class TokenBudget(Keeper):
    """The responses that wait, in their groups."""

    name = "token_budget"

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._waiting: list[KnownGroup] = []
        self._done: frozenset[Place] = frozenset()
        self._now: tuple[Known, ...] = ()
        self._later: tuple[Known, ...] = ()

    def due(self) -> list[KnownGroup]:
        """Groups of which something waits."""
        return list(self._waiting)

    def left_out(self, groups: Sequence[KnownGroup]) -> frozenset[Place]:
        """What has trained, and what is beyond the budget."""
        open_ = [
            one
            for group in groups
            for one in group
            if one.result.judgement is not None and place(one) not in self._done
        ]
        count = within_budget([one.length for one in open_], self._tokens)
        self._now, self._later = tuple(open_[:count]), tuple(open_[count:])
        return self._done | {place(one) for one in self._later}

    def metrics(self, replaced: int) -> dict[str, float]:
        """How full the step is, and what waits."""
        del replaced
        used = sum(one.length for one in self._now)
        return {"budget_fill": used / self._tokens, "budget_waiting": float(len(self._later))}

    def keep(self, groups: Sequence[KnownGroup]) -> None:
        """Stores the groups of what was left out."""
        later = {place(one) for one in self._later}
        self._waiting = [group for group in groups if any(place(one) in later for one in group)]
        here = {place(one) for group in self._waiting for one in group}
        self._done = frozenset(here & (self._done | {place(one) for one in self._now}))

    def state_dict(self, plain: Plain) -> dict[str, Any]:
        """See Keeper."""
        return {"waiting": plain(self._waiting), "done": sorted(self._done)}

    def load_state_dict(self, state: Mapping[str, Any], read: Read) -> None:
        """See Keeper."""
        self._waiting = read(state["waiting"])
        self._done = frozenset((number, index) for number, index in state["done"])
