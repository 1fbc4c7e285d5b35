"""Which sequences go into the next forward pass.

Of sequences that begin alike one goes first, and the others go on from what it leaves in the prefix
tree, so each common beginning is computed once. A batch takes sequences of similar length, for
little padding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.genrm.engines.worker.jobs import Sequence
from assay.genrm.engines.worker.prefixes import PrefixMatch, PrefixTree

SHARED_TOKENS = 16
"""Shorter common beginnings are not worth a pass of their own."""
PLANNED = 4
"""Passes' worth of waiting sequences that are looked at."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Of one forward pass.

    Attributes:
        tokens: rows times the longest row, known tokens included.
        items: rows.
        waste: greatest share of padding,
        free: except in a pass of no more tokens than this.
    """

    tokens: int
    items: int
    waste: float = 0.2
    free: int = 256


@dataclass(frozen=True, slots=True)
class Planned:
    """A sequence in a batch, and what is known of it."""

    sequence: Sequence
    match: PrefixMatch

    @property
    def added(self) -> int:
        """Tokens to compute."""
        return len(self.sequence.ids) - self.match.length


def plan(
    waiting: list[Sequence],
    tree: PrefixTree | None,
    limits: BatchLimits,
    admit: Callable[[Sequence], bool],
) -> list[Planned]:
    """The next batch.

    `waiting` is ordered, oldest first; without a tree nothing can be kept. `admit` says whether
    there is room for what follows the reading, sequence by sequence.
    """
    leaders: list[Planned] = []
    taken: set[tuple[object, ...]] = set()
    for sequence in waiting[: PLANNED * limits.items]:
        match, adapter = PrefixMatch(), sequence.job.adapter
        if tree is not None:
            match = tree.match(sequence.ids, sequence.reads[0], adapter)
        ahead = sequence.ids[match.length : sequence.reads[0]][:SHARED_TOKENS]
        if tree is not None and len(ahead) == SHARED_TOKENS:
            if (adapter, match.key, ahead) in taken:
                continue
            taken.add((adapter, match.key, ahead))
        if admit(sequence):
            leaders.append(Planned(sequence, match))
    return _batch_of_oldest(leaders, limits)


def _batch_of_oldest(leaders: list[Planned], limits: BatchLimits) -> list[Planned]:
    if not leaders:
        return []
    oldest = leaders[0]
    ordered = sorted(leaders, key=lambda planned: -planned.added)
    at = ordered.index(oldest)
    batch = [oldest]
    # First what is a little shorter, then what is a little longer, than the oldest.
    for planned in [*ordered[at + 1 :], *reversed(ordered[:at])]:
        if not _fits([*batch, planned], limits):
            continue
        batch.append(planned)
        if len(batch) == limits.items:
            break
    return batch


def _fits(batch: list[Planned], limits: BatchLimits) -> bool:
    widest = max(planned.added for planned in batch)
    known = max(planned.match.length for planned in batch)
    if len(batch) * (known + widest) > limits.tokens:
        return False
    padded = len(batch) * widest
    waste = 1 - sum(planned.added for planned in batch) / padded
    return padded <= limits.free or waste <= limits.waste
