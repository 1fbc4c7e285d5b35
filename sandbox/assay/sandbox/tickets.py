"""From jobs to results: each job of a call gets a ticket, each ticket becomes exactly one result.

A ticket is settled at once (a job that is too large, a language that is not served) or by the pool.
`Desk` issues the tickets of a request, all or none; whoever holds them waits and closes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from assay.api.execution.v1 import execution_pb2
from assay.rpc import limits
from assay.rpc.calls import request_id_var
from assay.rpc.errors import make_status, refuse
from assay.rpc.queue import Lane, QueueFull
from assay.rpc.reasons import Reason
from assay.sandbox.config import MAX_JOB_BYTES
from assay.sandbox.domain import SandboxFault
from assay.sandbox.languages import Toolchains
from assay.sandbox.results import fill_duration, strip_outputs
from assay.sandbox.slots import frames
from assay.sandbox.slots.jobs import Done, Fault, Job
from assay.sandbox.slots.pool import Pool

AnyJob = execution_pb2.ExecutionJob | execution_pb2.TestJob
Result = execution_pb2.ExecutionResult | execution_pb2.TestJobResult

LATE = Fault("DEADLINE_EXCEEDED", "the call's deadline came before the job was done")
# What the results of one answer may hold in all: below the greatest message, less its framing.
ANSWER_BYTES = limits.MAX_MESSAGE_BYTES - 2**20


class Room:
    """What the results of one answer may still hold."""

    def __init__(self, room_bytes: int = ANSWER_BYTES) -> None:
        self._left_bytes = room_bytes

    def fit(self, result: Result) -> Result:
        """The result; a report shortened, or a fault in place of it, where there is no room."""
        if result.ByteSize() > self._left_bytes and isinstance(result, execution_pb2.TestJobResult):
            strip_outputs(result.report)
        if result.ByteSize() > self._left_bytes:
            status = make_status(
                Reason.MESSAGE_TOO_LARGE,
                "the answer of this call has no room for the job's output: send fewer jobs in one "
                "call, or lower limits.output_bytes",
            )
            result.fault.CopyFrom(status)
        self._left_bytes -= min(result.ByteSize(), self._left_bytes)
        return result


@dataclass(eq=False, slots=True)
class Ticket:
    """One job on its way to its result.

    Attributes:
        item_id: the caller's id.
        kind: the class of its result.
        arrived_s: when the request arrived, by the monotonic clock.
        room: what the call's answer may still hold.
        job: the job in the pool, while it is waited for.
        result: set once.
        language: of the program, by the name that is served; empty where it is not.
    """

    item_id: str
    kind: type[Result]
    arrived_s: float
    room: Room
    job: Job | None = None
    result: Result | None = None
    language: str = ""

    def settle(self, done: Done) -> None:
        """Sets the result."""
        outcome = done.outcome
        if isinstance(outcome, Fault):
            result = self.kind()
            result.fault.CopyFrom(
                make_status(outcome.reason, outcome.message, metadata=outcome.facts)
            )
        else:
            result = self.kind.FromString(outcome)
        result.id = self.item_id
        began_s = time.monotonic() if done.started_s is None else done.started_s
        fill_duration(result.timings.queue, began_s - self.arrived_s)
        fill_duration(result.timings.execution, done.execution_s)
        self.result = self.room.fit(result)

    def land(self) -> None:
        """Settles the ticket with what its job, which is done, came to."""
        job, self.job = self.job, None
        if job is not None:
            self.settle(job.done.result())


class Desk:
    """Issues tickets. Belongs to one event loop.

    Args:
        pool: runs the jobs.
        toolchains: the languages that are served.
    """

    def __init__(self, pool: Pool, toolchains: Toolchains) -> None:
        self._pool = pool
        self._toolchains = toolchains

    def issue(self, messages: Sequence[AnyJob], arrived_s: float, room: Room) -> list[Ticket]:
        """A ticket for each job, in order; jobs that can be run are in the pool.

        Args:
            messages: the jobs of one request, or of one chunk of a stream; of one kind.
            arrived_s: when they arrived, by the monotonic clock.
            room: what the answer may hold.

        Raises:
            CallError: QUEUE_FULL; nothing was launched.
        """
        lane = Lane()
        tickets: list[Ticket] = []
        for message in messages:
            executes = isinstance(message, execution_pb2.ExecutionJob)
            result = execution_pb2.ExecutionResult if executes else execution_pb2.TestJobResult
            ticket = Ticket(message.id, result, arrived_s, room)
            tickets.append(ticket)
            payload = message.SerializeToString()
            try:
                ticket.language = self._toolchains.get(message.program.language)[0].name
                trouble = _trouble(len(payload))
            except SandboxFault as fault:
                trouble = Fault(fault.reason, fault.message, fault.facts)
            if trouble is not None:
                ticket.settle(Done(trouble))
                continue
            kind = frames.EXECUTE if executes else frames.TESTS
            job = frames.pack_job(request_id_var.get(), payload)
            ticket.job = self._pool.job(lane, kind, job)
        try:
            self._pool.submit([ticket.job for ticket in tickets if ticket.job is not None])
        except QueueFull:
            raise refuse(
                Reason.QUEUE_FULL,
                f"{self._pool.queued} jobs wait already; none of this request was taken",
                retry_after_s=self._pool.retry_after_s(),
            ) from None
        return tickets

    def close(self, ticket: Ticket, fault: Fault = LATE) -> None:
        """Gives up what the ticket waits for; a ticket without a result gets the fault."""
        job, ticket.job = ticket.job, None
        if job is not None:
            self._pool.cancel(job)
        if ticket.result is None:
            ticket.settle(Done(fault))

    async def wait_for_room(self, messages: Sequence[AnyJob]) -> None:
        """Waits until the queue can take so many jobs."""
        await self._pool.wait_to_fit(len(messages), sum(m.ByteSize() for m in messages))


def _trouble(size_bytes: int) -> Fault | None:
    """What keeps a job of this size from the pool."""
    if size_bytes <= MAX_JOB_BYTES:
        return None
    text = f"the job has {size_bytes} bytes, the limit is {MAX_JOB_BYTES}"
    return Fault("ITEM_TOO_LARGE", text)


async def wait_for_jobs(tickets: Sequence[Ticket], deadline_s: float) -> None:
    """Waits until every job is done or the deadline comes; settles those that are done.

    Each is settled as it comes, and nothing but its result is kept: what the jobs of one call wrote
    never lies here all at once, only what the call's answer has room for.
    """
    left = _Countdown([ticket for ticket in tickets if ticket.job is not None])
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, deadline_s - time.monotonic())):
            await left.done.wait()


class _Countdown:
    """Settles tickets as their jobs end, and tells when all have."""

    def __init__(self, tickets: Sequence[Ticket]) -> None:
        self.done = asyncio.Event()
        self._left = len(tickets)
        if not tickets:
            self.done.set()
        for ticket in tickets:
            if ticket.job is not None:
                ticket.job.done.add_done_callback(partial(self._land, ticket))

    def _land(self, ticket: Ticket, done: asyncio.Future[Done]) -> None:
        if not done.cancelled():
            ticket.land()
        self._left -= 1
        if not self._left:
            self.done.set()
