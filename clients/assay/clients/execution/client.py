"""The clients of a sandbox: `AsyncExecutionClient`, and `ExecutionClient` without `await`.

    async with AsyncExecutionClient("127.0.0.1:50052") as client:
        [result] = await client.execute([ExecutionJob(Program("python", "print(6 * 7)"))])

What holds, and which faults a client itself finds: `assay.clients.core.client`. What a program did
is never made up.
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
    """Runs programs on a sandbox. Its arguments are those of `AsyncRewardClient`.

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
        """Runs programs, in as many calls as the server's limits ask for.

        Args:
            jobs: what to run. Those without an id are numbered from 0.
            timeout_s: the whole time this may take, in seconds. None: the client's.
            on_error: what becomes of a call that failed after its retries: a fault of each of its
                jobs, or an exception.

        Returns:
            An execution or a fault for each job, in the jobs' order.

        Raises:
            BadRequestError: Ids are not unique, or too long.
            CallError: A call failed, and on_error is "raise".
            ConfigError: The client is closed, or belongs to another event loop.
        """
        return await self._run(_EXECUTIONS, list(jobs), timeout_s, on_error)

    async def run_tests(
        self,
        jobs: Iterable[TestJob],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[TestResult]:
        """Holds programs against tests, in as many calls as the server's limits ask for.

        Args, errors: as `execute`.

        Returns:
            A report or a fault for each job, in the jobs' order.
        """
        return await self._run(_TESTS, list(jobs), timeout_s, on_error)

    async def stream_tests(
        self, jobs: AsyncIterable[TestJob], *, timeout_s: float | None = None
    ) -> AsyncIterator[tuple[str, TestResult]]:
        """Holds programs against tests as they come; yields ids and outcomes as they are ready.

        Args:
            jobs: what to test. Those without an id are numbered from 0.
            timeout_s: the whole time that the stream may take, in seconds. None: the client's.

        Raises:
            BadRequestError: Ids are not unique over the stream, or too long.
            ConfigError: The client is closed, or belongs to another event loop.
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
        """Asks what the sandbox runs, how it isolates, and its limits.

        Raises:
            CallError: The call failed after its retries.
            ConfigError: The client is closed, or belongs to another event loop.
        """
        return await self._refresh_info(timeout_s)

    async def _fetch_info(self, timeout_s: float) -> SandboxInfo:
        request = execution_pb2.ListLanguagesRequest()
        method = f"{_SERVICE}.ListLanguages"
        response = await self._transport.call(method, request, timeout_s=timeout_s)
        return convert.info_from_proto(response)

    def _limits_of(self, info: SandboxInfo) -> SandboxInfo:
        return info


class ExecutionClient(SyncClient[AsyncExecutionClient, SandboxInfo]):
    """Runs programs on a sandbox, synchronously. The methods are those of `AsyncExecutionClient`.

    It may be shared by threads, survives a fork, and can be pickled; its arguments are those of
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
        """Runs programs; see `AsyncExecutionClient.execute`."""
        return self._run(lambda c: c.execute(jobs, timeout_s=timeout_s, on_error=on_error))

    def run_tests(
        self,
        jobs: Iterable[TestJob],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[TestResult]:
        """Holds programs against tests; see `AsyncExecutionClient.run_tests`."""
        return self._run(lambda c: c.run_tests(jobs, timeout_s=timeout_s, on_error=on_error))

    def list_languages(self, *, timeout_s: float | None = None) -> SandboxInfo:
        """Asks what the sandbox runs; see `AsyncExecutionClient.list_languages`."""
        return self._run(lambda client: client.list_languages(timeout_s=timeout_s))
