"""The tree of a value-guided search: VM-MCTS of ReST-RL (arXiv 2508.19576). Pure.

A state is the tokens of a response up to the end of a line. A round goes down by `uct` to a state
that was not gone on from, has responses written from there, and values the first line of each.

After the authors' code (THUDM/ReST-RL, algorithms/MCTS, with a process reward model):

1. Of states with equal numbers the first is taken; there chance chooses.
2. A response without a further line ends, as there. A state that the limit of tokens ends does too.
3. The answer is the written response whose value is highest, of equal ones the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from assay.trainer.methods.search.settings import SearchConfig

Tokens = tuple[int, ...]


def uct(value: float, visits: int, parent_visits: int, *, exploration: float, eps: float) -> float:
    """V + c sqrt((1 + ln N) / (eps + n)): ReST-RL (arXiv 2508.19576, code).

    `visits` n are a state's, `parent_visits` N, at least 1, those of the one before it.
    """
    return value + exploration * math.sqrt((1 + math.log(parent_visits)) / (eps + visits))


@dataclass(slots=True, eq=False)
class SearchNode:
    """A state.

    Attributes:
        ended: nothing can be written behind it.
        children: next states by their tokens, the visible ones first come.
        visible: those that may be gone on from; None where nothing was written from it yet.
    """

    ids: Tokens
    parent: SearchNode | None = None
    ended: bool = False
    visits: int = 0
    total: float = 0.0
    children: dict[Tokens, SearchNode] = field(default_factory=dict)
    visible: list[SearchNode] | None = None

    @property
    def value(self) -> float:
        """Mean of what was seen at it and below; 0 without any."""
        return self.total / self.visits if self.visits else 0.0

    def see(self, visits: int, total: float) -> None:
        """Counts at this state and all before it."""
        node: SearchNode | None = self
        while node is not None:
            node.visits += visits
            node.total += total
            node = node.parent


class SearchTree:
    """The search for one response."""

    def __init__(self, config: SearchConfig) -> None:
        self._config = config
        self.root = SearchNode(())
        self.best: tuple[float, Tokens] | None = None

    def select(self) -> SearchNode:
        """The state to go on from; or one that ended."""
        node = self.root
        while node.visible is not None:
            visits = max(1, node.visits)
            node = max(node.visible, key=lambda child: self._score(child, visits))
        return node

    def revisit(self, node: SearchNode) -> None:
        """Counts a state that ended once more."""
        node.see(1, node.value)

    def expand(
        self,
        node: SearchNode,
        written: Sequence[tuple[Tokens, Tokens, bool]],
        values: Sequence[float],
        answers: Sequence[float],
    ) -> None:
        """Adds what was written from a state.

        Args:
            node: of `select`, not ended.
            written: of each response its next state, the whole, and whether the state ends it.
            values: of the next states.
            answers: of the whole responses.
        """
        for (ids, whole, ended), value, answer in zip(written, values, answers, strict=True):
            child = node.children.setdefault(ids, SearchNode(ids, node, ended))
            child.visits += 1
            child.total += value
            if self.best is None or answer > self.best[0]:
                self.best = answer, whole
        below = sorted(node.children.values(), key=lambda child: -child.value)
        node.visible = below[: self._config.decisions]
        node.see(sum(c.visits for c in below), math.fsum(c.total for c in below))

    def _score(self, child: SearchNode, parent_visits: int) -> float:
        chosen = self._config
        return uct(
            child.value,
            child.visits,
            parent_visits,
            exploration=chosen.exploration,
            eps=chosen.eps,
        )
