"""The batch that every trainer gets, and what is compared of its step. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LabRow:
    """A response whose reward is known.

    Attributes:
        name: of its group and its place, such as "a3".
        response: what the policy said; the server knows the row by it.
        reward: what the server judges, when it does.
    """

    name: str
    response: str
    reward: float

    @property
    def group(self) -> str:
        """Its prompt."""
        return self.name[0]

    @property
    def prompt(self) -> str:
        """What the policy was asked."""
        return f"ask {self.group}:"


Groups = Sequence[Sequence[LabRow]]
"""A batch: the rows of each prompt."""


def _group(name: str, rewards: Sequence[float]) -> tuple[LabRow, ...]:
    numbered = enumerate(rewards, start=1)
    return tuple(LabRow(f"{name}{n}", f"{name}{n}" + " so" * n, reward) for n, reward in numbered)


BATCH: Groups = (_group("a", (1.0, 0.0, 0.75, 0.25)), _group("b", (0.0, 1.0, 0.5, 1.0)))
"""No reward of a group is its mean, and no two sums are equal: a changed row is seen."""
ROWS = tuple(row for group in BATCH for row in group)


def kept(names: frozenset[str]) -> Groups:
    """The batch of these rows only; a group without rows is not there."""
    groups = [tuple(row for row in group if row.name in names) for group in BATCH]
    return [group for group in groups if group]


def rewarded(names: frozenset[str], reward: float) -> Groups:
    """The batch in which these rows have another reward."""
    return [
        [LabRow(r.name, r.response, reward) if r.name in names else r for r in group]
        for group in BATCH
    ]


def coefficients(advantages: Mapping[str, float], tokens: Mapping[str, int]) -> list[float]:
    """How much each row moves a step whose loss is a mean over tokens, in the order of ROWS.

    Args:
        advantages: of rows in the batch, by name.
        tokens: how many tokens of a row the loss counts; 0 for a masked one.
    """
    whole = sum(tokens.values()) or 1
    return [advantages.get(r.name, 0.0) * tokens.get(r.name, 0) / whole for r in ROWS]


def tokens_of(rows: Sequence[LabRow]) -> dict[str, int]:
    """A token a character, which is what a row counts where a trainer does not tokenize."""
    return {row.name: len(row.response) for row in rows}


class Contestant(Protocol):
    """A trainer with our adapter for it.

    Attributes:
        title: as the documentation names it, with the policy for faults.
        compared: "gradient", of the trainer's own loss and a tiny model; or "advantages", those
            that its own functions compute, times the tokens that its mask leaves.
        default: our adapter's policy is the one that it has by default.
        read: what of the way from fault to step was read and not run; empty for nothing.
    """

    title: str
    compared: str
    default: bool
    read: str

    def version(self) -> str:
        """Imports the trainer, and says which one it is.

        Raises:
            ImportError: it cannot be imported here.
        """
        ...

    def step(self, groups: Groups, target: str) -> Sequence[float]:
        """What moves the policy in one step on these groups, whose rewards are asked at `target`.

        Raises:
            Exception: the trainer's; its step does not take place.
        """
        ...
