"""The jobs of a pool, what comes of them, and what a service says about both."""

from __future__ import annotations

import asyncio
import enum
import math
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from assay.kit.faults import Fault
from assay.kit.log_format import request_id_var

Q = TypeVar("Q")
A = TypeVar("A")


class End(enum.Enum):
    """How a job ended that no worker answered; each is a fault, and the service says which."""

    DIED = "died"
    """Its worker died in the middle of it."""
    LOST = "lost"
    """The machine of its worker was lost, and so was the one that tried it again."""
    UNTAKEN = "untaken"
    """No worker lived long enough to begin it."""
    EXPIRED = "expired"
    """Its time-out passed, and its worker was killed."""
    EXHAUSTED = "exhausted"
    """Its worker came so near to its limit of memory that nothing it said counts."""
    UNSENDABLE = "unsendable"
    """It is too large for a frame."""
    UNREADABLE = "unreadable"
    """The answer is not of the agreed shape; its worker was killed."""
    FAILED = "failed"
    """The pool or the codec failed on it, a defect of ours."""
    DRAINING = "draining"
    """The pool was closed before it was done."""


@dataclass(frozen=True, slots=True)
class Done(Generic[A]):
    """What came of a job.

    Attributes:
        outcome: what the job gave, or a fault.
        started_s: when execution began, by the monotonic clock; None if it never did.
        execution_s: how long it took.
    """

    outcome: A | Fault
    started_s: float | None = None
    execution_s: float = 0.0


@dataclass(eq=False, slots=True)
class Job(Generic[Q, A]):
    """One job for a worker; `Pool.job` makes it.

    Attributes:
        lane: the call that it came with; see `assay.kit.queue`.
        task: what is to be done, as the codec knows it.
        size_bytes: what it takes in memory, roughly.
        done: gets the result; never an exception.
        timeout_s: limit of its execution; infinite for none.
        number: its number on the links; unique in the pool.
        request_id: of its call, for logs.
        attempts: workers that died or were lost before it had begun.
        losses: machines that were lost after it had begun there.
        started_s: when it began, by the monotonic clock.
        asked_back: its worker was asked to give it back if it has not begun.
        given_up: its worker was told to give it up.
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
        """Sets the result, unless nobody waits for it any more."""
        if not self.done.done():
            self.done.set_result(done)


class Codec(Protocol[Q, A]):
    """What a service says about its jobs: their bytes, and what the end of one means."""

    def encode(self, task: Q) -> tuple[bytes, bytes]:
        """The kind and the body of a task's frame.

        Raises:
            FrameError: it is too large for a worker.
        """

    def decode(self, task: Q, payload: bytes) -> A | Fault:
        """The outcome that the answer of a worker holds.

        Args:
            task: what was to be done.
            payload: of the answer.

        Raises:
            FrameError: it is not of the agreed shape.
        """

    def fault(self, job: Job[Q, A], end: End, detail: str) -> Fault:
        """The fault of a job that no worker answered.

        Args:
            job: the job.
            end: how it ended.
            detail: what went wrong, for people; may be empty.
        """
