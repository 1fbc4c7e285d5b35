"""What ends a call about a session, in the tree of `assay.kit.errors`.

    AssayError
    |-- ProgramEndError        the program's doing, no fault
    |   |-- SessionEnded       it ended its session earlier
    |   `-- CheckpointLost     its memory limit ended a checkpoint
    `-- CallError
        |-- BadRequestError
        |   |-- CannotFork     the session holds what no copy can
        |   |-- LeaseExpired   nobody renewed its lease
        |   `-- SessionBusy    a cell of it runs
        `-- ServerError
            `-- SessionLost    a fault: drop the sample

The rest are as they are elsewhere: OverloadedError when no session fits, UnavailableError.
"""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from assay.clients.sessions.types import CellEnd
from assay.kit.errors import AssayError, BadRequestError, CallError, ServerError
from assay.kit.reasons import Reason


class ProgramEndError(AssayError):
    """The program did this to its session: a verdict about it, and no fault of ours."""

    def __init__(self, message: str, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.metadata = dict(metadata or {})

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.metadata)


class SessionEnded(ProgramEndError):
    """The program ended its session earlier. A rollback may bring it back."""

    @property
    def end(self) -> CellEnd | None:
        """How; None for an end of a later version."""
        word = self.metadata.get("end", "").lower().removeprefix("cell_end_").replace("_", "-")
        return CellEnd(word) if word in set(CellEnd) else None


class CheckpointLost(ProgramEndError):
    """The session's own memory limit ended the checkpoint."""


class SessionLost(ServerError):
    """A session was lost by our doing. It says nothing about the program: drop the sample."""

    @property
    def cause(self) -> str:
        """What lost it: the server's word, or "replica-gone"."""
        return self.metadata.get("cause", "")


class LeaseExpired(BadRequestError):
    """Nobody renewed the session's lease in time."""


class SessionBusy(BadRequestError):
    """The session does something else; nothing was done."""


class CannotFork(BadRequestError):
    """The session holds what no copy can, such as threads; nothing was done."""

    @property
    def holds(self) -> tuple[str, ...]:
        """What, each as the server names it: "2 threads"."""
        return tuple(one for one in self.metadata.get("holds", "").split("\n") if one)


_OUTSIDE = "killed-from-outside"  # of a checkpoint: then it is a fault, and stays a CallError
_CALLS: dict[str, type[CallError]] = {
    Reason.SESSION_LOST: SessionLost,
    Reason.LEASE_EXPIRED: LeaseExpired,
    Reason.SESSION_BUSY: SessionBusy,
    Reason.CANNOT_FORK: CannotFork,
}
_PROGRAM: dict[str, type[ProgramEndError]] = {
    Reason.SESSION_ENDED: SessionEnded,
    Reason.CHECKPOINT_LOST: CheckpointLost,
}


def error_of(error: CallError) -> AssayError:
    """The error of a session that a failed call tells of; itself where it tells of none."""
    program = _PROGRAM.get(error.reason)
    if program is not None and error.metadata.get("cause") != _OUTSIDE:
        return program(str(error), error.metadata)
    kind = _CALLS.get(error.reason)
    if kind is None or isinstance(error, kind):
        return error
    return kind(
        error.reason,
        str(error),
        code=error.code,
        retry_after_s=error.retry_after_s,
        metadata=error.metadata,
    )


def replica_gone(replica: str, why: str) -> SessionLost:
    """The loss of a session with its replica."""
    text = f"the session was lost with its replica {replica!r}: {why}; drop the sample"
    facts = {"cause": "replica-gone", "replica": replica}
    return SessionLost(Reason.SESSION_LOST, text, metadata=facts)


def is_certain(error: CallError) -> bool:
    """Whether nothing was done: the call was refused, or never left."""
    if error.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return error.retry_after_s is not None
    return error.reason == Reason.STARTING or error.metadata.get("sent") == "no"
