"""The asynchronous client of a sandbox: batches, splits, retries, deadlines; any transport.

    async with AsyncExecutionClient("127.0.0.1:50052") as client:
        [result] = await client.execute([ExecutionJob(Program("python", "print(6 * 7)"))])

What holds, whatever happens on the way: every job gets exactly one outcome, in the jobs' order; an
outcome is matched to its job by id; what a program did is never made up. The reasons for a fault
that the client itself finds are those of `assay.clients.client`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable

from assay.api.execution.v1 import execution_pb2
from assay.clients.calls import BatchClient, CallKind
from assay.clients.client import OnError
from assay.clients.config import ClientConfig
from assay.clients.execution import convert
from assay.clients.execution.stream import stream_tests
from assay.clients.execution.transport import ExecutionTransport, GrpcExecutionTransport
from assay.clients.execution.types import (
    ExecutionJob,
    ExecutionResult,
    SandboxInfo,
    TestJob,
    TestResult,
)
from assay.clients.life import check_timeout
from assay.rpc.errors import ConfigError
from assay.rpc.tls import ClientTls


class AsyncExecutionClient(BatchClient[ExecutionTransport, SandboxInfo]):
    """Runs programs on a sandbox. Belongs to the event loop that first uses it.

    Args:
        target: the server's address, "host:port".
        tls: encrypts, and says whom to trust. None: plain text, for loopback.
        token: the bearer token that the operator gave you.
        timeout_s: the whole time that a call may take, queue and retries included, in seconds.
        config: batching and retries.
        transport: what carries messages instead of gRPC; then `target` only names it in errors.

    Raises:
        ConfigError: Neither target nor transport is given, or the time-out is not positive.
    """

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
        config: ClientConfig | None = None,
        transport: ExecutionTransport | None = None,
    ) -> None:
        check_execution_client(target, transport, timeout_s)
        wire = transport or GrpcExecutionTransport(target, tls=tls, token=token)
        super().__init__(
            wire,
            target=target,
            server="the sandbox",
            noun="job",
            timeout_s=timeout_s,
            config=config,
        )
        self._executions: CallKind[ExecutionResult] = CallKind(
            convert.job_to_proto,
            lambda jobs: execution_pb2.ExecuteRequest(jobs=jobs),
            lambda request, timeout_s: wire.execute(request, timeout_s=timeout_s),
            lambda _, result: convert.result_from_proto(result),
        )
        self._tests: CallKind[TestResult] = CallKind(
            convert.test_job_to_proto,
            lambda jobs: execution_pb2.RunTestsRequest(jobs=jobs),
            lambda request, timeout_s: wire.run_tests(request, timeout_s=timeout_s),
            lambda _, result: convert.test_result_from_proto(result),
        )

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
        return await self._run(self._executions, list(jobs), timeout_s, on_error)

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
        return await self._run(self._tests, list(jobs), timeout_s, on_error)

    def stream_tests(
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
        return self._stream(jobs, timeout_s)

    async def _stream(
        self, jobs: AsyncIterable[TestJob], timeout_s: float | None
    ) -> AsyncIterator[tuple[str, TestResult]]:
        deadline_s = self._begin(timeout_s)
        info = await self._server_info(deadline_s)
        results = stream_tests(self._transport, jobs, info, self._config, deadline_s)
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
        response = await self._transport.list_languages(request, timeout_s=timeout_s)
        return convert.info_from_proto(response)


def check_execution_client(target: str, transport: object, timeout_s: float) -> None:
    """Checks what a client, awaited or not, is made with.

    Raises:
        ConfigError: Neither target nor transport is given, or the time-out is not positive.
    """
    if not target and transport is None:
        raise ConfigError("no address of a sandbox; pass one, such as '127.0.0.1:50052'")
    check_timeout(timeout_s)
