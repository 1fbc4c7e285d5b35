"""Keys and values of token sequences as a radix tree (RadixAttention, SGLang, arXiv 2312.07104).

A path from the root is a sequence, and a node holds a segment of it. Each adapter has a root of its
own, because keys and values are those of its weights; the budget is one. Least recently used leaves
are dropped first. Unlike the paper's pages, segments are copied into the rows of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

Ids = tuple[int, ...]


class Cacheable(Protocol):
    """What a node keeps for its tokens."""

    def part(self, start: int, end: int) -> Cacheable:
        """A copy of some of its tokens."""


@dataclass(slots=True, eq=False)
class PrefixNode:
    """Tokens behind those of its parent, or of its adapter's root."""

    ids: Ids
    kept: Cacheable
    parent: PrefixNode | None
    adapter: str = ""
    children: dict[int, PrefixNode] = field(default_factory=dict)
    used: int = 0


@dataclass(frozen=True, slots=True)
class PrefixMatch:
    """The known beginning of a sequence: each node, how many of its tokens, and their sum."""

    path: tuple[tuple[PrefixNode, int], ...] = ()
    length: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """Equal for sequences that are known equally far on the same path."""
        return (id(self.path[-1][0]) if self.path else 0, self.length)


class PrefixTree:
    """The tree, and its budget in tokens."""

    def __init__(self, budget: int) -> None:
        """`budget` is in tokens; with 0 it keeps only what waiting sequences need."""
        self._budget = budget
        self._roots: dict[str, dict[int, PrefixNode]] = {}
        self._clock = 0
        self.tokens = 0

    def match(self, ids: Ids, limit: int, adapter: str = "") -> PrefixMatch:
        """The longest known beginning of a sequence, at most `limit` tokens."""
        self._clock += 1
        path: list[tuple[PrefixNode, int]] = []
        length = 0
        children = self._roots.get(adapter, {})
        while length < limit and (node := children.get(ids[length])) is not None:
            same = common(node.ids, ids[length:limit])
            if not same:
                break
            node.used = self._clock
            path.append((node, same))
            length += same
            if same < len(node.ids):
                break
            children = node.children
        return PrefixMatch(tuple(path), length)

    def store(self, ids: Ids, cut: Callable[[int, int], Cacheable], adapter: str = "") -> None:
        """Remembers a sequence; `cut(start, end)` gives what is kept of those tokens."""
        if not ids:
            return
        match = self.match(ids, len(ids), adapter)
        if match.length == len(ids):
            return
        parent: PrefixNode | None = None
        if match.path:
            parent, same = match.path[-1]
            if same < len(parent.ids):
                parent = self._split(parent, same)
        kept = cut(match.length, len(ids))
        node = PrefixNode(ids[match.length :], kept, parent, adapter, used=self._clock)
        self._siblings(node)[node.ids[0]] = node
        self.tokens += len(node.ids)

    def shrink(self, waiting: Iterable[tuple[Ids, int, str]], extra: int) -> None:
        """Forgets down to the budget, which may be exceeded by `extra` tokens of waiting sequences.

        `waiting` are sequences that will be looked up, up to where, and by which adapter.
        """
        if self.tokens <= self._budget:
            return
        needed = {id(node) for sought in waiting for node, _ in self.match(*sought).path}
        while self.tokens > self._budget:
            leaves = [node for node in self._walk() if not node.children]
            spare = [node for node in leaves if id(node) not in needed]
            if not spare and self.tokens <= self._budget + extra:
                return
            self._drop_oldest(spare or leaves)

    def clear(self) -> None:
        """Forgets everything."""
        self._roots.clear()
        self.tokens = 0

    def forget(self, adapter: str) -> None:
        """Forgets what is known of an adapter."""
        nodes = list(self._roots.pop(adapter, {}).values())
        while nodes:
            node = nodes.pop()
            self.tokens -= len(node.ids)
            nodes.extend(node.children.values())

    def _drop_oldest(self, leaves: list[PrefixNode]) -> None:
        for node in sorted(leaves, key=lambda leaf: leaf.used):
            del self._siblings(node)[node.ids[0]]
            self.tokens -= len(node.ids)
            if self.tokens <= self._budget:
                return

    def _split(self, node: PrefixNode, at: int) -> PrefixNode:
        kept = node.kept.part(0, at)
        upper = PrefixNode(node.ids[:at], kept, node.parent, node.adapter, used=node.used)
        self._siblings(upper)[upper.ids[0]] = upper
        node.kept = node.kept.part(at, len(node.ids))
        node.ids = node.ids[at:]
        node.parent = upper
        upper.children[node.ids[0]] = node
        return upper

    def _siblings(self, node: PrefixNode) -> dict[int, PrefixNode]:
        return node.parent.children if node.parent else self._roots.setdefault(node.adapter, {})

    def _walk(self) -> Iterator[PrefixNode]:
        stack = [node for root in self._roots.values() for node in root.values()]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())


def common(one: Ids, other: Ids) -> int:
    """Length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # slices compare at the speed of C
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
