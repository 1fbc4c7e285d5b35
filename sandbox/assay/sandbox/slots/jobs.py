"""The jobs of the pool, and what comes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.rpc import queue


@dataclass(frozen=True, slots=True)
class Fault:
    """We could not run the job: a value, not an exception.

    Attributes:
        reason: from the lexicon of assay.rpc.reasons.
        message: what happened, in one line.
        facts: for programs.
    """

    reason: str
    message: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a job.

    Attributes:
        outcome: what the warden answered, bytes of a message; or a fault.
        started_s: when execution began, by the monotonic clock; None if it never did.
        execution_s: how long it took.
    """

    outcome: bytes | Fault
    started_s: float | None = None
    execution_s: float = 0.0


@dataclass(eq=False, slots=True)
class Job:
    """One job for a warden.

    Attributes:
        lane: the call that it came with.
        kind: the kind of its frame.
        payload: its bytes.
        done: gets the result; never an exception.
        number: its number on the links; unique in the pool.
        attempts: wardens that died or gave it back before it had begun.
        started_s: when it began, by the monotonic clock.
        asked_back: the warden was asked to give it back if it has not begun.
        given_up: the warden was told to give it up.
        losses: machines that were lost after it had begun there.
    """

    lane: object
    kind: bytes
    payload: bytes
    done: asyncio.Future[Done]
    number: int = 0
    attempts: int = 0
    started_s: float | None = None
    asked_back: bool = False
    given_up: bool = False
    losses: int = 0

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, roughly."""
        return len(self.payload)

    def finish(self, done: Done) -> None:
        """Sets the result, unless nobody waits for it any more."""
        if not self.done.done():
            self.done.set_result(done)


class JobQueue(queue.FairQueue[Job]):
    """Jobs by lane, lanes in turn; see `assay.rpc.queue`."""
