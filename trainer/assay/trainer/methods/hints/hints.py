"""Hints where nothing was right: GHPO (arXiv 2507.10628).

A problem of which no judged response was correct comes again with the beginning of its solution in
the prompt: a first share of it, and if that does not help a larger one, and so on. What is given is
prompt, not response: no token of it is in any loss.

Differences:

1. It comes again at the beginning of the next step, with a policy that has learned meanwhile; the
   paper's code answers it again within the step. [derivation]
2. Shares are of the solution's words. The wording of the notice is ours.
3. Whether a problem is hard is asked without hints: what came of hinted draws is not told to the
   selector that chooses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from assay.trainer.data.problems import Problem
from assay.trainer.selection.types import Seen, Selector

NOTICE = "\n\nThe beginning of a correct solution is given here. Continue from it.\n\n"


class Hinted:
    """A Selector around another, whose places say how much of the solution is shown.

    Place p of n problems with hint level l is p + l * n; level 0 shows nothing.

    Args:
        inner: chooses the problems that come without a hint.
        solvable: whether a problem has a solution to show.
        levels: how many shares there are.
    """

    def __init__(self, inner: Selector, solvable: Sequence[bool], levels: int) -> None:
        self.inner = inner
        self._solvable = tuple(solvable)
        self._levels = levels
        self._plain = 0
        self._again: list[int] = []

    def order(self, first: int) -> Iterator[int]:
        """See Selector: what comes again, then what the other says."""
        del first
        return chain(tuple(self._again), self.inner.order(self._plain))

    def learn(self, seen: Sequence[Seen]) -> None:
        """See Selector; a group with fewer than two judgements says nothing."""
        count = len(self._solvable)
        plain = [one for one in seen if one.place < count]
        came = {one.place for one in seen if one.place >= count}
        waiting = [place for place in self._again if place not in came]
        for one in seen:
            level, place = divmod(one.place, count)
            wrong = len(one.rewards) >= 2 and not one.correct
            again = one.place + count if wrong else one.place
            if not wrong and (not level or len(one.rewards) >= 2):
                continue  # solved, or without a hint and unjudged
            if again // count <= self._levels and self._solvable[place] and again not in waiting:
                waiting.append(again)
        self._again = waiting
        self._plain += len(plain)
        self.inner.learn(plain)

    def estimate(self, place: int) -> float | None:
        """The other's; nothing is expected of a hinted problem."""
        return self.inner.estimate(place) if place < len(self._solvable) else None

    def state_dict(self) -> dict[str, Any]:
        """What comes again, and what the other learned."""
        return {
            "plain": self._plain, "again": list(self._again), "inner": self.inner.state_dict()
        }  # fmt: skip

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Selector."""
        self._plain, self._again = int(state["plain"]), list(state["again"])
        self.inner.load_state_dict(state["inner"])


def with_hint(problem: Problem, share: float) -> Problem:
    """The problem with so much of its solution, 0 to 1, at the end of its last message.

    At least one word; the spaces of the solution stay.
    """
    words = list(re.finditer(r"\S+", problem.solution))
    if not words:
        return problem
    end = words[max(1, math.floor(share * len(words) + 1e-9)) - 1].end()
    *before, (role, content) = problem.messages
    asked = (role, content + NOTICE + problem.solution[:end])
    return replace(problem, messages=(*before, asked))
