"""What the rules for one kind of expression ask of the matcher: to match the parts of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from assay.math.nodes import Node
from assay.math.policy import Policy
from assay.math.terms import Verdict


class PartMatcher(Protocol):
    """Matches parts of the reference (left, ours) with parts of the answer (right, theirs)."""

    @property
    def policy(self) -> Policy:
        """How forgiving it is."""

    def match(self, left: Node, right: Node) -> Verdict:
        """Whether a node of the answer equals a node of the reference."""

    def in_order(self, ours: Sequence[Node], theirs: Sequence[Node]) -> Verdict:
        """Item by item."""

    def any_order(self, ours: Sequence[Node], theirs: Sequence[Node]) -> Verdict:
        """As multisets."""

    def real_sets(self, left: Node, right: Node) -> Verdict | None:
        """As two sets of real numbers; None when one is no such set."""
