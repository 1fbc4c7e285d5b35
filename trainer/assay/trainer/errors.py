"""Why a run ended before its time."""

from __future__ import annotations

from assay.rpc.errors import AssayError


class TrainingStoppedError(AssayError):
    """The run stopped itself: too many faults, or a loss that is no number."""
