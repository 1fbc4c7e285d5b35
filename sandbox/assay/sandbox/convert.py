"""Converts the contract's messages to domain values. Pure; used in the supervisors.

Paths, names, numbers and plain data of callers are checked here, once. A wrong value is the fault
of its own job alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from assay.api.execution.v1 import execution_pb2
from assay.kit.durations import seconds_of
from assay.kit.plain import from_plain
from assay.sandbox.domain import BoxFile, RunLimits, SandboxFault, SubmittedProgram
from assay.sandbox.judging.model import (
    AnswerComparison,
    AssertCase,
    CallCase,
    ComparisonKind,
    StdioCase,
    Suite,
    TestCase,
)

INVALID_PROGRAM = "INVALID_PROGRAM"
INVALID_LIMIT = "INVALID_LIMIT"
INVALID_TEST = "INVALID_TEST"

# execve takes strings of up to 128 KiB, and a quarter of the stack in all.
_MAX_STRING_BYTES = 128 * 1024 - 1
_MAX_STRINGS_BYTES = 1024 * 1024
_MAX_PATH_BYTES = 1024
_MAX_NAME_BYTES = 255
_MAX_FILES = 10_000
_MAX_TESTS = 10_000
_KINDS = {
    execution_pb2.COMPARISON_KIND_UNSPECIFIED: ComparisonKind.DEFAULT,
    execution_pb2.COMPARISON_KIND_EXACT: ComparisonKind.EXACT,
    execution_pb2.COMPARISON_KIND_TOKENS: ComparisonKind.TOKENS,
    execution_pb2.COMPARISON_KIND_NUMERIC: ComparisonKind.NUMERIC,
    execution_pb2.COMPARISON_KIND_UNORDERED: ComparisonKind.UNORDERED,
    execution_pb2.COMPARISON_KIND_CHECKER: ComparisonKind.CHECKER,
}
_DURATIONS = {"cpu_s": "cpu_time", "wall_s": "wall_time", "compile_wall_s": "compile_wall_time"}
_SIZES = ("memory_bytes", "output_bytes", "max_output_bytes", "disk_bytes", "processes")


def program_from_proto(message: execution_pb2.Program) -> SubmittedProgram:
    """A program; the languages check its layout later.

    Raises:
        SandboxFault: INVALID_PROGRAM, naming what is wrong.
    """
    if len(message.files) > _MAX_FILES:
        raise SandboxFault(INVALID_PROGRAM, f"a program has at most {_MAX_FILES} files")
    if len({file.path for file in message.files}) < len(message.files):
        raise SandboxFault(INVALID_PROGRAM, "two files of the program have the same path")
    variables = [f"{name}={value}" for name, value in message.environment.items()]
    check_strings([*message.arguments, *variables])
    return SubmittedProgram(
        language=message.language,
        source=message.source,
        files=tuple(BoxFile(file.path, file.content) for file in message.files),
        entry_path=message.entry_path,
        arguments=tuple(message.arguments),
        environment=dict(message.environment),
    )


def check_path(path: str) -> str:
    """The path, if it stays inside the working directory.

    Raises:
        SandboxFault: INVALID_PROGRAM: absolute, with "..", not normal, or too long.
    """
    parts = path.split("/")
    bad = not path or "\0" in path or any(part in ("", ".", "..") for part in parts)
    long = len(path.encode()) > _MAX_PATH_BYTES
    if bad or long or any(len(part.encode()) > _MAX_NAME_BYTES for part in parts):
        raise SandboxFault(
            INVALID_PROGRAM,
            f"the path {path[:80]!r} is not a plain relative one, such as 'data/input.txt'",
        )
    return path


def check_strings(strings: Iterable[str]) -> None:
    """Checks strings for a command line or an environment.

    Raises:
        SandboxFault: INVALID_PROGRAM: a NUL, or more than the kernel takes.
    """
    total = 0
    for string in strings:
        size = len(string.encode()) + 1
        total += size
        if "\0" in string:
            raise SandboxFault(INVALID_PROGRAM, "an argument or variable holds a NUL character")
        if size > _MAX_STRING_BYTES or total > _MAX_STRINGS_BYTES:
            raise SandboxFault(
                INVALID_PROGRAM, "the arguments and variables are longer than the kernel takes"
            )


def limits_from_proto(
    message: execution_pb2.Limits, defaults: RunLimits, most: RunLimits
) -> RunLimits:
    """Limits in force.

    Args:
        message: the caller's; unset or zero means the default.
        defaults: never above `most`.
        most: the greatest that a caller may ask for.

    Raises:
        SandboxFault: INVALID_LIMIT, naming the limit: negative, or above the greatest.
    """
    changes: dict[str, float] = {}
    for name, field in _DURATIONS.items():
        seconds = seconds_of(getattr(message, field))
        if seconds:
            changes[name] = _checked(field, seconds, getattr(most, name), " s")
    for name in _SIZES:
        number: int = getattr(message, name)
        if number:
            unit = "" if name == "processes" else " bytes"
            changes[name] = _checked(name, number, getattr(most, name), unit)
    return defaults.with_(**changes) if changes else defaults


def _checked(name: str, value: float, most: float, unit: str) -> float:
    if not 0 < value <= most:
        raise SandboxFault(
            INVALID_LIMIT,
            f"the limit {name} is {value:.15g}{unit}; it must be above 0 and at most "
            f"{most:.15g}{unit} here",
            limit=name,
        )
    return value


def clipped(defaults: RunLimits, most: RunLimits) -> RunLimits:
    """A language's defaults, cut to what the operator allows."""
    names = (*_DURATIONS, *_SIZES)
    return defaults.with_(
        **{name: min(getattr(defaults, name), getattr(most, name)) for name in names}
    )


def suite_from_proto(
    message: execution_pb2.TestSuite, defaults: RunLimits, most: RunLimits
) -> tuple[Suite, RunLimits]:
    """A suite, each test with its limits, and the suite's own limits.

    Raises:
        SandboxFault: INVALID_TEST, INVALID_LIMIT, or INVALID_PROGRAM for a checker.
    """
    if not 0 < len(message.tests) <= _MAX_TESTS:
        raise SandboxFault(
            INVALID_TEST, f"the suite has {len(message.tests)} tests; it takes 1 to {_MAX_TESTS}"
        )
    shared = limits_from_proto(message.limits, defaults, most)
    tests = tuple(
        _test_from_proto(test, test.name or str(number), shared, most)
        for number, test in enumerate(message.tests, start=1)
    )
    return Suite(tests, message.stop_at_first_failure), shared


def _test_from_proto(
    message: execution_pb2.TestCase, name: str, shared: RunLimits, most: RunLimits
) -> TestCase:
    kind = message.WhichOneof("kind")
    if kind is None:
        raise SandboxFault(
            INVALID_TEST, f"test {name[:80]!r} says neither stdio, call nor assertions"
        )
    try:
        return _TESTS[kind](message, name, limits_from_proto(message.limits, shared, most))
    except ValueError as error:
        raise SandboxFault(INVALID_TEST, f"test {name[:80]!r}: {error}") from error


def _stdio(message: execution_pb2.TestCase, name: str, limits: RunLimits) -> TestCase:
    test = message.stdio
    check_strings(test.arguments)
    return StdioCase(
        name=name,
        stdin=test.stdin,
        expected=test.expected_stdout,
        comparison=_comparison(test.comparison),
        arguments=tuple(test.arguments),
        limits=limits,
    )


def _call(message: execution_pb2.TestCase, name: str, limits: RunLimits) -> TestCase:
    test = message.call
    if not all(part.isidentifier() for part in test.function.split(".")):
        raise ValueError(f"{test.function[:80]!r} is not the name of a function")
    return CallCase(
        name=name,
        function=test.function,
        arguments=tuple(from_plain(value) for value in test.arguments),
        keyword_arguments={key: from_plain(v) for key, v in test.keyword_arguments.items()},
        expected=from_plain(test.expected),
        comparison=_comparison(test.comparison),
        limits=limits,
    )


def _assertions(message: execution_pb2.TestCase, name: str, limits: RunLimits) -> TestCase:
    test = message.assertions
    if not test.code.strip():
        raise ValueError("it holds no test code")
    return AssertCase(name=name, code=test.code, entry_point=test.entry_point, limits=limits)


_TESTS: dict[str, Callable[[execution_pb2.TestCase, str, RunLimits], TestCase]] = {
    "stdio": _stdio,
    "call": _call,
    "assertions": _assertions,
}


def _comparison(message: execution_pb2.Comparison) -> AnswerComparison:
    kind = _KINDS.get(message.kind)
    if kind is None:
        raise ValueError(f"there is no comparison number {message.kind}")
    for tolerance in (message.absolute_tolerance, message.relative_tolerance):
        if not 0 <= tolerance < math.inf:
            raise ValueError(f"{tolerance} is not a tolerance; it must be 0 or more, and finite")
    checker = None
    if kind is ComparisonKind.CHECKER:
        if not message.HasField("checker"):
            raise ValueError("its comparison is by a checker, and there is none")
        checker = program_from_proto(message.checker)
    return AnswerComparison(kind, message.absolute_tolerance, message.relative_tolerance, checker)
