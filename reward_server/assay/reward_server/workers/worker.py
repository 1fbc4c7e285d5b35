"""A worker: takes one item at a time, judges it, answers. Forked and killed by the nursery.

Covered: memory (RLIMIT_AS; what does not fit is a MemoryError, or the end of this process), CPU
time past the item's time-out (RLIMIT_CPU ends the process even if nobody is left to kill it), core
dumps, outliving the nursery (PR_SET_PDEATHSIG where there is one), leaks (it retires after some
items or when it has grown).
Not covered: files, network, other processes. Verifiers are our own code, or plug-ins that the
operator installed; a program that a model wrote belongs in the sandbox service.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import math
import os
import resource
import signal
import socket
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.reward_server import border
from assay.reward_server.domain import VERIFIER_FAILED, Fault, Outcome
from assay.reward_server.registry import Registry
from assay.reward_server.workers import frames
from assay.rpc import log_format

_PR_SET_PDEATHSIG = 1
_CPU_SLACK_S = 5
_NEARLY_FULL = 0.9


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What one worker may use.

    Attributes:
        memory_bytes: address space; 0 for no limit.
        items: it retires after so many.
        growth_bytes: it retires when its resident memory has grown by more than this since its
            start.
    """

    memory_bytes: int
    items: int
    growth_bytes: int


def run(
    connection: socket.socket,
    registry: Registry,
    limits: WorkerLimits,
    parent: int,
    prepared: Collection[str] = (),
) -> None:
    """Serves jobs until the server closes the connection or the worker retires.

    Args:
        connection: the worker's end of its socket pair.
        registry: the verifiers, prepared but for the lazy ones.
        limits: what this worker may use.
        parent: process id of the nursery; the worker ends at once if that is gone already.
        prepared: names of the lazy verifiers that are loaded already.
    """
    _confine(limits, parent)
    at_start_bytes = _resident_bytes()
    loaded = set(prepared)
    connection.sendall(frames.STARTED)
    for served in range(1, limits.items + 1):
        data = _receive(connection)
        if data is None:
            return
        job = frames.unpack(data)
        log_format.request_id_var.set(job.get("request_id", ""))
        _load(job["verifier"], registry, loaded)
        connection.sendall(frames.STARTED)
        outcome = _judge(job, registry)
        exhausted = _nearly_full(limits)
        if exhausted:
            # sympy catches MemoryError in places and goes on with a wrong result, so nothing that
            # was said near the limit counts.
            outcome = Fault(VERIFIER_FAILED, "the verifier ran out of memory on this item")
        grown = _resident_bytes() - at_start_bytes > limits.growth_bytes
        retire = exhausted or grown or served == limits.items
        connection.sendall(_pack(outcome, retire=retire))
        if retire:
            return


def _load(name: str, registry: Registry, loaded: set[str]) -> None:
    """Loads what a lazy verifier needs, before its first item's time runs."""
    verifier = registry.verifier(name)
    if verifier is None or not verifier.spec.lazy or name in loaded:
        return
    loaded.add(name)
    try:
        verifier.prepare()
    except Exception:  # noqa: BLE001 - the isolation border: its items will be faults
        _log.exception("verifier %s cannot be prepared", name)


def _judge(job: dict[str, Any], registry: Registry) -> Outcome:
    """Judges the item of one job, under a limit of processor time."""
    verifier = registry.verifier(job["verifier"])
    if verifier is None:
        return Fault(
            VERIFIER_FAILED, f"the workers could not load the verifier {job['verifier']!r}"
        )
    used_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _lower_soft(resource.RLIMIT_CPU, math.ceil(used_s + job["timeout_s"]) + _CPU_SLACK_S)
    return border.judge(verifier, frames.item_from_json(job["item"]))


def _pack(outcome: Outcome, *, retire: bool) -> bytes:
    try:
        return frames.pack(
            {**frames.outcome_to_json(outcome), "retire": retire}, frames.MAX_DONE_BYTES
        )
    except (frames.FrameError, TypeError, ValueError, AttributeError):
        broken = Fault(VERIFIER_FAILED, "the verifier's judgement cannot be sent")
        return frames.pack(
            {**frames.outcome_to_json(broken), "retire": retire}, frames.MAX_DONE_BYTES
        )


def _receive(connection: socket.socket) -> bytes | None:
    """One frame; None when the server has closed the connection."""
    header = _receive_exactly(connection, frames.HEADER.size)
    if header is None:
        return None
    (size,) = frames.HEADER.unpack(header)
    return _receive_exactly(connection, size)


def _receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 2**20))
        if not part:
            return None
        parts += part
    return bytes(parts)


def _confine(limits: WorkerLimits, parent: int) -> None:
    """Puts this process under its limits."""
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
    """Sets a soft limit, as far as the hard limit allows."""
    hard = resource.getrlimit(kind)[1]
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    # Some systems refuse RLIMIT_AS; the time-out still holds there.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (soft, hard))


def _nearly_full(limits: WorkerLimits) -> bool:
    """Whether the address space came close to its limit at any time in this worker's life."""
    if not limits.memory_bytes:
        return False
    peak = _status_bytes("VmPeak:")
    return peak > _NEARLY_FULL * limits.memory_bytes


def _resident_bytes() -> int:
    """Resident memory now; 0 where the system does not say."""
    return _status_bytes("VmRSS:")


def _status_bytes(name: str) -> int:
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as lines:  # noqa: PTH123 - in the inner loop
        for line in lines:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
