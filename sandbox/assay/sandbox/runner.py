"""The methods of execution.proto, on the kit's batch service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from importlib.metadata import version
from operator import attrgetter
from typing import Any

from assay.api.common.v1 import common_pb2
from assay.api.execution.v1 import execution_pb2
from assay.kit import limits
from assay.kit.batch.answers import Room
from assay.kit.batch.service import BatchService
from assay.kit.durations import fill_duration
from assay.kit.errors import StartupError
from assay.kit.faults import ItemFault
from assay.kit.pool.link import LinkError
from assay.kit.pool.pool import PoolConfig, WorkerPool
from assay.sandbox.config import MAX_JOB_BYTES, SandboxConfig
from assay.sandbox.convert import clipped
from assay.sandbox.handler import AnyJob, PendingRun, RunHandler
from assay.sandbox.languages import MissingLanguage, Toolchains, language_info
from assay.sandbox.metrics import RunMetrics
from assay.sandbox.results import limits_to_proto
from assay.sandbox.workers import kinds
from assay.sandbox.workers.codec import RunCodec, RunJob, RunPool, SupervisorTask
from assay.sandbox.workers.place import Supervisors

_DEPTH = 2  # a supervisor never waits for us
_LET_GO_S = 10.0

_log = logging.getLogger(__name__)


class ProgramRunner:
    """Runs jobs. Belongs to the event loop that starts it."""

    def __init__(self, config: SandboxConfig, supervisors: Supervisors) -> None:
        self._config = config
        self._supervisors = supervisors
        self._pool: RunPool | None = None
        self._handler: RunHandler | None = None
        self._service: BatchService[PendingRun] | None = None
        self._listed = execution_pb2.ListLanguagesResponse()
        self.metrics = RunMetrics()

    async def start(self) -> None:
        """Starts the supervisors and has every language prove itself in them.

        Raises:
            StartupError: the supervisors do not come up, no language works, or one that the
                operator named
                does not.
        """
        config = self._config
        self._pool = WorkerPool(
            PoolConfig(
                *(config.slot_count, config.queue_items, config.queue_mb * 2**20),
                depth=_DEPTH,
                let_go_s=_LET_GO_S,
            ),
            self._supervisors.workers,
            RunCodec(),
        )
        try:
            await self._pool.start()
        except LinkError as error:
            raise StartupError(f"the sandbox does not start: {error}") from error
        self.metrics.watch(self._pool)
        served = await self._proved(self._supervisors.site.toolchains)
        self._listed = await asyncio.to_thread(self._list, served)
        self._handler = RunHandler(self._pool, served, self.metrics)
        self._service = BatchService(self._handler, self.metrics.items, config.max_batch_items)

    async def close(self) -> None:
        """Kills everything that runs. May be called at any time, and more than once."""
        pool, self._pool, self._handler, self._service = self._pool, None, None, None
        if pool is not None:
            await pool.close()

    @property
    def pool(self) -> RunPool:
        """The running pool."""
        if self._pool is None:
            raise RuntimeError("the runner is not started")
        return self._pool

    async def execute(
        self, request: execution_pb2.ExecuteRequest, *, timeout_s: float
    ) -> execution_pb2.ExecuteResponse:
        """Runs programs; one result for each job, in order.

        Args:
            request: the jobs.
            timeout_s: seconds until the caller's deadline; the answer comes slightly before it.

        Raises:
            CallError: the request as a whole is refused; nothing was run.
        """
        response = execution_pb2.ExecuteResponse()
        await self._answer(request.jobs, response, timeout_s)
        return response

    async def run_tests(
        self, request: execution_pb2.RunTestsRequest, *, timeout_s: float
    ) -> execution_pb2.RunTestsResponse:
        """Tests programs; arguments and errors as for `execute`."""
        response = execution_pb2.RunTestsResponse()
        await self._answer(request.jobs, response, timeout_s)
        return response

    def stream_run_tests(
        self, requests: AsyncIterator[execution_pb2.StreamRunTestsRequest], *, timeout_s: float
    ) -> AsyncGenerator[execution_pb2.StreamRunTestsResponse, None]:
        """Tests a stream of chunks; results come as they are ready.

        While the queue is full, the next chunk is not read.

        Raises:
            CallError: a chunk is refused; the stream ends.
        """
        handler, service = self._open()
        return service.stream(
            requests,
            attrgetter("jobs"),
            execution_pb2.StreamRunTestsResponse,
            handler.admit,  # each result may fill a message of its own
            timeout_s,
        )

    async def list_languages(
        self, request: execution_pb2.ListLanguagesRequest, *, timeout_s: float
    ) -> execution_pb2.ListLanguagesResponse:
        """The served languages and the limits. Answers at once."""
        del request, timeout_s
        return self._listed

    async def _answer(self, jobs: Sequence[AnyJob], response: Any, timeout_s: float) -> None:
        """Runs the jobs of a call, whose results share the room of one message."""
        handler, service = self._open()
        room = Room()

        def admit(item: PendingRun, message: AnyJob) -> None:
            item.room = room
            handler.admit(item, message)

        await service.answer(jobs, response, admit, timeout_s)

    def _open(self) -> tuple[RunHandler, BatchService[PendingRun]]:
        if self._handler is None or self._service is None:
            raise RuntimeError("the runner is not started")
        return self._handler, self._service

    async def _proved(self, toolchains: Toolchains) -> Toolchains:
        """The languages that pass their self-test.

        Raises:
            StartupError: none does, or one that the operator named does not.
        """
        names = sorted(toolchains.found)
        jobs = [self._probe(name) for name in names]
        self.pool.submit(jobs)
        failed: list[MissingLanguage] = []
        for name, job in zip(names, jobs, strict=True):
            outcome = (await job.done).outcome
            why = outcome.message if isinstance(outcome, ItemFault) else outcome.decode()
            if why:
                _log.error("%s is not served: %s", name, why)
                failed.append(MissingLanguage(name, why))
        served = toolchains.without(failed)
        if self._config.languages and failed:
            raise StartupError(f"--languages names {failed[0].language}: {failed[0].why}")
        if not served.found:
            raise StartupError("no language works here: " + (failed[0].why if failed else "none"))
        return served

    def _probe(self, language: str) -> RunJob:
        return self.pool.job(object(), SupervisorTask(kinds.PROBE, language.encode()), size_bytes=0)

    def _list(self, served: Toolchains) -> execution_pb2.ListLanguagesResponse:
        """What ListLanguages answers; asks the tools for their versions, once."""
        config, site = self._config, self._supervisors.site
        response = execution_pb2.ListLanguagesResponse(
            isolation_layers=site.layers,
            limits=common_pb2.BatchLimits(
                max_items=config.max_batch_items,
                max_message_bytes=limits.MAX_MESSAGE_BYTES,
                max_item_bytes=MAX_JOB_BYTES,
            ),
            max_limits=limits_to_proto(config.max_limits),
            server_version=version("assay-rl-sandbox"),
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
