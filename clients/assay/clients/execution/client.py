"""The asynchronous client of a sandbox: batches, splits, retries, deadlines; any transport.

    async with AsyncExecutionClient("127.0.0.1:50052") as client:
        [result] = await client.execute([ExecutionJob(Program("python", "print(6 * 7)"))])

What holds, whatever happens on the way: every job gets exactly one outcome, in the jobs' order; an
outcome is matched to its job by id; what a program did is never made up. The reasons for a fault
that the client itself finds are those of `assay.clients.client`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from assay.api.execution.v1 import execution_pb2
from assay.clients.batching import plan_calls
from assay.clients.client import OnError, check_timeout
from assay.clients.config import ClientConfig
from assay.clients.convert import fault_of_error, make_fault
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
from assay.clients.matching import check_id
from assay.clients.retry import RetryPolicy, call_with_retries
from assay.clients.types import Fault
from assay.rpc.errors import CallError, ConfigError, refuse
from assay.rpc.reasons import Reason
from assay.rpc.tls import ClientTls

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class _Kind(Generic[R_co]):
    """One kind of job: how it is written, sent and read."""

    encode: Callable[[Any, str], Any]
    request: Callable[[list[Any]], Any]
    send: Callable[[Any, float], Any]
    decode: Callable[[Any], R_co]


class AsyncExecutionClient:
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
        self.target = target
        self.timeout_s = timeout_s
        self._config = config or ClientConfig()
        self._transport = transport or GrpcExecutionTransport(target, tls=tls, token=token)
        self._slots = asyncio.Semaphore(self._config.max_concurrent_calls)
        self._info: SandboxInfo | None = None
        self._info_lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = asyncio.Event()
        wire = self._transport
        self._executions: _Kind[ExecutionResult] = _Kind(
            convert.job_to_proto,
            lambda jobs: execution_pb2.ExecuteRequest(jobs=jobs),
            lambda request, timeout_s: wire.execute(request, timeout_s=timeout_s),
            convert.result_from_proto,
        )
        self._tests: _Kind[TestResult] = _Kind(
            convert.test_job_to_proto,
            lambda jobs: execution_pb2.RunTestsRequest(jobs=jobs),
            lambda request, timeout_s: wire.run_tests(request, timeout_s=timeout_s),
            convert.test_result_from_proto,
        )

    async def __aenter__(self) -> AsyncExecutionClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

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
        info = await self._sandbox_info(deadline_s)
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
        deadline_s = self._begin(timeout_s)
        self._info = await self._ask_info(deadline_s, self._config.retry)
        return self._info

    async def wait_ready(self, timeout_s: float = 60.0) -> SandboxInfo:
        """Waits until the sandbox answers.

        Raises:
            UnavailableError: It did not answer in time.
            CallError: It answers, and refuses.
            ConfigError: The client is closed, or belongs to another event loop.
        """
        deadline_s = self._begin(timeout_s)
        patient = RetryPolicy(max_attempts=1_000_000, base_s=0.05, cap_s=1.0)
        self._info = await self._ask_info(deadline_s, patient)
        return self._info

    async def close(self) -> None:
        """Ends every call: who still waits gets a fault, CANCELLED. May be called twice."""
        if self._closed.is_set():
            return
        self._closed.set()
        await self._transport.close()

    def _begin(self, timeout_s: float | None) -> float:
        """Checks that the client may be used here; gives the deadline by the loop's clock."""
        loop = asyncio.get_running_loop()
        if self._closed.is_set():
            raise ConfigError("the client is closed; make a new one")
        if self._loop not in (None, loop):
            raise ConfigError("the client belongs to another event loop; make one for each loop")
        self._loop = loop
        seconds = self.timeout_s if timeout_s is None else timeout_s
        check_timeout(seconds)
        return loop.time() + seconds

    async def _ask_info(self, deadline_s: float, policy: RetryPolicy) -> SandboxInfo:
        async def attempt(remaining_s: float) -> execution_pb2.ListLanguagesResponse:
            request = execution_pb2.ListLanguagesRequest()
            return await self._transport.list_languages(request, timeout_s=remaining_s)

        response = await call_with_retries(attempt, policy, deadline_s, self._sleep)
        return convert.info_from_proto(response)

    async def _sleep(self, delay_s: float) -> None:
        """Waits, or returns early when the client is closed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._closed.wait()

    async def _sandbox_info(self, deadline_s: float) -> SandboxInfo:
        """What the sandbox runs, asked for once; concurrent callers wait for one question."""
        if self._info is None:
            try:
                async with asyncio.timeout_at(deadline_s + 1.0), self._info_lock:
                    if self._info is None:
                        self._info = await self._ask_info(deadline_s, self._config.retry)
            except TimeoutError:
                raise self._late() from None
        return self._info

    async def _run(
        self, kind: _Kind[R], jobs: Sequence[Any], timeout_s: float | None, on_error: OnError
    ) -> list[R | Fault]:
        """The outcome of each job, in order."""
        deadline_s = self._begin(timeout_s)
        ids = _name_jobs(jobs)
        outcomes: dict[int, R | Fault | CallError] = {}
        messages: dict[int, Any] = {}
        for index, (job, job_id) in enumerate(zip(jobs, ids, strict=True)):
            try:
                messages[index] = kind.encode(job, job_id)
            except (ValueError, TypeError) as error:
                text = " ".join(str(error).split())[:200]
                outcomes[index] = make_fault(
                    Reason.UNSUPPORTED_INPUT, f"the job cannot be sent: {text}"
                )
        outcomes.update(await self._send_all(kind, messages, deadline_s))
        results: list[R | Fault] = []
        for index in range(len(jobs)):
            outcome = outcomes[index]
            if isinstance(outcome, CallError):
                if on_error == "raise":
                    raise outcome
                outcome = fault_of_error(outcome)
            results.append(outcome)
        return results

    async def _send_all(
        self, kind: _Kind[R], messages: dict[int, Any], deadline_s: float
    ) -> dict[int, R | Fault | CallError]:
        """Sends messages in calls that the server takes, at the same time."""
        if not messages:
            return {}
        try:
            info = await self._sandbox_info(deadline_s)
        except CallError as error:
            return dict.fromkeys(messages, error)
        places = list(messages)
        plan = plan_calls(
            [messages[place].ByteSize() for place in places],
            [""] * len(places),
            [False] * len(places),
            max_items=min(info.max_items, self._config.max_call_items),
            max_message_bytes=info.max_message_bytes,
            max_item_bytes=info.max_item_bytes,
        )
        outcomes: dict[int, R | Fault | CallError] = {}
        for index in plan.too_large:
            size = messages[places[index]].ByteSize()
            outcomes[places[index]] = make_fault(
                Reason.ITEM_TOO_LARGE,
                f"the job has {size} bytes, and this server takes {info.max_item_bytes}; "
                "shorten it",
            )
        batches = [[places[index] for index in batch] for batch in plan.batches]
        calls = [self._call(kind, [messages[p] for p in batch], deadline_s) for batch in batches]
        for batch, answers in zip(batches, await asyncio.gather(*calls), strict=True):
            outcomes.update(zip(batch, answers, strict=True))
        return outcomes

    async def _call(
        self, kind: _Kind[R], messages: list[Any], deadline_s: float
    ) -> Sequence[R | Fault | CallError]:
        """One call with its retries; its failure is the outcome of each of its jobs."""
        request = kind.request(messages)

        async def attempt(remaining_s: float) -> Any:
            return await kind.send(request, remaining_s)

        try:
            async with asyncio.timeout_at(deadline_s):
                await self._slots.acquire()
        except TimeoutError:
            return [self._late()] * len(messages)
        try:
            response = await call_with_retries(attempt, self._config.retry, deadline_s, self._sleep)
        except CallError as error:
            return [error] * len(messages)
        finally:
            self._slots.release()
        return _match(kind, messages, response.results)

    def _late(self) -> CallError:
        where = self.target or "the sandbox"
        return refuse(
            Reason.DEADLINE_EXCEEDED,
            f"{where} did not answer in time; allow more time or send less",
        )


def check_execution_client(target: str, transport: object, timeout_s: float) -> None:
    """Checks what a client, awaited or not, is made with.

    Raises:
        ConfigError: Neither target nor transport is given, or the time-out is not positive.
    """
    if not target and transport is None:
        raise ConfigError("no address of a sandbox; pass one, such as '127.0.0.1:50052'")
    check_timeout(timeout_s)


def _name_jobs(jobs: Sequence[ExecutionJob | TestJob]) -> list[str]:
    """The id of each job: its own, or its position.

    Raises:
        BadRequestError: two jobs share an id, or an id is too long.
    """
    ids = [job.id or str(position) for position, job in enumerate(jobs)]
    for job_id, count in Counter(ids).items():
        if count > 1:
            raise refuse(
                Reason.DUPLICATE_ITEM_ID,
                f"{count} jobs have the id {job_id!r}; make ids unique, or leave them empty",
            )
        check_id(job_id)
    return ids


def _match(kind: _Kind[R], sent: Sequence[Any], results: Iterable[Any]) -> list[R | Fault]:
    """The outcome of each job, by id: unknown results are passed over, absent ones are faults."""
    by_id: dict[str, Any] = {}
    contradicted: set[str] = set()
    for result in results:
        if by_id.setdefault(result.id, result) != result:
            contradicted.add(result.id)
    matched: list[R | Fault] = []
    for message in sent:
        answer = by_id.get(message.id)
        if answer is None:
            matched.append(
                make_fault(Reason.MISSING_RESULT, "the server answered without this job")
            )
        elif message.id in contradicted:
            matched.append(
                make_fault(Reason.INTERNAL, "the server answered this job twice, differently")
            )
        else:
            matched.append(kind.decode(answer))
    return matched
