"""Two training loops that take turns.

Each role has TRL's whole loop, the verifier's in a thread. A loop waits before each step until the
schedule gives it the turn, so that the two never compute at once and the order of everything is
fixed. Before the first step both have loaded what they resume from and wait.

Loops of one process share accelerate's state: a loop restores, after its wait, whether gradients
are being accumulated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from accelerate.state import GradientState
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from assay.trainer.methods.cotraining.schedule import Role


class OverError(Exception):
    """The waiting role has no more steps: the other left early, or all is done."""


class Alternation:
    """Gives the roles their turns; for one thread of each role.

    Args:
        order: of the remaining steps.
    """

    def __init__(self, order: Iterator[Role]) -> None:
        self._order = order
        self._next: Role | None = next(order, None)
        self._going: Role | None = None
        self._here: set[Role] = set()
        self._over = False
        self._changed = threading.Condition()

    def take(self, role: Role) -> None:
        """Ends the role's current step and waits for its next.

        Raises:
            OverError: there will be none.
        """
        with self._changed:
            self._end_step(role)
            self._here.add(role)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._over or self._is_due(role))
            if self._over:
                raise OverError
            self._going = role

    def leave(self, role: Role, *, over: bool) -> None:
        """The role takes no more steps; with `over` neither does the other."""
        with self._changed:
            self._end_step(role)
            self._here.add(role)
            self._over = self._over or over
            self._changed.notify_all()

    def wait_here(self, role: Role) -> None:
        """Waits until the role reached its first step, or left."""
        with self._changed:
            self._changed.wait_for(lambda: role in self._here)

    def _is_due(self, role: Role) -> bool:
        return self._going is None and self._next == role and len(self._here) == 2

    def _end_step(self, role: Role) -> None:
        if self._going == role:
            self._going = None
            self._next = next(self._order, None)


class Waits(TrainerCallback):
    """Makes a loop wait before each step of its role; before any other callback."""

    def __init__(self, turns: Alternation, role: Role, updates: int) -> None:
        self._turns = turns
        self._role = role
        self._updates = updates

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Waits.

        Raises:
            OverError: there is no such step.
        """
        if state.global_step % self._updates:
            return
        shared: Any = GradientState()
        accumulated = shared.sync_gradients
        self._turns.take(self._role)
        shared._set_sync_gradients(accumulated)  # noqa: SLF001  # as transformers does


class Saves(TrainerCallback):
    """Makes both roles save together; after the callback that decides on saving.

    Args:
        wanted: whether to save after a step, whatever others decide.
        on_saved: called after a checkpoint was saved.
    """

    def __init__(
        self, updates: int, *, wanted: Callable[[int], bool], on_saved: Callable[[], None]
    ) -> None:
        self._updates = updates
        self._wanted = wanted
        self._on_saved = on_saved

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Decides on saving."""
        step, rest = divmod(state.global_step, self._updates)
        control.should_save = control.should_save or (not rest and self._wanted(step))

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Calls `on_saved`."""
        self._on_saved()
