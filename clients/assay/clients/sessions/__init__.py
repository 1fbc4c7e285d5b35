"""The client of sessions: interpreters that live between calls, and fork.

from assay.clients.sessions import SessionClient

with SessionClient("127.0.0.1:50052") as client, client.create() as session:
    session.execute("x = 41")
    point = session.checkpoint()
    left, right = session.fork(2)
    left.execute("x += 1")
    session.rollback(point)
"""

from assay.clients.execution.types import Output
from assay.clients.sessions.blocking import Checkpoint, Session, SessionClient
from assay.clients.sessions.client import AsyncSessionClient
from assay.clients.sessions.errors import (
    CannotFork,
    CheckpointLost,
    LeaseExpired,
    ProgramEndError,
    SessionBusy,
    SessionEnded,
    SessionLost,
)
from assay.clients.sessions.session import AsyncCheckpoint, AsyncSession
from assay.clients.sessions.types import (
    CellEnd,
    CellError,
    CellEvent,
    CellResult,
    CellUsage,
    DisplayValue,
    OutputPiece,
    SessionFile,
    SessionFiles,
    SessionLimits,
    SessionsInfo,
)

__all__ = [
    "AsyncCheckpoint",
    "AsyncSession",
    "AsyncSessionClient",
    "CannotFork",
    "CellEnd",
    "CellError",
    "CellEvent",
    "CellResult",
    "CellUsage",
    "Checkpoint",
    "CheckpointLost",
    "DisplayValue",
    "LeaseExpired",
    "Output",
    "OutputPiece",
    "ProgramEndError",
    "Session",
    "SessionBusy",
    "SessionClient",
    "SessionEnded",
    "SessionFile",
    "SessionFiles",
    "SessionLimits",
    "SessionLost",
    "SessionsInfo",
]
