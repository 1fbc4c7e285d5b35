"""Bounds the work of judging: what a candidate made is read and compared where it can be killed.

Small values are judged at once. Large ones, or those that follow much judging, are judged in a fork
of the supervisor with a limit of CPU time and memory, while the supervisor goes on serving its
link: answers that are built to cost much lose their own test and delay no other job. After a job's
first overrun nothing large of it is judged any more.

Covered: time and memory of whatever runs within `Budget.run`; the fork dies with the supervisor.
Not covered: what is judged at once, which is bounded by its size.
"""

from __future__ import annotations

import logging
import marshal
import os
import resource
import signal
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from assay.sandbox.box import Pump
from assay.sandbox.domain import SandboxFault
from assay.sandbox.judging.model import TestVerdict
from assay.sandbox.zygote import syscalls

INLINE_BYTES: Final = 64 * 1024
INLINE_S: Final = 0.25
CPU_S: Final = 5
MEMORY_BYTES: Final = 2 * 2**30
_CLOCK_S: Final = 60.0  # on a busy machine the CPU time takes longer to be used up
_ATTEMPTS: Final = 2
_DONE, _MEMORY = b"D", b"M"

T = TypeVar("T")
Told = tuple[str, str, bool]
"""A verdict's value (or a word of the caller's), why, and whether the program lacked memory."""

_log = logging.getLogger(__name__)


class Unjudged(Exception):
    """What the candidate made could not be judged, by its own doing. The text says why."""


class Overrun(Unjudged):
    """Judging took more than it may."""


class Budget:
    """What the judging of one job may take.

    Args:
        pump: goes on while a fork judges.
    """

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._left_s = INLINE_S
        self._overrun = False

    def is_small(self, size_bytes: int) -> bool:
        """Whether so many bytes of a candidate's would be judged at once."""
        return size_bytes <= INLINE_BYTES and self._left_s > 0

    def run(self, judge: Callable[[], T], size_bytes: int) -> T:
        """Judges something.

        Args:
            judge: returns what `marshal` can carry.
            size_bytes: how much of the candidate's it reads.

        Raises:
            Overrun: it took too much.
            Unjudged: `judge` raised: a defect of ours, which must not save the candidate.
            SandboxFault: WORKER_DIED, it could not be done.
        """
        if self.is_small(size_bytes):
            began_s = time.thread_time()
            try:
                return judge()
            except Exception as error:  # the fault boundary around what a candidate made
                raise _broken(f"{type(error).__name__}: {error}") from error
            finally:
                self._left_s -= time.thread_time() - began_s
        if self._overrun:
            raise Overrun("judging an earlier answer took too long already")
        try:
            for _ in range(_ATTEMPTS):
                answer = _Fork(judge, self._pump).answer()
                if answer is not None:
                    return marshal.loads(answer)  # type: ignore[no-any-return]  # noqa: S302 - of our own fork
        except Overrun:
            self._overrun = True
            raise
        raise SandboxFault("WORKER_DIED", "the process that compared the answers was killed")


def judge_within(budget: Budget, judge: Callable[[], Told], size_bytes: int) -> Told:
    """A judgement within a budget; what cannot be judged is a verdict as well."""
    try:
        return budget.run(judge, size_bytes)
    except Overrun as overrun:
        return TestVerdict.LIMIT_EXCEEDED.value, str(overrun), False
    except Unjudged as unjudged:
        return TestVerdict.WRONG_ANSWER.value, str(unjudged), False


def _broken(text: str) -> Unjudged:
    _log.error("an answer could not be compared: %s", text)
    return Unjudged(f"it could not be compared ({text[:200]})")


class _Fork:
    """One judgement in a fork."""

    def __init__(self, judge: Callable[[], Any], pump: Pump) -> None:
        self._pump = pump
        self._data = bytearray()
        self._open = True
        self._reader, writer = os.pipe2(os.O_CLOEXEC)
        self._pid = os.fork()
        if self._pid == 0:
            _judge(judge, writer)
        os.close(writer)

    def answer(self) -> bytes | None:
        """Its result; None where it was killed from outside.

        Raises:
            Overrun: it took too much.
            Unjudged: it broke.
        """
        until_s = time.monotonic() + _CLOCK_S
        self._pump.watch(self._reader, self._read)
        try:
            while self._open and (left_s := until_s - time.monotonic()) > 0:
                self._pump.step(left_s)
        finally:
            self._pump.unwatch(self._reader)
            os.close(self._reader)
            if self._open:
                os.kill(self._pid, signal.SIGKILL)
            _, status = os.waitpid(self._pid, 0)
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if self._open or ended_by == signal.SIGXCPU:
            raise Overrun(f"it took more than {CPU_S} s to compare")
        if self._data[:1] == _DONE:
            return bytes(self._data[1:])
        if self._data[:1] == _MEMORY:
            raise Overrun("comparing it took too much memory")
        if ended_by:
            return None
        raise _broken(self._data.decode("utf-8", "replace"))

    def _read(self) -> None:
        data = os.read(self._reader, 1 << 16)
        self._data += data
        self._open = bool(data)


def _judge(judge: Callable[[], Any], writer: int) -> None:
    try:
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        syscalls.die_with_parent()
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        try:
            told = _DONE + marshal.dumps(judge())
        except MemoryError:
            told = _MEMORY
        except Exception as error:  # noqa: BLE001 - told to the supervisor, which fails the job
            told = f"{type(error).__name__}: {error}"[:1000].encode("utf-8", "replace")
        left = memoryview(told)
        while left:
            left = left[os.write(writer, left) :]
    finally:
        os._exit(0)
