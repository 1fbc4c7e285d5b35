"""What callers ask of sessions, checked. Pure.

A limit above the greatest is refused and never clipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from google.protobuf.duration_pb2 import Duration

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2
from assay.kit.durations import fill_duration, seconds_of
from assay.kit.errors import CallError, call_error, make_status, refuse
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason
from assay.sandbox.convert import check_path, check_strings
from assay.sandbox.sessions.settings import Allowance

MAX_FILES = 10_000
MAX_SESSIONS_OF_A_CALL = 1024
_FIELDS = {
    "cpu_s": "cpu_time",
    "cell_cpu_s": "cell_cpu_time",
    "cell_wall_s": "cell_wall_time",
}


@dataclass(frozen=True, slots=True)
class SessionRules:
    """The limits of a server: where callers state none, and the greatest."""

    usual: Allowance
    most: Allowance
    lease_s: float
    max_lease_s: float

    def limits(self, asked: session_pb2.SessionLimits) -> Allowance:
        """The limits in force.

        Raises:
            CallError: INVALID_LIMIT.
        """
        found: dict[str, float] = {}
        for one in fields(Allowance):
            name = _FIELDS.get(one.name, one.name)
            stated = getattr(asked, name)
            value = seconds_of(stated) if isinstance(stated, Duration) else stated
            if value:
                found[one.name] = _checked(name, value, getattr(self.most, one.name))
            else:
                found[one.name] = getattr(self.usual, one.name)
        return Allowance(**found)  # type: ignore[arg-type]

    def lease(self, asked: Duration, unset_s: float) -> float:
        """The lease in force, in seconds.

        Raises:
            CallError: INVALID_LIMIT.
        """
        seconds = seconds_of(asked)
        return _checked("lease", seconds, self.max_lease_s) if seconds else unset_s


def cell(request: session_pb2.ExecuteRequest, limits: Allowance) -> session_pb2.ExecuteRequest:
    """The request with its limits set.

    Raises:
        CallError: INVALID_LIMIT: above the session's own.
    """
    told = session_pb2.ExecuteRequest(code=request.code)
    for name, most in (("wall_time", limits.cell_wall_s), ("cpu_time", limits.cell_cpu_s)):
        seconds = seconds_of(getattr(request, name))
        fill_duration(getattr(told, name), _checked(name, seconds, most) if seconds else most)
    return told


def count(asked: int, most: int) -> int:
    """How many sessions a call is for.

    Raises:
        CallError: INVALID_PARAMETER: negative, or more than can ever be had at once.
    """
    most = min(most, MAX_SESSIONS_OF_A_CALL)
    if not 0 <= asked <= most:
        raise refuse(
            Reason.INVALID_PARAMETER,
            f"count is {asked}; one call opens at most {most} sessions here",
            parameter="count",
        )
    return asked or 1


def check_files(files: Iterable[execution_pb2.SourceFile]) -> None:
    """Checks the paths of files to write.

    Raises:
        CallError: INVALID_PROGRAM.
    """
    paths = [file.path for file in files]
    check_paths(paths)
    if len(set(paths)) < len(paths):
        raise refuse(Reason.INVALID_PROGRAM, "two files have the same path")


def check_paths(paths: Iterable[str]) -> None:
    """Checks paths in the working directory.

    Raises:
        CallError: INVALID_PROGRAM.
    """
    try:
        for number, path in enumerate(paths):
            if number == MAX_FILES:
                raise refuse(Reason.INVALID_PROGRAM, f"a call has at most {MAX_FILES} files")
            check_path(path)
    except Unjudgeable as fault:
        raise _as_error(fault) from fault


def check_environment(environment: Mapping[str, str]) -> None:
    """Checks the variables of a session.

    Raises:
        CallError: INVALID_PROGRAM.
    """
    for name in environment:
        if not name or "=" in name:
            raise refuse(Reason.INVALID_PROGRAM, f"{name[:80]!r} is no name of a variable")
    try:
        check_strings(f"{name}={value}" for name, value in environment.items())
    except Unjudgeable as fault:
        raise _as_error(fault) from fault


def _as_error(fault: Unjudgeable) -> CallError:
    return call_error(make_status(fault.reason, fault.message, metadata=fault.metadata))


def _checked(name: str, value: float, most: float) -> float:
    if not (0 < value <= most and math.isfinite(value)):
        raise refuse(
            Reason.INVALID_LIMIT,
            f"the limit {name} is {value:.15g}; it must be above 0 and at most {most:.15g} here",
            limit=name,
        )
    return value
