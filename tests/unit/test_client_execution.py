"""The execution client's promises, over a wire that is a function."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator, Callable

import pytest

from assay.api.common.v1 import common_pb2
from assay.api.execution.v1 import execution_pb2
from assay.clients.config import ClientConfig
from assay.clients.execution import (
    AssertTest,
    AsyncExecutionClient,
    Comparison,
    Execution,
    ExecutionClient,
    ExecutionJob,
    Fault,
    Limits,
    Program,
    StdioTest,
    TestJob,
    TestSuite,
    suite_to_proto,
)
from assay.clients.execution.convert import limits_to_proto, result_from_proto
from assay.clients.execution.types import COMPARISONS, END_KINDS, VERDICTS
from assay.clients.testing import ScriptedTransport
from assay.kit.errors import BadRequestError, ConfigError, UnavailableError, refuse
from assay.kit.reasons import Reason

Results = list[execution_pb2.ExecutionResult]


def ran(job: execution_pb2.ExecutionJob) -> execution_pb2.ExecutionResult:
    """The answer of a sandbox whose every program prints its own id."""
    result = execution_pb2.ExecutionResult(id=job.id)
    result.execution.end_kind = execution_pb2.END_KIND_EXITED
    result.execution.stdout.data = job.id.encode()
    return result


class Wire(ScriptedTransport):
    """A sandbox as a function, with a few refusals first."""

    def __init__(
        self, answer: Callable[[Results], Results] = lambda results: results, refusals: int = 0
    ) -> None:
        self.batches: list[int] = []
        self._answer = answer
        self._refusals = refusals

    async def execute(
        self, request: execution_pb2.ExecuteRequest, *, timeout_s: float
    ) -> execution_pb2.ExecuteResponse:
        assert timeout_s > 0
        if self._refusals:
            self._refusals -= 1
            raise refuse(Reason.DRAINING, "the fake is told to be unavailable")
        self.batches.append(len(request.jobs))
        return execution_pb2.ExecuteResponse(results=self._answer([ran(j) for j in request.jobs]))

    async def run_tests(
        self, request: execution_pb2.RunTestsRequest, *, timeout_s: float
    ) -> execution_pb2.RunTestsResponse:
        return execution_pb2.RunTestsResponse()

    async def list_languages(
        self, request: execution_pb2.ListLanguagesRequest, *, timeout_s: float
    ) -> execution_pb2.ListLanguagesResponse:
        limits = common_pb2.BatchLimits(max_items=4, max_message_bytes=10_000, max_item_bytes=2000)
        return execution_pb2.ListLanguagesResponse(limits=limits, server_version="fake")

    async def stream_run_tests(
        self, requests: AsyncIterator[execution_pb2.StreamRunTestsRequest], *, timeout_s: float
    ) -> AsyncIterator[execution_pb2.StreamRunTestsResponse]:
        async for request in requests:
            if any(job.id == "break" for job in request.jobs):
                raise refuse(Reason.DRAINING, "the stream is told to break")
            yield execution_pb2.StreamRunTestsResponse()

    async def close(self) -> None:
        return


def jobs(count: int) -> list[ExecutionJob]:
    return [ExecutionJob(Program("python", "x"), id=f"j{n}") for n in range(count)]


def fault_reason(outcome: object) -> str:
    assert isinstance(outcome, Fault), outcome
    return outcome.reason


async def test_order_is_kept_over_calls_that_fit_the_server() -> None:
    wire = Wire(lambda results: results[::-1])
    async with AsyncExecutionClient(transport=wire) as client:
        outcomes = await client.execute(jobs(10))
        assert await client.execute([]) == []
    assert [o.stdout.text for o in outcomes if isinstance(o, Execution)] == [
        f"j{n}" for n in range(10)
    ]
    assert sorted(wire.batches) == [2, 4, 4]


async def test_what_a_server_says_wrongly_is_a_fault_of_that_job() -> None:
    def spoil(results: Results) -> Results:
        twice = execution_pb2.ExecutionResult()
        twice.CopyFrom(results[1])
        twice.execution.exit_code = 9
        results[2].execution.end_kind = execution_pb2.EndKind.ValueType(99)
        results[3].ClearField("outcome")
        return [*results[1:], twice, execution_pb2.ExecutionResult(id="stray")]

    async with AsyncExecutionClient(transport=Wire(spoil)) as client:
        outcomes = await client.execute(jobs(4))
    assert [fault_reason(outcome) for outcome in outcomes] == [
        "MISSING_RESULT", "INTERNAL", "MISSING_RESULT", "MISSING_RESULT"
    ]  # fmt: skip


async def test_a_refused_call_is_tried_again_then_a_fault_or_an_exception() -> None:
    async with AsyncExecutionClient(transport=Wire(refusals=2)) as client:
        [outcome] = await client.execute(jobs(1))
        assert isinstance(outcome, Execution)
    async with AsyncExecutionClient(transport=Wire(refusals=99), timeout_s=0.3) as client:
        assert {fault_reason(o) for o in await client.execute(jobs(3))} == {"DRAINING"}
        with pytest.raises(UnavailableError):
            await client.execute(jobs(3), on_error="raise")


async def test_a_job_that_is_too_long_is_its_own_fault() -> None:
    long = ExecutionJob(Program("python", "x" * 3000))
    async with AsyncExecutionClient(transport=Wire()) as client:
        first, second = await client.execute([long, *jobs(1)])
    assert fault_reason(first) == "ITEM_TOO_LARGE"
    assert isinstance(second, Execution)


async def test_a_broken_stream_leaves_no_job_without_an_outcome() -> None:
    async def sent() -> AsyncIterator[TestJob]:
        for name in ("a", "b", "break", "c"):
            yield TestJob(Program("python", "x"), TestSuite([StdioTest(b"", b"")]), id=name)

    config = ClientConfig(micro_batch_items=1)  # it tries again until its time is over
    async with AsyncExecutionClient(transport=Wire(), timeout_s=0.5, config=config) as client:
        outcomes = [entry async for entry in client.stream_tests(sent())]
    assert sorted(name for name, _ in outcomes) == ["a", "b", "break", "c"]
    assert {fault_reason(outcome) for _, outcome in outcomes} == {"DRAINING"}


async def test_a_caller_that_is_wrong_gets_an_exception() -> None:
    with pytest.raises(ConfigError, match="no address"):
        AsyncExecutionClient()
    with pytest.raises(ConfigError, match="time-out"):
        ExecutionClient("127.0.0.1:1", timeout_s=0)
    client = AsyncExecutionClient(transport=Wire())
    with pytest.raises(BadRequestError, match="longer than 256"):
        await client.execute([ExecutionJob(Program("python", "x"), id="i" * 300)])
    await client.close()
    with pytest.raises(ConfigError, match="closed"):
        await client.execute(jobs(1))


def test_a_synchronous_client_can_be_pickled() -> None:
    client = ExecutionClient("127.0.0.1:1", timeout_s=7.0)
    copy = pickle.loads(pickle.dumps(client))
    assert (copy.target, copy.timeout_s) == ("127.0.0.1:1", 7.0)


@pytest.mark.parametrize("value", [0, -1, float("nan"), 1e300])
def test_a_limit_that_means_nothing_is_refused_before_it_is_sent(value: float) -> None:
    with pytest.raises(ValueError, match="wall_time_s"):
        limits_to_proto(Limits(wall_time_s=value))


def test_names_stand_in_the_contracts_order() -> None:
    def names(enum: object, prefix: str) -> tuple[str, ...]:
        keys: list[str] = enum.keys()  # type: ignore[attr-defined]
        return tuple(k.removeprefix(prefix).lower().replace("_", "-") for k in keys)[1:]

    assert names(execution_pb2.EndKind, "END_KIND_") == END_KINDS
    assert names(execution_pb2.TestVerdict, "TEST_VERDICT_") == VERDICTS
    assert ("default", *names(execution_pb2.ComparisonKind, "COMPARISON_KIND_")) == COMPARISONS


def test_a_suite_is_written_whole() -> None:
    checker = Program("python", "pass")
    suite = TestSuite(
        [
            StdioTest(b"i", b"o", "n", Comparison("checker", checker=checker), ("a",)),
            AssertTest("assert True", "f", limits=Limits(processes=3)),
        ],
        stop_at_first_failure=True,
    )
    message = suite_to_proto(suite)
    assert message.stop_at_first_failure
    assert message.tests[0].stdio.comparison.checker.source == "pass"
    assert message.tests[0].stdio.arguments == ["a"]
    assert message.tests[1].assertions.entry_point == "f"
    assert message.tests[1].limits.processes == 3
    with pytest.raises(ValueError, match="kind is 'fuzzy'; choose one of default"):
        suite_to_proto(TestSuite([StdioTest(b"", b"", comparison=Comparison("fuzzy"))]))


def test_a_result_without_an_outcome_is_never_made_up() -> None:
    assert fault_reason(result_from_proto(execution_pb2.ExecutionResult(id="a"))) == (
        "MISSING_RESULT"
    )
