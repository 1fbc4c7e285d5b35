"""The worker's side: a process that runs the symbolic tier, one pair at a time, until it is killed.

`pool` starts it, as a fresh interpreter, so nothing of the caller's process is in it: no threads,
no CUDA context, no memory. A line of JSON comes in, a line goes out.

Covered: time (the caller kills it; where the caller is gone, the kernel does, by an alarm that no
handler holds), memory (RLIMIT_AS, where the system takes it), outliving the caller (it ends when
its connection closes), core dumps, keys typed at the caller's terminal (a session of its own).
Not covered: files and network. Nothing here runs what a model wrote: it is read as mathematics.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import socket
from typing import Any

MEMORY_BYTES = 2 << 30
"""Address space. Past nine tenths of it nothing that was said counts."""
PAIRS = 2_000
"""A worker ends after so many; what leaks, ends with it."""
_SLACK_S = 1.0
_NEARLY_FULL = 0.9


def main(descriptor: int) -> None:
    """Serves the pairs that come through an inherited socket."""
    _confine()
    with socket.socket(fileno=descriptor) as connection:
        try:
            from assay.math import symbolic  # noqa: PLC0415 - so that what it lacks can be said

            symbolic.prepare()
        except Exception as error:  # noqa: BLE001 - the border: whoever asked must hear of it
            _say(connection, {"failed": f"{type(error).__name__}: {error}"[:500]})
            return
        _say(connection, {"ready": True})
        lines = connection.makefile("r", encoding="ascii")
        for served, line in enumerate(lines, 1):
            _alarm(json.loads(line)["time_s"] + _SLACK_S)
            said = _compared(json.loads(line))
            _alarm(0)
            last = served == PAIRS or "failed" in said
            _say(connection, said | {"last": last})
            if last:
                return


def _compared(asked: dict[str, Any]) -> dict[str, Any]:
    """What the symbolic tier makes of a pair."""
    from assay.math import symbolic  # noqa: PLC0415 - as above
    from assay.math.policy import Policy  # noqa: PLC0415 - as above
    from assay.math.reading import read  # noqa: PLC0415 - as above

    policy = Policy(**asked["policy"])
    try:
        reference, answer = read(asked["reference"], policy), read(asked["answer"], policy)
        comparison = symbolic.compare(reference, answer, policy)
    except MemoryError:
        return {"failed": "the symbolic tier ran out of memory"}
    except Exception as error:  # noqa: BLE001 - the border: a defect costs its own pair only
        return {"failed": f"the symbolic tier raised {type(error).__name__}"}
    if _peak_bytes() > _NEARLY_FULL * MEMORY_BYTES:
        # sympy catches MemoryError in places and goes on with a wrong result.
        return {"failed": "the symbolic tier ran out of memory"}
    return {"equal": comparison.equal, "tier": comparison.tier, "note": comparison.note}


def _say(connection: socket.socket, said: dict[str, Any]) -> None:
    connection.sendall(json.dumps(said).encode("ascii") + b"\n")


def _alarm(seconds: float) -> None:
    """Has the kernel end this process after so many seconds; 0 for never."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _confine() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})  # a mask is inherited
    # Some systems refuse a limit; the caller's time-out holds there too.
    for kind, size in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        soft = size if hard == resource.RLIM_INFINITY else min(size, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (soft, hard))
    # Under memory pressure the kernel should take this process and not a trainer. Linux only.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - one line
        file.write("1000")


def _peak_bytes() -> int:
    """The most address space that this process had; 0 where the system does not say."""
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as lines:  # noqa: PTH123 - after every pair
        for line in lines:
            if line.startswith("VmPeak:"):
                return int(line.split()[1]) * 1024
    return 0
