"""The synchronous execution client: an `AsyncExecutionClient` on an event loop in a thread."""

from __future__ import annotations

from collections.abc import Iterable

from assay.clients.client import OnError
from assay.clients.config import ClientConfig
from assay.clients.execution.client import AsyncExecutionClient, check_execution_client
from assay.clients.execution.transport import BlockingExecutionTransport
from assay.clients.execution.types import (
    ExecutionJob,
    ExecutionResult,
    SandboxInfo,
    TestJob,
    TestResult,
)
from assay.clients.portal import SyncClient
from assay.rpc.tls import ClientTls


class ExecutionClient(SyncClient[AsyncExecutionClient]):
    """Runs programs on a sandbox, synchronously. The methods are those of `AsyncExecutionClient`.

    Args:
        target: the server's address, "host:port".
        tls: encrypts, and says whom to trust. None: plain text, for loopback.
        token: the bearer token that the operator gave you.
        timeout_s: the whole time that a call may take, queue and retries included, in seconds.
        config: batching and retries.

    Raises:
        ConfigError: No target is given, or the time-out is not positive.
    """

    def __init__(
        self,
        target: str,
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
        config: ClientConfig | None = None,
    ) -> None:
        check_execution_client(target, None, timeout_s)
        self.target = target
        self.timeout_s = timeout_s
        self._tls = tls
        self._token = token
        self._config = config or ClientConfig()
        self._start()

    def execute(
        self,
        jobs: Iterable[ExecutionJob],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[ExecutionResult]:
        """Runs programs; see `AsyncExecutionClient.execute`."""
        portal = self._open()
        return portal.run(portal.client.execute(jobs, timeout_s=timeout_s, on_error=on_error))

    def run_tests(
        self,
        jobs: Iterable[TestJob],
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[TestResult]:
        """Holds programs against tests; see `AsyncExecutionClient.run_tests`."""
        portal = self._open()
        return portal.run(portal.client.run_tests(jobs, timeout_s=timeout_s, on_error=on_error))

    def list_languages(self, *, timeout_s: float | None = None) -> SandboxInfo:
        """Asks what the sandbox runs; see `AsyncExecutionClient.list_languages`."""
        portal = self._open()
        return portal.run(portal.client.list_languages(timeout_s=timeout_s))

    def wait_ready(self, timeout_s: float = 60.0) -> SandboxInfo:
        """Waits until the sandbox answers; see `AsyncExecutionClient.wait_ready`."""
        portal = self._open()
        return portal.run(portal.client.wait_ready(timeout_s))

    def _make_client(self) -> AsyncExecutionClient:
        wire = BlockingExecutionTransport(self.target, tls=self._tls, token=self._token)
        return AsyncExecutionClient(
            self.target, timeout_s=self.timeout_s, config=self._config, transport=wire
        )
