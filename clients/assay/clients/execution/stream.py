"""One StreamRunTests stream of a client: jobs in as they arise, outcomes out as they are ready.

Not covered: opening a broken stream again. Jobs without an outcome are then faults with the
stream's own reason; `run_tests` is the call that retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from assay.api.execution.v1 import execution_pb2
from assay.clients.batching import framed_bytes
from assay.clients.config import ClientConfig
from assay.clients.convert import fault_of_error, make_fault
from assay.clients.execution.convert import test_job_to_proto, test_result_from_proto
from assay.clients.execution.transport import ExecutionTransport
from assay.clients.execution.types import SandboxInfo, TestJob, TestResult
from assay.clients.matching import check_id
from assay.rpc.errors import CallError, refuse
from assay.rpc.reasons import Reason

_JOBS_AHEAD = 256
Entry = tuple[str, TestResult]


async def stream_tests(
    transport: ExecutionTransport,
    jobs: AsyncIterable[TestJob],
    info: SandboxInfo,
    config: ClientConfig,
    deadline_s: float,
) -> AsyncGenerator[Entry, None]:
    """Tests jobs as they come and yields exactly one outcome for each, as they are ready.

    Args:
        transport: what carries the stream.
        jobs: what to test.
        info: the server's limits.
        config: how to gather chunks.
        deadline_s: when to give up, by the loop's clock.

    Raises:
        BadRequestError: ids are not unique over the stream, or too long.
    """
    stream = _Stream(info, config)
    tasks = [
        asyncio.ensure_future(stream.take(jobs)),
        asyncio.ensure_future(stream.exchange(transport, deadline_s)),
    ]
    for task in tasks:
        task.add_done_callback(stream.hand_on_defect)
    try:
        while (entry := await stream.ready.get()) is not None:
            if isinstance(entry, BaseException):
                raise entry
            yield entry
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Stream:
    """What one stream knows: jobs to send, jobs without an outcome, outcomes that are ready."""

    def __init__(self, info: SandboxInfo, config: ClientConfig) -> None:
        self._info = info
        self._config = config
        self._ids: set[str] = set()
        self._unanswered: set[str] = set()
        self._jobs: asyncio.Queue[execution_pb2.TestJob | None] = asyncio.Queue(_JOBS_AHEAD)
        self._ahead: execution_pb2.TestJob | None = None
        self._ended = False
        self.ready: asyncio.Queue[Entry | BaseException | None] = asyncio.Queue()

    def hand_on_defect(self, task: asyncio.Future[None]) -> None:
        """Lets the reader of the stream see the exception that ended one of its tasks."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.ready.put_nowait(error)

    async def take(self, jobs: AsyncIterable[TestJob]) -> None:
        """Reads the caller's jobs, and queues what can be sent."""
        async for job in jobs:
            message = self._admit(job)
            if message is not None:
                await self._jobs.put(message)
        await self._jobs.put(None)

    def _admit(self, job: TestJob) -> execution_pb2.TestJob | None:
        """The job's message; None for one that is answered with a fault here."""
        job_id = job.id or str(len(self._ids))
        if job_id in self._ids:
            raise refuse(
                Reason.DUPLICATE_ITEM_ID,
                f"the id {job_id!r} was used before in this stream; make ids unique",
            )
        check_id(job_id)
        self._ids.add(job_id)
        try:
            message = test_job_to_proto(job, job_id)
        except (ValueError, TypeError) as error:
            text = " ".join(str(error).split())[:200]
            fault = make_fault(Reason.UNSUPPORTED_INPUT, f"the job cannot be sent: {text}")
            self.ready.put_nowait((job_id, fault))
            return None
        limit = min(self._info.max_item_bytes, self._info.max_message_bytes - 16)
        if message.ByteSize() > limit:
            text = f"the job has {message.ByteSize()} bytes, and this server takes {limit}"
            self.ready.put_nowait((job_id, make_fault(Reason.ITEM_TOO_LARGE, text)))
            return None
        return message

    async def exchange(self, transport: ExecutionTransport, deadline_s: float) -> None:
        """Sends jobs and reads outcomes until every job has one."""
        remaining_s = max(deadline_s - asyncio.get_running_loop().time(), 0.001)
        responses = transport.stream_run_tests(self._requests(), timeout_s=remaining_s)
        fault = make_fault(Reason.MISSING_RESULT, "the stream ended without this job")
        try:
            async with aclosing(cast("Any", responses)):  # transports' streams are generators
                async for response in responses:
                    for result in response.results:
                        if result.id in self._unanswered:
                            self._unanswered.discard(result.id)
                            self.ready.put_nowait((result.id, test_result_from_proto(result)))
        except CallError as error:
            fault = fault_of_error(error)
            await self._drain()
        for job_id in self._unanswered:
            self.ready.put_nowait((job_id, fault))
        self.ready.put_nowait(None)

    async def _drain(self) -> None:
        """Takes the jobs that the caller still brings: each gets an outcome."""
        while not self._ended:
            job = await self._next(None)
            if job is not None:
                self._unanswered.add(job.id)

    async def _requests(self) -> AsyncIterator[execution_pb2.StreamRunTestsRequest]:
        """Chunks: what arrives within the micro-batch wait, up to its size."""
        while (first := await self._next(None)) is not None:
            chunk, size = [first], framed_bytes(first.ByteSize())
            ends_s = asyncio.get_running_loop().time() + self._config.micro_batch_wait_s
            while len(chunk) < min(self._config.micro_batch_items, self._info.max_items):
                job = await self._next(ends_s)
                if job is None:
                    break
                size += framed_bytes(job.ByteSize())
                if size > self._info.max_message_bytes:
                    self._ahead = job
                    break
                chunk.append(job)
            self._unanswered.update(job.id for job in chunk)
            yield execution_pb2.StreamRunTestsRequest(jobs=chunk)

    async def _next(self, until_s: float | None) -> execution_pb2.TestJob | None:
        """The next job; None at the end, or when the time has come first."""
        if self._ahead is not None:
            job, self._ahead = self._ahead, None
            return job
        if self._ended:
            return None
        try:
            async with asyncio.timeout_at(until_s):
                found = await self._jobs.get()
        except TimeoutError:
            return None
        self._ended = found is None
        return found
