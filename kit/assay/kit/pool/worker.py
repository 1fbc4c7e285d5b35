"""A forked worker: takes one job at a time. A fork server forks and kills it.

Covered: memory (RLIMIT_AS: a MemoryError, or the end of this process), CPU time past the job's
time-out (RLIMIT_CPU), core dumps, outliving the fork server (PR_SET_PDEATHSIG where there is one),
leaks (it retires after some jobs or when it has grown).
Not covered: files, network, other processes. Its work is our own code, or plug-ins that the
operator installed; a program that a model wrote belongs in the sandbox service.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from assay.kit import log_format
from assay.kit.pool import frames

_PR_SET_PDEATHSIG = 1
_RECEIVE_BYTES = 1 << 16
_CPU_SLACK_S = 5
_NEARLY_FULL = 0.9


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What one worker may use.

    Attributes:
        memory_bytes: address space; 0 for no limit.
        jobs: it retires after so many.
        growth_bytes: it retires when its resident memory has grown by more since its start.
    """

    memory_bytes: int
    jobs: int
    growth_bytes: int


class Work(Protocol):
    """A service's work."""

    def take(self, body: bytes) -> Callable[[], bytes]:
        """Prepares a job from its body, outside its time; returns what runs it."""


def run(connection: socket.socket, work: Work, limits: WorkerLimits, parent: int) -> None:
    """Serves jobs until the pool closes the connection or the worker retires.

    It ends at once if `parent`, the fork server's process id, is gone.
    """
    _confine(limits, parent)
    at_start_bytes = _resident_bytes()
    ready = json.dumps({"pid": os.getpid()}).encode("ascii")
    connection.sendall(frames.pack(frames.READY, 0, ready))
    reader = frames.FrameReader()
    served = 0
    while data := connection.recv(_RECEIVE_BYTES):
        for frame in reader.feed(data):
            body, timeout_s, request_id = frames.read_job(frame.payload)
            log_format.request_id_var.set(request_id)
            do = work.take(body)
            connection.sendall(frames.pack(frames.STARTED, frame.number))
            _bound_cpu(timeout_s)
            kind, payload = frames.DONE, do()
            exhausted = _nearly_full(limits)
            if exhausted:
                # Libraries catch MemoryError in places and go on with a wrong result, so nothing
                # that was said near the limit counts.
                kind, payload = frames.EXHAUSTED, b""
            served += 1
            grown = _resident_bytes() - at_start_bytes > limits.growth_bytes
            retires = exhausted or grown or served == limits.jobs
            last = frames.pack(frames.LAST, 0) if retires else b""
            connection.sendall(last + frames.pack(kind, frame.number, payload))
            if retires:
                return


def _bound_cpu(timeout_s: float) -> None:
    if math.isfinite(timeout_s):
        used_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        _lower_soft(resource.RLIMIT_CPU, math.ceil(used_s + timeout_s) + _CPU_SLACK_S)


def _confine(limits: WorkerLimits, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.memory_bytes:
        _lower_soft(resource.RLIMIT_AS, limits.memory_bytes)
    # Under memory pressure the kernel should take a worker and not the server. Only Linux has this
    # file.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def die_with_parent(parent: int) -> None:
    """Asks the kernel to kill this process when its parent ends (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(1)


def _lower_soft(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    # Some systems refuse RLIMIT_AS; the time-out still holds there.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (soft, hard))


def _nearly_full(limits: WorkerLimits) -> bool:
    """Whether the address space ever came close to its limit."""
    if not limits.memory_bytes:
        return False
    return _status_bytes("VmPeak:") > _NEARLY_FULL * limits.memory_bytes


def _resident_bytes() -> int:
    """Resident memory; 0 where the system does not say."""
    return _status_bytes("VmRSS:")


def _status_bytes(name: str) -> int:
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as lines:  # noqa: PTH123 - in the inner loop
        for line in lines:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
