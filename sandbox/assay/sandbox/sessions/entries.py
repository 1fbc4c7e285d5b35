"""What logs and traces keep of sessions and cells: never an id, nor what a caller wrote."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping

from assay.api.session.v1 import session_pb2
from assay.kit import tracing
from assay.kit.calls import add_log_fields
from assay.kit.durations import seconds_of
from assay.kit.trails import Fact, item_stretch
from assay.sandbox.sessions.metrics import CELL_ENDS
from assay.sandbox.sessions.registry import Ended, OpenSession


def note_cell(
    session: OpenSession, result: session_pb2.CellResult, arrived_s: float, wait_s: float
) -> None:
    """Puts a cell into the call's log line and trace."""
    end = CELL_ENDS.get(result.end, "unspecified")
    add_log_fields(session=_mark(session), end=end)
    facts: dict[str, Fact] = {
        "assay.end": end,
        "assay.runs.wall_s": seconds_of(result.usage.wall_time),
        "assay.runs.cpu_s": seconds_of(result.usage.cpu_time),
    }
    seconds = time.monotonic() - arrived_s - wait_s
    _trail(session.language, arrived_s, wait_s, seconds, facts)


def note_operation(name: str, session: OpenSession, seconds: float) -> None:
    """Puts a checkpoint, a rollback or a fork into the call's log line and trace."""
    add_log_fields(session=_mark(session))
    _trail(name, time.monotonic() - seconds, 0.0, seconds, {})


def _trail(
    name: str, arrived_s: float, wait_s: float, seconds: float, facts: Mapping[str, Fact]
) -> None:
    trail = tracing.trail()
    if trail is not None:
        started_s = arrived_s + wait_s
        trail.add(
            *(arrived_s, started_s, seconds),
            fault=False,
            describe=lambda _: item_stretch(name, arrived_s, started_s, seconds, facts),
        )


def _mark(session: OpenSession) -> str:
    """A session in logs: its id would give it away."""
    return hashlib.sha256(session.id.encode()).hexdigest()[:12]


def log_entry(session: OpenSession, ended: Ended) -> dict[str, object]:
    """What the log keeps of an ended session."""
    lived_s = asyncio.get_running_loop().time() - session.opened_s
    return {
        "session": _mark(session),
        "tenant": session.tenant,
        "language": session.language,
        "cells": session.cells,
        "cpu_s": round(session.cpu_s, 3),
        "lived_s": round(lived_s, 3),
        "end": ended.how,
        "over": session.over,
        "cause": ended.cause,
    }
