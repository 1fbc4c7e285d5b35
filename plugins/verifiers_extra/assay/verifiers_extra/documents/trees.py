"""The edit distance of ordered trees, by keyroots, with a bound on its work.

Zhang and Shasha, Simple fast algorithms for the editing distance between trees and related
problems, SIAM Journal on Computing 18(6), 1989. Inserting and deleting cost 1, renaming 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from assay.reward_server.verifiers.text.distances import edit_distance


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node: what kind of thing it is, what it says, and its children in order."""

    kind: Hashable
    text: str = ""
    children: list[TreeNode] = field(default_factory=list)


class OrderedTree:
    """A tree in postorder.

    Attributes:
        nodes: in postorder, the root last.
        leftmost: of each node, the place of its leftmost leaf.
        keyroots: the root, and the nodes that have a sibling to their left; ascending.
        weight: the sum of the keyroots' sizes; two trees' distance takes the product of weights.
    """

    def __init__(self, root: TreeNode) -> None:
        self.nodes: list[TreeNode] = []
        self.leftmost: list[int] = []
        waiting: list[tuple[TreeNode, int]] = [(root, -1)]
        while waiting:  # a stack in place of recursion: depth is the response's
            node, begun = waiting.pop()
            if begun < 0 and node.children:
                waiting.append((node, len(self.nodes)))
                waiting.extend((child, -1) for child in reversed(node.children))
            else:
                self.leftmost.append(begun if begun >= 0 else len(self.nodes))
                self.nodes.append(node)
        last = {leaf: place for place, leaf in enumerate(self.leftmost)}
        self.keyroots = sorted(last.values())
        self.weight = sum(place - self.leftmost[place] + 1 for place in self.keyroots)

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)


def tree_distance(
    left: OrderedTree, right: OrderedTree, rename: Callable[[TreeNode, TreeNode], float]
) -> float:
    """The least cost of insertions, deletions and renamings that turn one tree into the other.

    Args:
        left: a tree.
        right: another one; work and memory grow with the product of the weights.
        rename: the cost of making one node the other, 0 to 1.
    """
    costs = [[rename(one, other) for other in right.nodes] for one in left.nodes]
    found = [[0.0] * len(right) for _ in left.nodes]
    for root in left.keyroots:
        for other in right.keyroots:
            _forests((left.leftmost, right.leftmost), (root, other), costs, found)
    return found[-1][-1]


def _forests(
    leftmost: tuple[Sequence[int], Sequence[int]],
    roots: tuple[int, int],
    costs: Sequence[Sequence[float]],
    found: Sequence[list[float]],
) -> None:
    """Fills in the distances of the subtrees on the leftmost paths of two keyroots."""
    (left, right), (root, other) = leftmost, roots
    start, begin = left[root], right[other]
    width = other - begin + 1
    rows = [[float(column) for column in range(width + 1)]]
    for place in range(start, root + 1):
        above = rows[-1]
        row = [above[0] + 1.0]
        is_path, cost, trees = left[place] == start, costs[place], found[place]
        before = rows[left[place] - start]
        for column in range(begin, other + 1):
            at = column - begin
            leaf = right[column]
            least = min(above[at + 1], row[at]) + 1.0
            if is_path and leaf == begin:
                least = min(least, above[at] + cost[column])
                trees[column] = least
            else:
                least = min(least, before[leaf - begin] + trees[column])
            row.append(least)
        rows.append(row)


def text_cost(left: str, right: str) -> float:
    """The share of characters that differ: edit distance over the longer length, 0 to 1."""
    if left == right:
        return 0.0
    return edit_distance(left, right) / max(len(left), len(right))
