"""Conversion of `assay.clients.execution.types` to and from execution.proto. Pure.

`assay.clients.core.messages` converts what follows from names; this module adds the rest.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from assay.api.execution.v1 import execution_pb2
from assay.clients.convert import limits_from_proto
from assay.clients.core.messages import SenselessError, Shape
from assay.clients.execution import types
from assay.clients.faults import fault_from_proto, make_fault
from assay.kit.durations import seconds_of
from assay.kit.plain import to_plain
from assay.kit.reasons import Reason

_FILE = Shape(types.SourceFile, execution_pb2.SourceFile)
PROGRAM = Shape(types.Program, execution_pb2.Program, within={"files": _FILE})
LIMITS = Shape(types.Limits, execution_pb2.Limits, unset_is_none=True)
_COMPARISON = Shape(
    types.Comparison,
    execution_pb2.Comparison,
    zero={"kind": "default"},
    within={"checker": PROGRAM},
)
_BY: dict[str, Shape[Any]] = {"program": PROGRAM, "limits": LIMITS, "comparison": _COMPARISON}
_JOB = Shape(types.ExecutionJob, execution_pb2.ExecutionJob, within=_BY)
_COMMON = frozenset({"name", "limits"})
_PLAIN = frozenset({"arguments", "keyword_arguments", "expected"})
_TESTS: dict[type[Any], tuple[str, Shape[Any]]] = {
    types.StdioTest: (
        "stdio",
        Shape(types.StdioTest, execution_pb2.StdioTest, within=_BY, elsewhere=_COMMON),
    ),
    types.CallTest: (
        "call",
        Shape(types.CallTest, execution_pb2.CallTest, within=_BY, elsewhere=_COMMON | _PLAIN),
    ),
    types.AssertTest: (
        "assertions",
        Shape(types.AssertTest, execution_pb2.AssertTest, elsewhere=_COMMON),
    ),
}

_OUTPUT = Shape(types.Output, execution_pb2.CapturedOutput)
_TIMES = frozenset({"queue_s", "service_s"})
_EXECUTION = Shape(
    types.Execution,
    execution_pb2.Execution,
    names={
        "end": "end_kind",
        "cpu_time_s": "usage.cpu_time",
        "wall_time_s": "usage.wall_time",
        "peak_memory_bytes": "usage.peak_memory_bytes",
    },
    within={"stdout": _OUTPUT, "stderr": _OUTPUT, "compile_output": _OUTPUT, "files": _FILE},
    elsewhere=_TIMES | {"compiling"},
)
_OUTCOME = Shape(types.TestOutcome, execution_pb2.TestOutcome, elsewhere=frozenset({"execution"}))
_REPORT = Shape(
    types.TestReport,
    execution_pb2.TestReport,
    within={"compile_output": _OUTPUT},
    elsewhere=_TIMES | {"outcomes"},
)
_LANGUAGE = Shape(types.LanguageInfo, execution_pb2.LanguageInfo, within={"default_limits": LIMITS})


def job_to_proto(job: types.ExecutionJob, wire_id: str) -> execution_pb2.ExecutionJob:
    """Writes an execution job under its id in the request.

    Raises:
        ValueError: a value does not fit the wire.
        TypeError: a value has a type that no job can have.
    """
    _check_limits(job.limits)
    message: execution_pb2.ExecutionJob = _JOB.write(job, id=wire_id)
    return message


def test_job_to_proto(job: types.TestJob, wire_id: str) -> execution_pb2.TestJob:
    """Writes a test job under its id in the request.

    Raises:
        ValueError: a value does not fit the wire.
        TypeError: a value has a type that no job can have, or is not plain data.
    """
    suite = (
        job.suite if isinstance(job.suite, execution_pb2.TestSuite) else suite_to_proto(job.suite)
    )
    return execution_pb2.TestJob(id=wire_id, program=PROGRAM.write(job.program), suite=suite)


test_job_to_proto.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest's


def suite_to_proto(suite: types.TestSuite) -> execution_pb2.TestSuite:
    """Writes a suite, e.g. for `assay.clients.Item(reference=...)`.

    Raises:
        ValueError: a value does not fit the wire.
        TypeError: a value is not plain data.
    """
    return execution_pb2.TestSuite(
        tests=[_test_to_proto(test) for test in suite.tests],
        limits=limits_to_proto(suite.limits),
        stop_at_first_failure=suite.stop_at_first_failure,
    )


def limits_to_proto(limits: types.Limits) -> execution_pb2.Limits:
    """Writes limits; None stays unset.

    Raises:
        ValueError: a limit is 0 or less, or beyond the range of the wire.
    """
    _check_limits(limits)
    message: execution_pb2.Limits = LIMITS.write(limits)
    return message


def _check_limits(limits: types.Limits) -> None:
    for one in dataclasses.fields(limits):
        value = getattr(limits, one.name)
        if value is not None and not 0 < value < 2**53:
            raise ValueError(f"Limits.{one.name} is {value}; pass a positive number, or None")


def _test_to_proto(test: types.TestCase) -> execution_pb2.TestCase:
    key, shape = _TESTS[type(test)]
    written = shape.write(test)
    if isinstance(test, types.CallTest):
        written.arguments.extend(to_plain(value) for value in test.arguments)
        for name, value in test.keyword_arguments.items():
            written.keyword_arguments[name].CopyFrom(to_plain(value))
        written.expected.CopyFrom(to_plain(test.expected))
    limits = limits_to_proto(test.limits)
    return execution_pb2.TestCase(name=test.name, limits=limits, **{key: written})


def result_from_proto(message: execution_pb2.ExecutionResult) -> types.ExecutionResult:
    """Reads the result of an execution job. One without an outcome is a fault."""
    kind = message.WhichOneof("outcome")
    if kind == "fault":
        return fault_from_proto(message.fault)
    try:
        if kind == "execution":
            return _execution(message.execution, **_times(message))
    except SenselessError:
        pass  # an end that this client does not know
    return make_fault(Reason.MISSING_RESULT, "the server answered with neither run nor fault")


def test_result_from_proto(message: execution_pb2.TestJobResult) -> types.TestResult:
    """Reads the result of a test job. One without an outcome is a fault."""
    kind = message.WhichOneof("outcome")
    if kind == "fault":
        return fault_from_proto(message.fault)
    try:
        if kind == "report":
            outcomes = tuple(_outcome(outcome) for outcome in message.report.outcomes)
            return _REPORT.read(message.report, outcomes=outcomes, **_times(message))
    except SenselessError:
        pass  # a verdict that this client does not know
    return make_fault(Reason.MISSING_RESULT, "the server answered with neither report nor fault")


test_result_from_proto.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest's


def _times(message: Any) -> dict[str, float]:
    timings = message.timings
    return {"queue_s": seconds_of(timings.queue), "service_s": seconds_of(timings.execution)}


def _outcome(message: execution_pb2.TestOutcome) -> types.TestOutcome:
    ran = None
    if message.HasField("execution"):
        try:
            ran = _execution(message.execution)
        except SenselessError:
            ran = None  # it ended in a way that this client does not know; its verdict stands
    return _OUTCOME.read(message, execution=ran)


def _execution(message: execution_pb2.Execution, **times: float) -> types.Execution:
    # A run always has its output, if only an empty one.
    compiling = message.HasField("compile_output") and not message.HasField("stdout")
    return _EXECUTION.read(message, compiling=compiling, **times)


def info_from_proto(message: execution_pb2.ListLanguagesResponse) -> types.SandboxInfo:
    """Reads a sandbox's description."""
    limits = limits_from_proto(message.limits)
    return types.SandboxInfo(
        languages=tuple(_LANGUAGE.read(info) for info in message.languages),
        isolation_layers=tuple(message.isolation_layers),
        max_limits=LIMITS.read(message.max_limits),
        max_items=limits.max_items,
        max_message_bytes=limits.max_message_bytes,
        max_item_bytes=limits.max_item_bytes,
        version=message.server_version,
    )
