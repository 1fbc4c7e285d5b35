"""The jobs of the worker pool, and the bounded, fair queue in which they wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from assay.reward_server.domain import Item, Outcome, VerifierSpec
from assay.rpc import queue
from assay.rpc.calls import request_id_var
from assay.rpc.queue import QueueFull

__all__ = ["Done", "FairQueue", "Job", "QueueFull"]


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a job.

    Attributes:
        outcome: a judgement or a fault.
        started_s: when execution began, by the event loop's monotonic clock; None if it never did.
        execution_s: how long it took.
    """

    outcome: Outcome
    started_s: float | None
    execution_s: float


@dataclass(eq=False, slots=True)
class Job:
    """One item for a worker.

    Attributes:
        lane: the call that it came with.
        spec: the verifier that judges.
        item: what to judge.
        timeout_s: limit of the execution.
        size_bytes: what it takes in memory, roughly.
        done: gets the result; never an exception.
        stop: kills the worker that runs the job; None while no worker does.
        request_id: of that call, for logs.
        losses: machines that were lost while they judged it.
    """

    lane: object
    spec: VerifierSpec
    item: Item
    timeout_s: float
    size_bytes: int
    done: asyncio.Future[Done]
    stop: Callable[[], None] | None = field(default=None)
    request_id: str = field(default_factory=request_id_var.get)
    losses: int = 0

    def finish(self, done: Done) -> None:
        """Sets the result, unless nobody waits for it any more."""
        if not self.done.done():
            self.done.set_result(done)


class FairQueue(queue.FairQueue[Job]):
    """Jobs by lane, lanes in turn; see `assay.rpc.queue`."""
