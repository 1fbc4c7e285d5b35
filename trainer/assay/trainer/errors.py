"""Why a run ended early."""

from __future__ import annotations

from assay.kit.errors import AssayError


class TrainingStoppedError(AssayError):
    """The run stopped itself: too many faults, or a loss that is no number."""


class OutageError(TrainingStoppedError):
    """The reward services were away for longer than a run waits; the step is undone.

    Attributes:
        interrupted: whether a signal ended the wait.
    """

    def __init__(self, text: str, *, interrupted: bool = False) -> None:
        super().__init__(text)
        self.interrupted = interrupted
