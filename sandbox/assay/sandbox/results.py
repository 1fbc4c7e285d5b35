"""Converts records and reports to the contract's messages. Pure; used in the supervisors.

A single program's run keeps what its limits keep. Of the runs behind tests, a report keeps the
first bytes of each stream and their count, so that a batch of reports fits into a message.
"""

from __future__ import annotations

from assay.api.execution.v1 import execution_pb2
from assay.kit.durations import fill_duration
from assay.sandbox.domain import CapturedOutput, EndKind, RunLimits, RunRecord
from assay.sandbox.judging.model import CaseOutcome, Suite, SuiteReport, TestVerdict

TEST_STREAM_BYTES = 16 * 1024
REPORT_BYTES = 512 * 1024
_MAX_EXPLANATION_CHARS = 400
_MAX_NAME_CHARS = 200
_NOTHING = CapturedOutput()

# The contract's enums, by the names that the domain has for them.
_ENDS = {
    end: execution_pb2.EndKind.Value("END_KIND_" + end.value.upper().replace("-", "_"))
    for end in EndKind
}
_VERDICTS = {
    verdict: execution_pb2.TestVerdict.Value(
        "TEST_VERDICT_" + verdict.value.upper().replace("-", "_")
    )
    for verdict in TestVerdict
}


def execution_to_proto(
    record: RunRecord, level: str, compile_output: CapturedOutput = _NOTHING
) -> execution_pb2.Execution:
    """One run; `level` is its isolation, `compile_output` the compiler's stderr."""
    message = execution_pb2.Execution(
        end_kind=_ENDS[record.end],
        exit_code=record.exit_code if record.end is EndKind.EXITED else 0,
        signal=record.signal if record.end is EndKind.SIGNALLED else 0,
        stdout=_output(record.stdout),
        stderr=_output(record.stderr),
        isolation_level=level,
    )
    fill_duration(message.usage.cpu_time, record.cpu_s)
    fill_duration(message.usage.wall_time, record.wall_s)
    message.usage.peak_memory_bytes = record.peak_memory_bytes
    if compile_output.total_bytes:
        message.compile_output.CopyFrom(_output(compile_output))
    for file in record.files:
        message.files.add(path=file.path, content=file.content)
    return message


def compile_failure_to_proto(record: RunRecord, level: str) -> execution_pb2.Execution:
    """A program that does not compile: the compiler's run, its messages on stderr."""
    message = execution_to_proto(record, level)
    message.compile_output.CopyFrom(_output(record.stderr))
    message.ClearField("stdout")
    message.ClearField("stderr")
    message.ClearField("files")
    message.exit_code = 0
    return message


def report_to_proto(report: SuiteReport, level: str) -> execution_pb2.TestReport:
    """A report, the streams of its runs shortened."""
    message = execution_pb2.TestReport(
        compile_failed=report.compile_failed,
        passed_count=sum(outcome.verdict is TestVerdict.PASSED for outcome in report.outcomes),
    )
    room = REPORT_BYTES
    if report.compile_output.total_bytes:
        message.compile_output.CopyFrom(_output(report.compile_output, TEST_STREAM_BYTES))
    for outcome in report.outcomes:
        added = message.outcomes.add()
        _fill_outcome(added, outcome, level, min(TEST_STREAM_BYTES, room // 4))
        room -= len(added.execution.stdout.data) + len(added.execution.stderr.data)
    return message


def failed_compilation_to_proto(record: RunRecord, suite: Suite) -> execution_pb2.TestReport:
    """The report of a program that does not compile: no test was run."""
    message = execution_pb2.TestReport(compile_failed=True)
    message.compile_output.CopyFrom(_output(record.stderr, TEST_STREAM_BYTES))
    for test in suite.tests:
        message.outcomes.add(
            name=_text(test.name, _MAX_NAME_CHARS),
            verdict=execution_pb2.TEST_VERDICT_NOT_RUN,
            explanation="the program does not compile",
        )
    return message


def _fill_outcome(
    message: execution_pb2.TestOutcome, outcome: CaseOutcome, level: str, stream_bytes: int
) -> None:
    message.name = _text(outcome.name, _MAX_NAME_CHARS)
    message.verdict = execution_pb2.TestVerdict.ValueType(_VERDICTS[outcome.verdict])
    message.explanation = _text(" ".join(outcome.explanation.split()), _MAX_EXPLANATION_CHARS)
    record = outcome.record
    if record is not None:
        message.execution.CopyFrom(execution_to_proto(record, level))
        message.execution.stdout.CopyFrom(_output(record.stdout, stream_bytes))
        message.execution.stderr.CopyFrom(_output(record.stderr, stream_bytes))
        message.execution.ClearField("files")


def strip_outputs(report: execution_pb2.TestReport) -> None:
    """Drops the streams of a report, so that more reports fit into a message."""
    for outcome in report.outcomes:
        for stream in (outcome.execution.stdout, outcome.execution.stderr):
            if stream.data:
                stream.data = b""
                stream.truncated = True


def limits_to_proto(limits: RunLimits) -> execution_pb2.Limits:
    """Limits, every field set."""
    message = execution_pb2.Limits(
        memory_bytes=limits.memory_bytes,
        output_bytes=limits.output_bytes,
        max_output_bytes=limits.max_output_bytes,
        disk_bytes=limits.disk_bytes,
        processes=limits.processes,
    )
    fill_duration(message.cpu_time, limits.cpu_s)
    fill_duration(message.wall_time, limits.wall_s)
    fill_duration(message.compile_wall_time, limits.compile_wall_s)
    return message


def _output(output: CapturedOutput, most: int | None = None) -> execution_pb2.CapturedOutput:
    data = output.data if most is None else output.data[:most]
    return execution_pb2.CapturedOutput(
        data=data, truncated=output.total_bytes > len(data), total_bytes=output.total_bytes
    )


def _text(text: str, chars: int) -> str:
    return text[:chars].encode("utf-8", "replace").decode()
