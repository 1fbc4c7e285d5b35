"""The sandbox for SandboxFusion's and Piston's endpoints: one answer or one fault for a call.

They ask the runner of their own process through the client that others use over gRPC: it numbers
jobs, splits large calls, and retries within the deadline where the queue is full. All jobs of a
call are of one program, so output that no answer has room for is its own end, `output-limit`.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from assay.clients import LocalTransport
from assay.clients.config import BETWEEN_SERVICES
from assay.clients.execution import (
    AsyncExecutionClient,
    Execution,
    ExecutionJob,
    ExecutionResult,
    Output,
    SandboxInfo,
    TestJob,
    TestReport,
)
from assay.clients.faults import fault_of_error
from assay.clients.types import Fault
from assay.compat.fields import BadField
from assay.compat.programs import fit
from assay.kit.calls import add_log_fields
from assay.kit.errors import CallError
from assay.kit.http import operations as op
from assay.kit.http.config import MAX_TIMEOUT_S
from assay.kit.http.front import TIMEOUT_HEADER
from assay.kit.reasons import Reason
from assay.sandbox.http import SandboxFront

WAIT_S = 8.0
"""How long a call may wait in queues by default, in seconds."""

WAIT = op.query("wait_s", "Seconds that the call may wait for a slot; 8 where it is not said.")

Endpoint = Callable[[Request], Awaitable[Response]]

_INFO_S = 60.0
# Each program is a call of its own, and a caller's queue is the sandbox's.
_CONFIG = replace(BETWEEN_SERVICES, max_concurrent_calls=1024)


class NotRunError(Exception):
    """The sandbox could not run what it was sent.

    Attributes:
        fault: why.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Sound:
    """Remembers callers' code that has worked once, so that what breaks it later is at fault.

    The `most` latest used ones stay.
    """

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._keys: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, texts: tuple[str, ...]) -> bool:
        key = self._key(texts)
        if key in self._keys:
            self._keys.move_to_end(key)
        return key in self._keys

    def add(self, texts: tuple[str, ...]) -> None:
        """Remembers that it works."""
        self._keys[self._key(texts)] = None
        if len(self._keys) > self._most:
            self._keys.popitem(last=False)

    @staticmethod
    def _key(texts: tuple[str, ...]) -> bytes:
        return hashlib.sha256(repr(texts).encode()).digest()


class Sandbox:
    """The sandbox, for formats that answer a call with one status.

    Args:
        front: has the runner, and the caller's quota.

    Attributes:
        sound: checkers and other code of callers that has worked.
    """

    def __init__(self, front: SandboxFront) -> None:
        self._front = front
        self._client = AsyncExecutionClient(
            "this sandbox",
            transport=LocalTransport(front.runner, owned=False),
            config=_CONFIG,
        )
        self._info: SandboxInfo | None = None
        self._asked_s = -math.inf
        self.sound = Sound()

    async def info(self, deadline_s: float) -> SandboxInfo:
        """What the sandbox runs, asked once a minute.

        Raises:
            NotRunError: it does not answer.
        """
        now_s = asyncio.get_running_loop().time()
        if self._info is None or now_s > self._asked_s + _INFO_S:
            try:
                self._info = await self._client.list_languages(timeout_s=self._left(deadline_s))
            except CallError as error:
                raise NotRunError(fault_of_error(error)) from error
            self._asked_s = now_s
        return self._info

    async def execute(self, jobs: list[ExecutionJob], deadline_s: float) -> list[Execution]:
        """Runs programs within the caller's quota; jobs without a CPU limit get one.

        `deadline_s` is by the clock of the loop.

        Raises:
            NotRunError: one of them could not be run; the first fault counts.
        """
        with await self.admit(len(jobs), deadline_s):
            info = await self.info(deadline_s)
            fitted = [fit(job, info.max_limits) for job in jobs]
            answers = await self._client.execute(fitted, timeout_s=self._left(deadline_s))
        results = [_judged(each) for each in answers]
        ran = [result for result in results if isinstance(result, Execution)]
        if len(ran) < len(results):
            add_log_fields(faults=len(results) - len(ran))
            raise NotRunError(next(each for each in results if isinstance(each, Fault)))
        return ran

    async def test(self, job: TestJob, deadline_s: float) -> TestReport:
        """Holds a program against tests within the caller's quota; errors as `execute`."""
        with await self.admit(1, deadline_s):
            [report] = await self._client.run_tests([job], timeout_s=self._left(deadline_s))
        if isinstance(report, Fault):
            add_log_fields(faults=1)
            raise NotRunError(report)
        return report

    async def admit(self, items: int, deadline_s: float) -> ExitStack:
        """Holds the caller's quota until the stack is closed; waits for it where it is used up.

        Raises:
            NotRunError: QUOTA_EXCEEDED until the deadline.
        """
        while True:
            stack = ExitStack()
            try:
                stack.enter_context(self._front.charged(items))
            except CallError as error:
                pause_s = error.retry_after_s
                if pause_s is None or pause_s >= self._left(deadline_s):
                    raise NotRunError(fault_of_error(error)) from error
                await asyncio.sleep(max(pause_s, 0.01))
            else:
                return stack

    @staticmethod
    def _left(deadline_s: float) -> float:
        return max(0.001, deadline_s - asyncio.get_running_loop().time())


def _judged(result: ExecutionResult) -> ExecutionResult:
    """The result; one that is too long for an answer is the program's `output-limit`."""
    if isinstance(result, Fault) and result.reason == Reason.MESSAGE_TOO_LARGE:
        words = result.message.encode()
        return Execution("output-limit", stderr=Output(words, total_bytes=len(words)))
    return result


def deadline_s(front: SandboxFront, request: Request, runs_s: float) -> float:
    """When the answer is due, by the clock of the loop; programs may take `runs_s` in all.

    Raises:
        BadField: `wait_s` is no number of seconds.
    """
    if TIMEOUT_HEADER in request.headers:
        allowed_s = front.timeout_s(request)
    else:
        allowed_s = min(MAX_TIMEOUT_S, runs_s + _wait_s(request))
    return asyncio.get_running_loop().time() + allowed_s


def _wait_s(request: Request) -> float:
    offered = request.query_params.get("wait_s")
    if offered is None:
        return WAIT_S
    try:
        seconds = float(offered)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MAX_TIMEOUT_S:
        raise BadField(("wait_s",), f"must be seconds from 0 to {MAX_TIMEOUT_S:g}")
    return seconds
