"""Two training loops of which one goes on at a time.

Each role has TRL's whole loop, the verifier's in a thread of its own. A loop stops in front of each
of its steps until the schedule says that the step is next; so the two never compute at once, and
the order of all that they do is fixed. Before the first step, both have come to where they wait:
what each resumes from is loaded by then.

That loops of one process share accelerate's state is seen to where they wait: whether gradients are
being accumulated, which a loop has said before it waits, is said again behind it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from accelerate.state import GradientState
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from assay.trainer.methods.cotraining.schedule import Role


class OverError(Exception):
    """There are no more steps for the role that waits: the other has left early, or all is done."""


class Alternation:
    """Says whose step it is; for one thread of each role.

    Args:
        order: of the steps that are left.
    """

    def __init__(self, order: Iterator[Role]) -> None:
        self._order = order
        self._next: Role | None = next(order, None)
        self._going: Role | None = None
        self._here: set[Role] = set()
        self._over = False
        self._changed = threading.Condition()

    def take(self, role: Role) -> None:
        """Ends the role's step, if it has one, and waits for its next.

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
        """The role takes no more steps.

        Args:
            role: that leaves.
            over: whether the other takes none either.
        """
        with self._changed:
            self._end_step(role)
            self._here.add(role)
            self._over = self._over or over
            self._changed.notify_all()

    def wait_here(self, role: Role) -> None:
        """Until the role has come to its first step, or has left."""
        with self._changed:
            self._changed.wait_for(lambda: role in self._here)

    def _is_due(self, role: Role) -> bool:
        return self._going is None and self._next == role and len(self._here) == 2

    def _end_step(self, role: Role) -> None:
        if self._going == role:
            self._going = None
            self._next = next(self._order, None)


class Waits(TrainerCallback):
    """Has a loop wait in front of each step of its role; before any other callback.

    Args:
        turns: says when.
        role: of the loop.
        updates: optimizer steps in a step.
    """

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
    """Has both roles save together; after the callback that decides on saving.

    Args:
        updates: optimizer steps in a step.
        wanted: says of a step whether to save after it, whatever others say.
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
        """Tells of it."""
        self._on_saved()
