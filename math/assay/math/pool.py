"""The caller's side of the workers that run the symbolic tier: started lazily, killed when late.

One pool a process. It may be used from many threads, each of which has a worker to itself while it
asks. After a fork the child has an empty pool and starts workers of its own; it never speaks to its
parent's. A worker is a fresh interpreter (`worker`), not a fork, so a program with threads or a
CUDA context may have one.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from typing import Any

from assay.math.compare import Equivalence
from assay.math.outcomes import ITEM_TIMEOUT, VERIFIER_FAILED, WORKER_DIED, AskFailedError
from assay.math.policy import Policy
from assay.math.reading import Reading

_START = (
    "import sys; sys.path[:] = sys.argv[2:]; from assay.math.worker import main; "
    "main(int(sys.argv[1]))"
)
_START_S = 60.0
"""A worker that is not ready by then is killed."""


class _Late(Exception):
    """The deadline came first."""


class _Lost(Exception):
    """The worker is gone, and perhaps said why."""


class _Worker:
    """One worker process. Used by one thread at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-P", "-c", _START, str(theirs.fileno()), *map(str, sys.path)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._socket = ours
        self._unread = b""
        self._ready = False
        self._give_up_s = time.monotonic() + _START_S

    def compare(
        self, reference: str, answer: str, policy: Policy, deadline_s: float
    ) -> dict[str, Any]:
        """What the worker says of a pair.

        Args:
            reference: the text of what is right.
            answer: the text of what is judged.
            policy: what counts as the same.
            deadline_s: until when, on the monotonic clock.

        Raises:
            _Late: the deadline came first; kill the worker, unless it is `starting`.
            _Lost: the worker is gone.
        """
        if not self._ready:
            said = self._receive(deadline_s)
            if "failed" in said:
                return said
            self._ready = True
        asked = {
            "reference": reference,
            "answer": answer,
            "policy": asdict(policy),
            "time_s": max(0.0, deadline_s - time.monotonic()),
        }
        try:
            self._wait(deadline_s)
            self._socket.sendall(json.dumps(asked).encode("ascii") + b"\n")
        except TimeoutError:
            raise _Late from None
        except OSError as error:
            raise _Lost(str(error)) from None
        return self._receive(deadline_s)

    @property
    def starting(self) -> bool:
        """Whether it has not said yet that it is ready, and may still do so."""
        return not self._ready and time.monotonic() < self._give_up_s

    def _receive(self, deadline_s: float) -> dict[str, Any]:
        """The next line; one that tells of a failure is a loss."""
        while b"\n" not in self._unread:
            try:
                self._wait(deadline_s)
                more = self._socket.recv(65_536)
            except TimeoutError:
                raise _Late from None
            except OSError as error:
                raise _Lost(str(error)) from None
            if not more:
                raise _Lost("")
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    def _wait(self, deadline_s: float) -> None:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._socket.settimeout(left_s)

    @property
    def alive(self) -> bool:
        """Whether its process has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Ends the process at once, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._socket.close()

    def leave(self) -> None:
        """In a forked child: lets go of what belongs to the parent."""
        self._process.returncode = 0  # no child of this process: nothing to wait for
        self._socket.close()


class Pool:
    """Workers, one unless a batch asked for more."""

    _limit: int

    def __init__(self) -> None:
        self._limit = 1
        self._forget()

    def allow(self, workers: int) -> None:
        """Lets there be so many workers at once, or more where that was allowed already."""
        with self._changed:
            self._limit = max(self._limit, workers)
            self._changed.notify_all()

    def _forget(self) -> None:
        self._changed = threading.Condition()
        self._limit = 1
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._places = 0  # workers, and those that are about to be started

    def compare(
        self, reference: Reading, answer: Reading, policy: Policy, deadline_s: float
    ) -> Equivalence:
        """Has a worker compare an answer with a reference.

        Args:
            reference: what is right.
            answer: what is judged.
            policy: the same that both were read with.
            deadline_s: until when, on the monotonic clock; waiting for a worker counts.

        Raises:
            AskFailedError: ITEM_TIMEOUT, WORKER_DIED or VERIFIER_FAILED.
        """
        worker = self._taken(deadline_s)
        keep = late = False
        try:
            said = worker.compare(reference.text, answer.text, policy, deadline_s)
            keep = not said.get("last", "failed" in said)
        except _Late:
            keep, late = worker.starting, True
            what = "start" if keep else "finish"
            raise AskFailedError(
                ITEM_TIMEOUT, f"the symbolic tier did not {what} before the time was over"
            ) from None
        except _Lost as loss:
            what = "while it started" if worker.starting else "at this answer"
            raise AskFailedError(
                WORKER_DIED, f"the worker of the symbolic tier died {what}; {loss}".rstrip("; ")
            ) from None
        finally:
            self._give_back(worker, keep=keep, replace=late)
        if "failed" in said:
            raise AskFailedError(VERIFIER_FAILED, said["failed"])
        return Equivalence(said["equal"], said["tier"], said["note"])

    def prepare(self, time_s: float) -> None:
        """Starts a worker and waits until it is ready."""
        one = Reading("1", "1", "text", None)
        self.compare(one, one, Policy(), time.monotonic() + time_s)

    def close(self) -> None:
        """Ends all workers."""
        with self._changed:
            for worker in self._all:
                worker.kill()
            self._forget()

    def after_fork(self) -> None:
        """In a forked child: starts anew, without the parent's workers."""
        for worker in self._all:
            worker.leave()
        self._forget()

    def _taken(self, deadline_s: float) -> _Worker:
        """A worker for this thread alone; starts one where none is idle and there is room."""
        with self._changed:
            while True:
                while self._idle:
                    worker = self._idle.pop()
                    if worker.alive:
                        return worker
                    self._drop(worker)
                if self._places < self._limit:
                    self._places += 1
                    break
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not self._changed.wait(left_s):
                    raise AskFailedError(
                        ITEM_TIMEOUT, "every worker of the symbolic tier was busy all the time"
                    )
        try:
            worker = _Worker()
        except OSError as error:
            with self._changed:
                self._places -= 1
                self._changed.notify()
            raise AskFailedError(
                WORKER_DIED, f"no worker of the symbolic tier can be started: {error}"
            ) from None
        with self._changed:
            self._all.add(worker)
        return worker

    def _give_back(self, worker: _Worker, *, keep: bool, replace: bool) -> None:
        with self._changed:
            if worker not in self._all:  # the pool was closed meanwhile
                return
            if keep:
                self._idle.append(worker)
            else:
                self._drop(worker)
                if replace:  # it loads sympy while its caller goes on
                    with contextlib.suppress(OSError):
                        self._add_idle()
            self._changed.notify()

    def _add_idle(self) -> None:
        worker = _Worker()
        self._places += 1
        self._all.add(worker)
        self._idle.append(worker)

    def _drop(self, worker: _Worker) -> None:
        worker.kill()
        self._all.discard(worker)
        self._places -= 1


POOL = Pool()
"""The pool of this process."""

atexit.register(POOL.close)
os.register_at_fork(after_in_child=POOL.after_fork)
