"""Runs somebody else's function in a process of its own, once: a forked child that is killed.

Covered: it prints, patches modules, changes signals, ends the interpreter, takes all memory that it
may, never returns, leaves threads or children behind. None of it reaches the next call.
Not covered: files, the network, a child that leaves its process group. It is the operator's code.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from assay.kit.faults import Unjudgeable
from assay.kit.pool.worker import die_with_parent
from assay.kit.reasons import Reason

_MOST_BYTES = 4096
_PR_SET_PDEATHSIG = 1
_REAP_S = 1.0


def apart(function: Callable[[], Any], name: str, timeout_s: float) -> float:
    """The number that the function returns, in a child of this process.

    Args:
        function: returns a number; what it needs to import is imported already.
        name: of it, for people.
        timeout_s: after which the child is killed.

    Raises:
        Unjudgeable: it raised, returned something else, died, or was too late.
    """
    reads, writes = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    warden = os.fork()
    if warden == 0:
        os.close(reads)
        _guard(function, writes, parent)
    os.close(writes)
    with suppress(OSError):
        os.setpgid(warden, warden)  # as the child does: whoever comes first
    status = 0
    try:
        body, late = _read(reads, timeout_s)
        if not body and not late:
            status = _status(warden)
    finally:
        os.close(reads)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(warden, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(warden, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(warden, 0)
    if late:
        raise Unjudgeable(Reason.ITEM_TIMEOUT, f"{name!r} took more than {timeout_s:g} s")
    return _number(body, name, status)


def _guard(function: Callable[[], Any], writes: int, parent: int) -> NoReturn:
    """What the child does: it has a child work, and kills the group where the caller is killed."""
    try:
        os.setpgid(0, 0)
        own = os.getpid()
        signal.signal(signal.SIGTERM, lambda *_: os.killpg(own, signal.SIGKILL))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        worker = os.fork() if os.getppid() == parent else -1
        if worker == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _work(function, writes, own)
        os.close(writes)
        if worker > 0:
            _, status = os.waitpid(worker, 0)
            os._exit(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
    finally:
        os._exit(0)


def _status(warden: int) -> int:
    """The signal that ended the work; 0 for none."""
    until = time.monotonic() + _REAP_S
    while time.monotonic() < until:
        found, status = os.waitpid(warden, os.WNOHANG)
        if found:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else os.WTERMSIG(status)
        time.sleep(0.002)
    return 0


def _work(function: Callable[[], Any], writes: int, parent: int) -> NoReturn:
    """What the child's child does."""
    try:
        die_with_parent(parent)
        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_AS, (soft, soft))  # which nobody raises again
        try:
            body = {"number": _plain(function())}
        except Unjudgeable as error:
            body = {"reason": error.reason[:64], "message": error.message[:1000]}
        except BaseException as error:  # noqa: BLE001  # whatever another's code raises
            traceback.print_exc()
            body = {"raised": type(error).__name__[:80]}
        os.write(writes, json.dumps(body).encode()[:_MOST_BYTES])
    finally:
        os._exit(0)


def _plain(value: Any) -> Any:
    """A number of Python, numpy or torch; what it is called, where it is none."""
    if not isinstance(value, bool | int | float) and callable(getattr(value, "item", None)):
        value = value.item()
    if isinstance(value, bool | int | float):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        return number if math.isfinite(number) else {"not": f"{number}, which is not finite"}
    return {"not": f"{type(value).__name__[:80]}, which is no number"}


def _read(reads: int, timeout_s: float) -> tuple[bytes, bool]:
    """What the child wrote until it closed its end, and whether the time was up before."""
    until = time.monotonic() + timeout_s
    body = b""
    while len(body) < _MOST_BYTES:
        left = until - time.monotonic()
        if left <= 0 or not select.select([reads], [], [], left)[0]:
            return body, True
        part = os.read(reads, _MOST_BYTES)
        if not part:
            break
        body += part
        if body.endswith(b"}"):  # a child of the child may hold the pipe for longer
            with suppress(ValueError):
                json.loads(body)
                break
    return body, False


def _number(body: bytes, name: str, status: int) -> float:
    if not body:
        if status:
            text = f"the process of {name!r} was ended by signal {status}"
            raise Unjudgeable(Reason.WORKER_DIED, text)
        raise Unjudgeable(Reason.VERIFIER_FAILED, f"{name!r} ended its process")
    try:
        said = json.loads(body)
    except ValueError:
        raise Unjudgeable(Reason.VERIFIER_FAILED, f"{name!r} wrote what is no answer") from None
    if not isinstance(said, dict):
        said = {}
    if "reason" in said:
        raise Unjudgeable(str(said["reason"]), str(said.get("message", "")))
    if "raised" in said:
        text = f"{name!r} raised {said['raised']}; the server's log has the traceback"
        raise Unjudgeable(Reason.VERIFIER_FAILED, text)
    number = said.get("number")
    if isinstance(number, dict):
        raise Unjudgeable(Reason.VERIFIER_FAILED, f"{name!r} returned {number.get('not')}")
    if not isinstance(number, float) or not math.isfinite(number):
        raise Unjudgeable(Reason.VERIFIER_FAILED, f"{name!r} wrote what is no answer")
    return number
