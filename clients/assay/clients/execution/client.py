"""The clients of a sandbox: `AsyncExecutionClient`, and `ExecutionClient` without `await`.

    async with AsyncExecutionClient("127.0.0.1:50052") as client:
        [result] = await client.execute([ExecutionJob(Program("python", "print(6 * 7)"))])

`assay.clients.core.client` states the guarantees, and the faults that a client makes itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable

from assay.api.execution.v1 import execution_pb2
from assay.clients.core.client import CallKind, OnError, ServiceClient
from assay.clients.core.portal import SyncClient
from assay.clients.core.streaming import run_stream
from assay.clients.execution import convert
from assay.clients.execution.types import (
    ExecutionJob,
    ExecutionResult,
    SandboxInfo,
    TestJob,
    TestResult,
)

_SERVICE = "assay.api.execution.v1.ExecutionService"

_EXECUTIONS: CallKind[ExecutionResult] = CallKind(
    method=f"{_SERVICE}.Execute",
    encode=convert.job_to_proto,
    request=lambda jobs: execution_pb2.ExecuteRequest(jobs=jobs),
    decode=lambda _, result: convert.result_from_proto(result),
)
_TESTS: CallKind[TestResult] = CallKind(
    method=f"{_SERVICE}.RunTests",
    encode=convert.test_job_to_proto,
    request=lambda jobs: execution_pb2.RunTestsRequest(jobs=jobs),
    decode=lambda _, result: convert.test_result_from_proto(result),
)
_STREAMED: CallKind[tuple[str, TestResult]] = CallKind(
    method=f"{_SERVICE}.StreamRunTests",
    encode=convert.test_job_to_proto,
    request=lambda jobs: execution_pb2.StreamRunTestsRequest(jobs=jobs),
    decode=lambda sent, result: (sent.id, convert.test_result_from_proto(result)),
    fault=lambda job_id, fault: (job_id, fault),
)


class AsyncExecutionClient(ServiceClient[SandboxInfo]):
    """Runs programs on a sandbox; arguments, time-outs and errors are those of `AsyncRewardClient`.

    Belongs to the event loop that first uses it.
    """

    server = "sandbox"
    port = 50052
    noun = "job"

    async def execute(
        self,
        jobs: Iterable[ExecutionJob],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[ExecutionResult]:
        """Runs programs, in as many calls as the server's limits require.

        Jobs without an id are numbered from 0. Results have the jobs' order: an execution or a
        fault each.
        """
        return await self._run(_EXECUTIONS, list(jobs), timeout_s, on_error)

    async def run_tests(
        self,
        jobs: Iterable[TestJob],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[TestResult]:
        """Tests programs: a report or a fault for each job, otherwise as `execute`."""
        return await self._run(_TESTS, list(jobs), timeout_s, on_error)

    async def stream_tests(
        self, jobs: AsyncIterable[TestJob], *, timeout_s: float | None = None
    ) -> AsyncIterator[tuple[str, TestResult]]:
        """Tests programs as they come; yields ids and outcomes as they are ready.

        Jobs without an id are numbered from 0. `timeout_s` is for the whole stream.
        """
        deadline_s = self._begin(timeout_s)
        info = await self._server_info(deadline_s)
        results = run_stream(
            self._transport,
            _STREAMED,
            jobs,
            limits=info,
            config=self._config,
            deadline_s=deadline_s,
            noun=self.noun,
        )
        async with contextlib.aclosing(results):
            async for entry in results:
                yield entry

    async def list_languages(self, *, timeout_s: float | None = None) -> SandboxInfo:
        """Languages, isolation and limits of the sandbox. Raises CallError after its retries."""
        return await self._refresh_info(timeout_s)

    async def _fetch_info(self, timeout_s: float) -> SandboxInfo:
        request = execution_pb2.ListLanguagesRequest()
        method = f"{_SERVICE}.ListLanguages"
        response = await self._transport.call(method, request, timeout_s=timeout_s)
        return convert.info_from_proto(response)

    def _limits_of(self, info: SandboxInfo) -> SandboxInfo:
        return info


class ExecutionClient(SyncClient[AsyncExecutionClient, SandboxInfo]):
    """Runs programs on a sandbox, synchronously, with the methods of `AsyncExecutionClient`.

    Threads may share it; it survives a fork and can be pickled. Its arguments are those of
    `RewardClient`.
    """

    _asynchronous = AsyncExecutionClient

    def execute(
        self,
        jobs: Iterable[ExecutionJob],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[ExecutionResult]:
        """See `AsyncExecutionClient.execute`."""
        return self._run(lambda c: c.execute(jobs, timeout_s=timeout_s, on_error=on_error))

    def run_tests(
        self,
        jobs: Iterable[TestJob],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[TestResult]:
        """See `AsyncExecutionClient.run_tests`."""
        return self._run(lambda c: c.run_tests(jobs, timeout_s=timeout_s, on_error=on_error))

    def list_languages(self, *, timeout_s: float | None = None) -> SandboxInfo:
        """See `AsyncExecutionClient.list_languages`."""
        return self._run(lambda client: client.list_languages(timeout_s=timeout_s))
