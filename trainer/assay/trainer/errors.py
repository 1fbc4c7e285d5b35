"""Why a run ended before its time."""

from __future__ import annotations

from assay.kit.errors import AssayError


class TrainingStoppedError(AssayError):
    """The run stopped itself: too many faults, or a loss that is no number."""


class OutageError(TrainingStoppedError):
    """The reward services were away for longer than a run waits; the step is left undone.

    Attributes:
        interrupted: it was interrupted while it waited.
    """

    def __init__(self, text: str, *, interrupted: bool = False) -> None:
        super().__init__(text)
        self.interrupted = interrupted
