"""The jobs of a pool, their ends, and the service's codec for both."""

from __future__ import annotations

import asyncio
import enum
import math
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from assay.kit.faults import ItemFault
from assay.kit.log_format import request_id_var

Q = TypeVar("Q")
A = TypeVar("A")


class End(enum.Enum):
    """How a job ended that no worker answered; the service makes a fault of each."""

    DIED = "died"
    """Its worker died in the middle of it."""
    LOST = "lost"
    """The machine of its worker was lost, and so was the next one."""
    UNTAKEN = "untaken"
    """No worker lived long enough to begin it."""
    EXPIRED = "expired"
    """Its time-out passed, and its worker was killed."""
    EXHAUSTED = "exhausted"
    """Its worker came near its memory limit, so its answer does not count."""
    UNSENDABLE = "unsendable"
    """It is too large for a frame."""
    UNREADABLE = "unreadable"
    """The answer has another shape than agreed; its worker was killed."""
    FAILED = "failed"
    """A defect of the pool or the codec."""
    DRAINING = "draining"
    """The pool was closed first."""


@dataclass(frozen=True, slots=True)
class Done(Generic[A]):
    """The end of a job.

    Attributes:
        outcome: of the codec's `decode`, or a fault.
        started_s: when execution began, by the monotonic clock; None if it never did.
    """

    outcome: A | ItemFault
    started_s: float | None = None
    execution_s: float = 0.0


@dataclass(eq=False, slots=True)
class Job(Generic[Q, A]):
    """One job for a worker; `WorkerPool.job` makes it.

    Attributes:
        done: gets the result; never an exception.
        timeout_s: limit of its execution; infinite for none.
        number: unique in the pool.
        attempts: workers that died or were lost before it had begun.
        losses: machines that were lost after it had begun there.
        started_s: when it began, by the monotonic clock.
        asked_back: its worker was asked to give it back if it has not begun.
        given_up: its worker was asked to give it up.
    """

    lane: object
    task: Q
    size_bytes: int
    done: asyncio.Future[Done[A]]
    timeout_s: float = math.inf
    number: int = 0
    request_id: str = field(default_factory=request_id_var.get)
    attempts: int = 0
    losses: int = 0
    started_s: float | None = None
    asked_back: bool = False
    given_up: bool = False

    def finish(self, done: Done[A]) -> None:
        """Sets the result, unless nobody waits for it."""
        if not self.done.done():
            self.done.set_result(done)


class Codec(Protocol[Q, A]):
    """A service's jobs as bytes, and what their ends mean."""

    def encode(self, task: Q) -> tuple[bytes, bytes]:
        """Kind and body of a task's frame.

        Raises:
            FrameError: it is too large.
        """

    def decode(self, task: Q, payload: bytes) -> A | ItemFault:
        """The outcome in a worker's answer.

        Raises:
            FrameError: the payload has another shape than agreed.
        """

    def fault(self, job: Job[Q, A], end: End, detail: str) -> ItemFault:
        """The fault of a job that no worker answered; `detail`, for people, may be empty."""
