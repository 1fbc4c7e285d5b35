"""Compares two verifiers on the same items of a journal. Pure.

A journal holds no ranges, so verdicts are compared by name and rewards as numbers. An item without
a judgement of both is counted apart: a fault is no disagreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from assay.viewer.journals.reader import Record

_EQUAL = 1e-9


@dataclass(slots=True)
class VerifierComparison:
    """The pairs so far.

    Attributes:
        first: name of one verifier.
        second: name of the other.
        show: how many differing pairs are kept as examples.
        verdicts: items by the verdicts of both.
        faults: of each, by reason.
        faulted: items without a judgement of both.
        rewards: sums of rewards of each, over items that both judged.
        differ: items that both judged with another reward.
        examples: the first of those.
    """

    first: str
    second: str
    show: int = 5
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: tuple[Counter[str], Counter[str]] = field(
        default_factory=lambda: (Counter(), Counter())
    )
    faulted: int = 0
    rewards: list[float] = field(default_factory=lambda: [0.0, 0.0])
    differ: int = 0
    examples: list[tuple[Record, Record]] = field(default_factory=list)

    def add(self, pairs: Iterable[tuple[Record, Record]]) -> VerifierComparison:
        """Counts pairs; returns itself."""
        for pair in pairs:
            for record, faults in zip(pair, self.faults, strict=True):
                if record["fault"] is not None:
                    faults[record["fault"]] += 1
            if any(record["fault"] is not None for record in pair):
                self.faulted += 1
                continue
            first, second = pair
            self.verdicts[first["verdict"], second["verdict"]] += 1
            self.rewards[0] += first["reward"]
            self.rewards[1] += second["reward"]
            if abs(first["reward"] - second["reward"]) > _EQUAL:
                self.differ += 1
                if len(self.examples) < self.show:
                    self.examples.append(pair)
        return self

    @property
    def judged(self) -> int:
        """Items that both judged."""
        return self.verdicts.total()

    @property
    def same_reward(self) -> int:
        """Items that both judged with the same reward."""
        return self.judged - self.differ
