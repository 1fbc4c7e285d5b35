"""Messages of callers become values of the domain, or a fault that names what is wrong."""

from __future__ import annotations

import math

import pytest

from assay.api.execution.v1 import execution_pb2
from assay.kit.plain import to_plain
from assay.sandbox import convert, results
from assay.sandbox.domain import (
    MIB,
    BoxFile,
    CapturedOutput,
    EndKind,
    RunLimits,
    RunRecord,
    SandboxFault,
    SubmittedProgram,
)
from assay.sandbox.judging.model import (
    CallCase,
    CaseOutcome,
    ComparisonKind,
    StdioCase,
    Suite,
    SuiteReport,
    TestVerdict,
)

DEFAULTS = RunLimits(cpu_s=2.0, wall_s=3.0)
MOST = RunLimits(
    cpu_s=20.0,
    wall_s=30.0,
    memory_bytes=1024 * MIB,
    output_bytes=4 * MIB,
    max_output_bytes=128 * MIB,
    disk_bytes=128 * MIB,
    processes=128,
    compile_wall_s=60.0,
)


def stdio(**fields: object) -> execution_pb2.TestCase:
    return execution_pb2.TestCase(stdio=execution_pb2.StdioTest(**fields))  # type: ignore[arg-type]


def call(**fields: object) -> execution_pb2.TestCase:
    return execution_pb2.TestCase(call=execution_pb2.CallTest(**fields))  # type: ignore[arg-type]


def suite(*tests: execution_pb2.TestCase, **fields: object) -> execution_pb2.TestSuite:
    return execution_pb2.TestSuite(tests=tests, **fields)  # type: ignore[arg-type]


def refused(reason: str, message: execution_pb2.TestSuite) -> str:
    with pytest.raises(SandboxFault) as caught:
        convert.suite_from_proto(message, DEFAULTS, MOST)
    assert caught.value.reason == reason
    return caught.value.message


def test_limits_that_are_not_stated_are_the_defaults() -> None:
    assert convert.limits_from_proto(execution_pb2.Limits(), DEFAULTS, MOST) == DEFAULTS


def test_every_limit_is_read() -> None:
    stated = RunLimits(1.5, 2.5, 3 * MIB, 4, 5, 6, 7, 8.5)
    assert convert.limits_from_proto(results.limits_to_proto(stated), DEFAULTS, MOST) == stated


@pytest.mark.parametrize(
    "name", ["cpu_s", "wall_s", "memory_bytes", "output_bytes", "max_output_bytes", "disk_bytes",
             "processes", "compile_wall_s"],
)  # fmt: skip
@pytest.mark.parametrize("factor", [2, -1])
def test_a_limit_out_of_range_is_refused_and_never_clipped(name: str, factor: float) -> None:
    above = getattr(MOST, name) * factor
    value = above if name.endswith("_s") else int(above) + (factor > 0)
    message = results.limits_to_proto(DEFAULTS)
    field = {"cpu_s": "cpu_time", "wall_s": "wall_time", "compile_wall_s": "compile_wall_time"}
    if name in field:
        duration = getattr(message, field[name])
        duration.seconds, duration.nanos = int(value), 0
    else:
        setattr(message, name, value)
    with pytest.raises(SandboxFault) as caught:
        convert.limits_from_proto(message, DEFAULTS, MOST)
    assert caught.value.reason == "INVALID_LIMIT"
    assert caught.value.metadata == {"limit": field.get(name, name)}


def test_defaults_bow_to_what_the_operator_allows() -> None:
    assert convert.clipped(RunLimits(wall_s=99.0), MOST).wall_s == MOST.wall_s
    assert convert.clipped(DEFAULTS, MOST).wall_s == DEFAULTS.wall_s


def test_limits_of_a_test_go_before_those_of_its_suite() -> None:
    own = stdio()
    own.limits.wall_time.seconds = 7
    message = suite(stdio(), own)
    message.limits.wall_time.seconds = 5
    message.limits.processes = 9
    read, shared = convert.suite_from_proto(message, DEFAULTS, MOST)
    assert shared.wall_s == 5.0
    assert [test.limits.wall_s for test in read.tests] == [5.0, 7.0]
    assert [test.limits.processes for test in read.tests] == [9, 9]
    assert [test.limits.cpu_s for test in read.tests] == [2.0, 2.0]


def test_tests_without_a_name_are_numbered_from_one() -> None:
    named = stdio(stdin=b"x", expected_stdout=b"y", arguments=["-v"])
    named.name = "second"
    read, _ = convert.suite_from_proto(
        suite(stdio(), named, stop_at_first_failure=True), DEFAULTS, MOST
    )
    assert [test.name for test in read.tests] == ["1", "second"]
    assert read.stop_at_first_failure
    second = read.tests[1]
    assert isinstance(second, StdioCase)
    assert (second.stdin, second.expected, second.arguments) == (b"x", b"y", ("-v",))


def test_a_call_brings_plain_values() -> None:
    value = {"a": [1, 2.5, None], (1, 2): {3, 4}}
    message = call(function="Solution.run", expected=to_plain(value), arguments=[to_plain(10**30)])
    read, _ = convert.suite_from_proto(suite(message), DEFAULTS, MOST)
    test = read.tests[0]
    assert isinstance(test, CallCase)
    assert test.expected == value
    assert test.arguments == (10**30,)


@pytest.mark.parametrize(
    ("message", "part"),
    [
        (suite(), "0 tests"),
        (suite(execution_pb2.TestCase(name="none")), "neither stdio, call nor assertions"),
        (suite(call(function="")), "not the name of a function"),
        (suite(call(function="os.system('x')")), "not the name of a function"),
        (suite(call(function="f")), "no kind"),
        (suite(execution_pb2.TestCase(assertions=execution_pb2.AssertTest(code=" "))), "no test"),
        (
            suite(stdio(comparison=execution_pb2.Comparison(absolute_tolerance=-1.0))),
            "not a tolerance",
        ),
        (
            suite(stdio(comparison=execution_pb2.Comparison(relative_tolerance=math.nan))),
            "not a tolerance",
        ),
        (
            suite(
                stdio(
                    comparison=execution_pb2.Comparison(kind=execution_pb2.COMPARISON_KIND_CHECKER)
                )
            ),
            "there is none",
        ),
    ],
)
def test_a_suite_that_cannot_be_run_is_the_callers_fault(
    message: execution_pb2.TestSuite, part: str
) -> None:
    assert part in refused("INVALID_TEST", message)


def test_a_number_that_is_none_is_no_plain_value() -> None:
    bad = execution_pb2.PlainValue(big_int_value="1_000")
    assert "decimal" in refused("INVALID_TEST", suite(call(function="f", expected=bad)))


def test_every_comparison_of_the_contract_is_known() -> None:
    checker = execution_pb2.Program(language="python", source="pass")
    kinds = []
    for kind in execution_pb2.ComparisonKind.values():
        comparison = execution_pb2.Comparison(kind=kind, checker=checker)
        read, _ = convert.suite_from_proto(suite(stdio(comparison=comparison)), DEFAULTS, MOST)
        test = read.tests[0]
        assert isinstance(test, StdioCase)
        kinds.append(test.comparison.kind)
    assert kinds == list(ComparisonKind)


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a\0b", "x" * 300]
)
def test_a_path_outside_the_folder_is_refused(path: str) -> None:
    with pytest.raises(SandboxFault) as caught:
        convert.check_path(path)
    assert caught.value.reason == "INVALID_PROGRAM"


def test_a_command_line_that_the_kernel_would_refuse_is_refused_before() -> None:
    for arguments in (["x" * 200_000], ["y" * 100_000] * 20, ["a\0b"]):
        with pytest.raises(SandboxFault) as caught:
            convert.program_from_proto(execution_pb2.Program(arguments=arguments))
        assert caught.value.reason == "INVALID_PROGRAM"


def test_every_end_and_verdict_has_its_number() -> None:
    for number, end in enumerate(EndKind, start=1):
        assert results.execution_to_proto(RunRecord(end), "none").end_kind == number
    for number, verdict in enumerate(TestVerdict, start=1):
        report = results.report_to_proto(SuiteReport((CaseOutcome("1", verdict),)), "none")
        assert report.outcomes[0].verdict == number


def test_a_report_stays_small_and_says_what_it_left_out() -> None:
    loud = RunRecord(EndKind.EXITED, stdout=CapturedOutput(b"x" * MIB, 2 * MIB))
    outcomes = tuple(CaseOutcome(str(i), TestVerdict.PASSED, loud, "e" * 9999) for i in range(200))
    report = results.report_to_proto(SuiteReport(outcomes), "namespaces")
    assert report.ByteSize() < results.REPORT_BYTES + 200 * 1024
    assert report.passed_count == 200
    for outcome in report.outcomes:
        assert outcome.execution.stdout.truncated
        assert outcome.execution.stdout.total_bytes == 2 * MIB
        assert len(outcome.explanation) <= 400


def test_a_failed_compilation_is_no_verdict_on_any_test() -> None:
    record = RunRecord(EndKind.COMPILE_ERROR, exit_code=1, stderr=CapturedOutput(b"error: x", 8))
    tests = Suite((StdioCase("a", b"", b""), StdioCase("b", b"", b"")))
    report = results.failed_compilation_to_proto(record, tests)
    assert report.compile_failed
    assert report.passed_count == 0
    assert [outcome.name for outcome in report.outcomes] == ["a", "b"]
    assert {outcome.verdict for outcome in report.outcomes} == {execution_pb2.TEST_VERDICT_NOT_RUN}
    execution = results.compile_failure_to_proto(record, "none")
    assert execution.end_kind == execution_pb2.END_KIND_COMPILE_ERROR
    assert execution.compile_output.data == b"error: x"
    assert not execution.HasField("stderr")


def test_what_a_program_may_import_stands_in_all_its_text() -> None:
    files = (BoxFile("a.py", b"import numpy"), BoxFile("b.txt", b"scipy"), BoxFile("c", b"x = 1"))
    assert (
        SubmittedProgram("python", "import a", files, "c").text == "import a\nimport numpy\nx = 1"
    )
    assert SubmittedProgram("python", "import a").text == "import a"
