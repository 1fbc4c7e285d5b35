"""Whose step it is: N_g steps of the generator to N_v of the verifier (arXiv 2505.15034). Pure.

    verifier x warmup, (generator x N_g, verifier x N_v), ..., generator x the rest

1. The paper gives the numbers of steps; that a round begins with the generator, after a warm-up of
   the verifier, is our reading. [derivation]
2. The last turn is the generator's, since nobody would ask the verifier afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

Role = Literal["generator", "verifier"]


@dataclass(frozen=True, slots=True)
class State:
    """Steps that each role has made."""

    generator: int = 0
    verifier: int = 0

    def after(self, role: Role) -> State:
        """With one step more."""
        if role == "generator":
            return State(self.generator + 1, self.verifier)
        return State(self.generator, self.verifier + 1)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order of all steps.

    Attributes:
        steps: of the generator, at least 1.
        generator_steps: in a turn of the generator, at least 1.
        verifier_steps: in a turn of the verifier.
        warmup: steps of the verifier before the generator's first.
    """

    steps: int
    generator_steps: int
    verifier_steps: int
    warmup: int

    @property
    def verifier_total(self) -> int:
        """All steps of the verifier."""
        return self.warmup + (self.steps - 1) // self.generator_steps * self.verifier_steps

    def turns(self) -> Iterator[Role]:
        """The role of each step."""
        yield from repeat("verifier", self.warmup)
        for done in range(1, self.steps + 1):
            yield "generator"
            if done % self.generator_steps == 0 and done < self.steps:
                yield from repeat("verifier", self.verifier_steps)

    def states(self) -> Iterator[State]:
        """Before the first step, and after each."""
        state = State()
        yield state
        for role in self.turns():
            state = state.after(role)
            yield state

    def after(self, state: State) -> Iterator[Role]:
        """The turns that are left.

        Raises:
            ValueError: the order has no such state.
        """
        turns = self.turns()
        now = State()
        while now != state:
            role = next(turns, None)
            if role is None:
                raise ValueError(f"no order of {self} comes by {state}")
            now = now.after(role)
        return turns

    def latest(self, generator: Collection[int], verifier: Collection[int]) -> State:
        """The last state with checkpoints of both roles, given each one's; the start needs none."""
        found = State()
        for state in self.states():
            if (not state.generator or state.generator in generator) and (
                not state.verifier or state.verifier in verifier
            ):
                found = state
        return found


def schedule_of(config: Config) -> Schedule:
    """The order that the settings give."""
    together = config.method.cotraining
    return Schedule(
        config.run.steps,
        together.generator_steps,
        together.verifier_steps,
        together.warmup_steps,
    )
