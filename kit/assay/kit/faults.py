"""Why there is no judgement of an item: a value, and the exception that becomes one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ItemFault:
    """No judgement, as a value. It says nothing about the candidate.

    Attributes:
        reason: from the lexicon of assay.kit.reasons, or a verifier's own.
        message: what happened, in one line.
        metadata: further facts, for programs.
    """

    reason: str
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict)


class Unjudgeable(Exception):
    """The item prevents a judgement, whatever the candidate's merit. Becomes a fault.

    Attributes:
        reason: from the lexicon, or a verifier's own in the same style.
        message: one line that names the thing and the remedy.
        metadata: further facts, for programs.
    """

    def __init__(
        self, reason: str, message: str, metadata: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.reason = str(reason)
        self.message = message
        self.metadata = dict(metadata or {})

    @property
    def fault(self) -> ItemFault:
        """The fault that it becomes."""
        return ItemFault(self.reason, self.message, self.metadata)
