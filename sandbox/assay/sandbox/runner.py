"""The runner: jobs in, one run, report or fault for each out. No gRPC here but its messages.

What it promises is the contract of execution.proto: outcomes and faults together equal the jobs, in
their order; a call that is refused has run nothing; what is not finished shortly before the
deadline is a fault, and what is finished is returned; nothing goes on for a call that is gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from importlib.metadata import version

from assay.api.common.v1 import common_pb2
from assay.api.execution.v1 import execution_pb2
from assay.rpc import limits
from assay.rpc.batches import answer_by_s, check_chunk
from assay.rpc.errors import StartupError
from assay.sandbox import spans
from assay.sandbox.config import MAX_JOB_BYTES, RunnerConfig
from assay.sandbox.convert import clipped
from assay.sandbox.languages import Missing, Toolchains, language_info
from assay.sandbox.metrics import RunMetrics
from assay.sandbox.results import fill_duration, limits_to_proto
from assay.sandbox.slots import frames
from assay.sandbox.slots.jobs import Fault
from assay.sandbox.slots.link import LinkError, Wardens
from assay.sandbox.slots.pool import Pool, PoolConfig
from assay.sandbox.stream import TestStream
from assay.sandbox.tickets import (
    AnyJob,
    Desk,
    Room,
    Ticket,
    wait_for_jobs,
)

_log = logging.getLogger(__name__)


class Runner:
    """Runs jobs. Belongs to the event loop that starts it.

    Args:
        config: how programs are run.
        wardens: where they are run.

    Attributes:
        metrics: what was run so far.
    """

    def __init__(self, config: RunnerConfig, wardens: Wardens) -> None:
        self._config = config
        self._wardens = wardens
        self._pool: Pool | None = None
        self._desk: Desk | None = None
        self._listed = execution_pb2.ListLanguagesResponse()
        self.metrics = RunMetrics()

    async def start(self) -> None:
        """Starts the wardens and has every language prove itself in them.

        Raises:
            StartupError: the wardens do not come up, no language works, or one that the operator
                named does not.
        """
        config = self._config
        self._pool = Pool(
            PoolConfig(config.slot_count, config.queue_items, config.queue_mb * 2**20),
            self._wardens,
        )
        try:
            await self._pool.start()
        except LinkError as error:
            raise StartupError(f"the sandbox does not start: {error}") from error
        self.metrics.watch(self._pool)
        served = await self._proved(self._wardens.site.toolchains)
        self._listed = await asyncio.to_thread(self._list, served)
        self._desk = Desk(self._pool, served)

    async def close(self) -> None:
        """Kills everything that runs. May be called at any time, and more than once."""
        pool, self._pool, self._desk = self._pool, None, None
        if pool is not None:
            await pool.close()

    @property
    def pool(self) -> Pool:
        """The running pool."""
        if self._pool is None:
            raise RuntimeError("the runner is not started")
        return self._pool

    async def execute(
        self, request: execution_pb2.ExecuteRequest, *, timeout_s: float
    ) -> execution_pb2.ExecuteResponse:
        """Runs programs.

        Args:
            request: the jobs.
            timeout_s: seconds until the caller's deadline; the answer comes slightly before it.

        Returns:
            One result for each job, in order.

        Raises:
            CallError: the request as a whole is refused; nothing was run.
        """
        response = execution_pb2.ExecuteResponse()
        for ticket in await self._run(request.jobs, timeout_s):
            if isinstance(ticket.result, execution_pb2.ExecutionResult):
                response.results.append(ticket.result)
        return response

    async def run_tests(
        self, request: execution_pb2.RunTestsRequest, *, timeout_s: float
    ) -> execution_pb2.RunTestsResponse:
        """Holds programs against tests; arguments and errors as for `execute`."""
        response = execution_pb2.RunTestsResponse()
        for ticket in await self._run(request.jobs, timeout_s):
            if isinstance(ticket.result, execution_pb2.TestJobResult):
                response.results.append(ticket.result)
        return response

    def stream_run_tests(
        self, requests: AsyncIterator[execution_pb2.StreamRunTestsRequest], *, timeout_s: float
    ) -> AsyncIterator[execution_pb2.StreamRunTestsResponse]:
        """Tests a stream of chunks; results come as they are ready.

        A full queue does not end a stream: the next chunk is read when there is room for it.

        Raises:
            CallError: a chunk is refused; the stream ends.
        """
        stream = TestStream(
            self._open_desk(), self._config.max_batch_items, timeout_s, self.metrics
        )
        return stream.run(requests)

    async def list_languages(
        self, request: execution_pb2.ListLanguagesRequest, *, timeout_s: float
    ) -> execution_pb2.ListLanguagesResponse:
        """Says what is run here, and the limits. Answers at once."""
        del request, timeout_s
        return self._listed

    async def _run(self, messages: Sequence[AnyJob], timeout_s: float) -> list[Ticket]:
        arrived_s = time.monotonic()
        check_chunk(messages, set(), self._config.max_batch_items, noun="job")
        desk = self._open_desk()
        tickets = desk.issue(messages, arrived_s, Room())
        waited_for = len(tickets)
        self.metrics.items.accepted(waited_for)
        try:
            await wait_for_jobs(tickets, answer_by_s(arrived_s, timeout_s))
            waited_for = 0
        finally:
            self.metrics.items.abandoned(waited_for)
            for ticket in tickets:
                desk.close(ticket)
        self.metrics.add(tickets)
        spans.note(tickets)
        return tickets

    def _open_desk(self) -> Desk:
        if self._desk is None:
            raise RuntimeError("the runner is not started")
        return self._desk

    async def _proved(self, toolchains: Toolchains) -> Toolchains:
        """The languages that pass their self-test; the wardens take them in turn.

        Raises:
            StartupError: none does, or one that the operator named does not.
        """
        names = sorted(toolchains.found)
        jobs = [self.pool.job(object(), frames.PROBE, name.encode()) for name in names]
        self.pool.submit(jobs)
        failed: list[Missing] = []
        for name, job in zip(names, jobs, strict=True):
            outcome = (await job.done).outcome
            why = outcome.message if isinstance(outcome, Fault) else outcome.decode()
            if why:
                _log.error("%s is not served: %s", name, why)
                failed.append(Missing(name, why))
        served = toolchains.without(failed)
        if self._config.languages and failed:
            raise StartupError(f"--languages names {failed[0].language}: {failed[0].why}")
        if not served.found:
            raise StartupError("no language works here: " + (failed[0].why if failed else "none"))
        return served

    def _list(self, served: Toolchains) -> execution_pb2.ListLanguagesResponse:
        """What ListLanguages answers; asks the tools for their versions, once."""
        config, site = self._config, self._wardens.site
        response = execution_pb2.ListLanguagesResponse(
            isolation_layers=site.layers,
            limits=common_pb2.BatchLimits(
                max_items=config.max_batch_items,
                max_message_bytes=limits.MAX_MESSAGE_BYTES,
                max_item_bytes=MAX_JOB_BYTES,
            ),
            max_limits=limits_to_proto(config.max_limits),
            server_version=version("assay-sandbox"),
        )
        fill_duration(response.limits.max_item_timeout, config.max_wall_s)
        for name in sorted(served.found):
            info = language_info(served, name, site.versions.get(name))
            response.languages.add(
                name=info.name,
                toolchain_version=info.toolchain_version,
                default_limits=limits_to_proto(clipped(info.default_limits, config.max_limits)),
                test_kinds=info.test_kinds,
            )
        return response
