"""What the formats of execution share: a program's limits, and whose a fault is. Pure."""

from __future__ import annotations

from dataclasses import replace

from assay.clients.execution import ExecutionJob, Limits
from assay.clients.types import Fault
from assay.kit.reasons import Reason

DEFAULT_TIMEOUT_S = 10.0
MIB = 2**20
CPU_SHARE = 4.0
"""CPU seconds for each second on the clock, where a format has no such limit."""

_RETRYABLE_CODES = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"})
_CALLERS_CODES = frozenset({"INVALID_ARGUMENT", "NOT_FOUND"})


def fit(job: ExecutionJob, most: Limits) -> ExecutionJob:
    """The job with a limit on CPU time, where it states none: four cores' worth, at most `most`."""
    if job.limits.cpu_time_s is not None:
        return job
    wall_s = job.limits.wall_time_s or DEFAULT_TIMEOUT_S
    cpu_s = min(wall_s * CPU_SHARE, most.cpu_time_s or wall_s)
    return replace(job, limits=replace(job.limits, cpu_time_s=cpu_s))


def is_retryable(fault: Fault) -> bool:
    """Whether the same request may go through later."""
    return fault.code in _RETRYABLE_CODES and fault.reason != Reason.MESSAGE_TOO_LARGE


def is_callers(fault: Fault) -> bool:
    """Whether the request is wrong: a limit above the maximum, a program that no box could take."""
    return fault.code in _CALLERS_CODES
