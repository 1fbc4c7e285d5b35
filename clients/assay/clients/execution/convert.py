"""Between `assay.clients.execution.types` and the messages of assay.api.execution.v1. Pure."""

from __future__ import annotations

from google.protobuf import duration_pb2

from assay.api.execution.v1 import execution_pb2
from assay.clients.convert import fault_from_proto, limits_from_proto, make_fault
from assay.clients.execution.types import (
    COMPARISONS,
    END_KINDS,
    VERDICTS,
    CallTest,
    Comparison,
    Execution,
    ExecutionJob,
    ExecutionResult,
    LanguageInfo,
    Limits,
    Output,
    Program,
    SandboxInfo,
    SourceFile,
    StdioTest,
    TestCase,
    TestJob,
    TestOutcome,
    TestReport,
    TestResult,
    TestSuite,
)
from assay.rpc.plain import to_plain
from assay.rpc.reasons import Reason

# The enums count from 1 in the order of these lists; 0 is "not stated".
_COMPARISON_NUMBERS = {name: number for number, name in enumerate(COMPARISONS)}
_DURATIONS = {
    "cpu_time_s": "cpu_time",
    "wall_time_s": "wall_time",
    "compile_wall_time_s": "compile_wall_time",
}
_NUMBERS = ("memory_bytes", "output_bytes", "max_output_bytes", "disk_bytes", "processes")


def job_to_proto(job: ExecutionJob, wire_id: str) -> execution_pb2.ExecutionJob:
    """Writes an execution job under its id in the request.

    Raises:
        ValueError: a value does not fit the wire.
        TypeError: a value has a type that no job can have.
    """
    return execution_pb2.ExecutionJob(
        id=wire_id,
        program=program_to_proto(job.program),
        stdin=job.stdin,
        limits=limits_to_proto(job.limits),
        fetch_paths=job.fetch_paths,
    )


def test_job_to_proto(job: TestJob, wire_id: str) -> execution_pb2.TestJob:
    """Writes a test job under its id in the request.

    Raises:
        ValueError: a value does not fit the wire.
        TypeError: a value has a type that no job can have, or is not plain data.
    """
    suite = (
        job.suite if isinstance(job.suite, execution_pb2.TestSuite) else suite_to_proto(job.suite)
    )
    return execution_pb2.TestJob(id=wire_id, program=program_to_proto(job.program), suite=suite)


test_job_to_proto.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest's


def program_to_proto(program: Program) -> execution_pb2.Program:
    """Writes a program."""
    return execution_pb2.Program(
        language=program.language,
        source=program.source,
        files=[execution_pb2.SourceFile(path=f.path, content=f.content) for f in program.files],
        entry_path=program.entry_path,
        arguments=program.arguments,
        environment=program.environment,
    )


def suite_to_proto(suite: TestSuite) -> execution_pb2.TestSuite:
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


def limits_to_proto(limits: Limits) -> execution_pb2.Limits:
    """Writes limits; what is None stays unset.

    Raises:
        ValueError: a limit is 0 or less, or beyond what the wire can say.
    """
    message = execution_pb2.Limits()
    for name, field in _DURATIONS.items():
        seconds = getattr(limits, name)
        if seconds is not None:
            _check_positive(name, seconds)
            getattr(message, field).FromNanoseconds(max(1, round(seconds * 1e9)))
    for name in _NUMBERS:
        number = getattr(limits, name)
        if number is not None:
            _check_positive(name, number)
            setattr(message, name, number)
    return message


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < 2**53:
        raise ValueError(f"Limits.{name} is {value}; pass a positive number, or None")


def _test_to_proto(test: TestCase) -> execution_pb2.TestCase:
    message = execution_pb2.TestCase(name=test.name, limits=limits_to_proto(test.limits))
    if isinstance(test, StdioTest):
        message.stdio.CopyFrom(
            execution_pb2.StdioTest(
                stdin=test.stdin,
                expected_stdout=test.expected_stdout,
                comparison=_comparison_to_proto(test.comparison),
                arguments=test.arguments,
            )
        )
    elif isinstance(test, CallTest):
        message.call.CopyFrom(
            execution_pb2.CallTest(
                function=test.function,
                arguments=[to_plain(value) for value in test.arguments],
                keyword_arguments={k: to_plain(v) for k, v in test.keyword_arguments.items()},
                expected=to_plain(test.expected),
                comparison=_comparison_to_proto(test.comparison),
            )
        )
    else:
        message.assertions.CopyFrom(
            execution_pb2.AssertTest(code=test.code, entry_point=test.entry_point)
        )
    return message


def _comparison_to_proto(comparison: Comparison) -> execution_pb2.Comparison:
    if comparison.kind not in _COMPARISON_NUMBERS:
        raise ValueError(
            f"no comparison is named {comparison.kind!r}; choose one of {', '.join(COMPARISONS)}"
        )
    message = execution_pb2.Comparison(
        kind=execution_pb2.ComparisonKind.ValueType(_COMPARISON_NUMBERS[comparison.kind]),
        absolute_tolerance=comparison.absolute_tolerance,
        relative_tolerance=comparison.relative_tolerance,
    )
    if comparison.checker is not None:
        message.checker.CopyFrom(program_to_proto(comparison.checker))
    return message


def result_from_proto(message: execution_pb2.ExecutionResult) -> ExecutionResult:
    """Reads what came of an execution job. One without an outcome is a fault, never made up."""
    kind = message.WhichOneof("outcome")
    if kind == "fault":
        return fault_from_proto(message.fault)
    if kind == "execution" and 0 < message.execution.end_kind <= len(END_KINDS):
        queue_s, service_s = _timings(message)
        return _execution(message.execution, queue_s, service_s)
    return make_fault(Reason.MISSING_RESULT, "the server answered with neither run nor fault")


def test_result_from_proto(message: execution_pb2.TestJobResult) -> TestResult:
    """Reads what came of a test job. One without an outcome is a fault, never made up."""
    kind = message.WhichOneof("outcome")
    if kind == "fault":
        return fault_from_proto(message.fault)
    report = message.report
    known = all(0 < outcome.verdict <= len(VERDICTS) for outcome in report.outcomes)
    if kind != "report" or not known:
        return make_fault(
            Reason.MISSING_RESULT, "the server answered with neither report nor fault"
        )
    queue_s, service_s = _timings(message)
    return TestReport(
        outcomes=tuple(_outcome(outcome) for outcome in report.outcomes),
        compile_output=_output(report.compile_output),
        compile_failed=report.compile_failed,
        queue_s=queue_s,
        service_s=service_s,
    )


test_result_from_proto.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest's


def _timings(
    message: execution_pb2.ExecutionResult | execution_pb2.TestJobResult,
) -> tuple[float, float]:
    return _seconds(message.timings.queue), _seconds(message.timings.execution)


def _outcome(message: execution_pb2.TestOutcome) -> TestOutcome:
    ran = message.HasField("execution") and 0 < message.execution.end_kind <= len(END_KINDS)
    return TestOutcome(
        name=message.name,
        verdict=VERDICTS[message.verdict - 1],
        execution=_execution(message.execution) if ran else None,
        explanation=message.explanation,
    )


def _execution(
    message: execution_pb2.Execution, queue_s: float = 0.0, service_s: float = 0.0
) -> Execution:
    return Execution(
        end=END_KINDS[message.end_kind - 1],
        exit_code=message.exit_code,
        signal=message.signal,
        stdout=_output(message.stdout),
        stderr=_output(message.stderr),
        compile_output=_output(message.compile_output),
        files=tuple(SourceFile(file.path, file.content) for file in message.files),
        cpu_time_s=_seconds(message.usage.cpu_time),
        wall_time_s=_seconds(message.usage.wall_time),
        peak_memory_bytes=message.usage.peak_memory_bytes,
        isolation_level=message.isolation_level,
        queue_s=queue_s,
        service_s=service_s,
        # A run always says what it wrote, if only that it was nothing.
        compiling=message.HasField("compile_output") and not message.HasField("stdout"),
    )


def _output(message: execution_pb2.CapturedOutput) -> Output:
    return Output(message.data, message.truncated, message.total_bytes)


def _seconds(message: duration_pb2.Duration) -> float:
    return message.seconds + message.nanos / 1e9


def info_from_proto(message: execution_pb2.ListLanguagesResponse) -> SandboxInfo:
    """Reads what a sandbox runs."""
    limits = limits_from_proto(message.limits)
    return SandboxInfo(
        languages=tuple(
            LanguageInfo(
                name=info.name,
                toolchain_version=info.toolchain_version,
                default_limits=_limits(info.default_limits),
                test_kinds=tuple(info.test_kinds),
            )
            for info in message.languages
        ),
        isolation_layers=tuple(message.isolation_layers),
        max_limits=_limits(message.max_limits),
        max_items=limits.max_items,
        max_message_bytes=limits.max_message_bytes,
        max_item_bytes=limits.max_item_bytes,
        version=message.server_version,
    )


def _limits(message: execution_pb2.Limits) -> Limits:
    return Limits(
        cpu_time_s=_seconds(message.cpu_time) or None,
        wall_time_s=_seconds(message.wall_time) or None,
        memory_bytes=message.memory_bytes or None,
        output_bytes=message.output_bytes or None,
        max_output_bytes=message.max_output_bytes or None,
        disk_bytes=message.disk_bytes or None,
        processes=message.processes or None,
        compile_wall_time_s=_seconds(message.compile_wall_time) or None,
    )
