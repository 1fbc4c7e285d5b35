r"""The tests of a program, as they stand in a row of JSON Lines. Pure.

    {"tests": [{"stdin": "1 2\n", "stdout": "3\n"}]}              programs that read and write
    {"tests": [{"args": [1, 2], "expected": 3}], "function": "add"}      functions that are called
    {"asserts": ["assert add(1, 2) == 3"], "setup": "import math"}       assertions about names
    {"code": "def check(candidate): ...", "entry_point": "add"}          one check function
    {"inputs": ["1 2\n"], "outputs": ["3\n"]}       two columns; with "function": arguments, results
    {"suite": {"tests": [...]}}       the contract's TestSuite in protobuf's JSON, as of a journal

The first list may stand alone, and one text is one piece of test code. Beside them an object may
hold "limits" ({"wall_time_s": 2.0, "memory_bytes": 1e9, ...} of each test),
"stop_at_first_failure", and "comparison" (a name such as "tokens", or {"kind": "numeric",
"absolute_tolerance": 1e-6}); a test may have its own "name", "limits" and "comparison".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf import json_format

from assay.api.execution.v1 import execution_pb2
from assay.clients.execution.convert import suite_to_proto
from assay.clients.execution.types import (
    COMPARISONS,
    AssertTest,
    CallTest,
    Comparison,
    Limits,
    StdioTest,
    TestCase,
    TestSuite,
)

_SHAPES = (
    '[{"stdin": ..., "stdout": ...}], {"tests": [{"args": [...], "expected": ...}], "function": '
    '...}, {"asserts": [...]} or {"code": ..., "entry_point": ...}'
)
_SHARED_KEYS = {"limits", "stop_at_first_failure", "comparison"}
_BODY_KEYS = {
    "tests": {"tests", "function", "fn_name"},
    "asserts": {"asserts", "setup", "entry_point"},
    "code": {"code", "entry_point"},
    "inputs": {"inputs", "outputs", "function", "fn_name"},
}
_LIMITS = {field.name: field for field in dataclasses.fields(Limits)}


def read_tests(value: object) -> execution_pb2.TestSuite:
    """Reads tests in one of the shapes above.

    Raises:
        ValueError: it has none of them; the text says what to write.
    """
    if isinstance(value, str):
        value = {"code": value}
    if isinstance(value, list):
        value = {"tests": value}
    if not isinstance(value, dict):
        raise ValueError(f"tests are written as {_SHAPES}")
    if set(value) == {"suite"}:
        return _suite(value["suite"])
    body = next((key for key in _BODY_KEYS if key in value), None)
    if body is None:
        raise ValueError(f"the tests have none of the shapes {_SHAPES}")
    unknown = sorted(set(value) - _BODY_KEYS[body] - _SHARED_KEYS)
    if unknown:
        known = ", ".join(sorted(_BODY_KEYS[body] | _SHARED_KEYS))
        raise ValueError(f"tests with {body!r} have no key {unknown[0]!r:.40}; they have: {known}")
    comparison = _comparison(value.get("comparison"), "tests")
    tests = _READERS[body](value, comparison)
    if not tests:
        raise ValueError(f"{body!r} is empty; write at least one test")
    suite = TestSuite(
        tests=tests,
        limits=_limits(value.get("limits"), "tests"),
        stop_at_first_failure=_flag(value, "stop_at_first_failure"),
    )
    try:
        return suite_to_proto(suite)
    except (TypeError, OverflowError) as error:
        raise ValueError(str(error)) from None


def _suite(value: Any) -> execution_pb2.TestSuite:
    try:
        return json_format.ParseDict(value, execution_pb2.TestSuite())
    except (json_format.ParseError, AttributeError, TypeError) as error:
        raise ValueError(f"'suite' is no TestSuite: {error}") from None


def _read_list(value: Mapping[str, Any], comparison: Comparison) -> list[TestCase]:
    function = _function(value)
    listed = _listed(value, "tests")
    return [_test(test, f"tests[{n}]", function, comparison) for n, test in enumerate(listed)]


def _test(test: object, where: str, function: str, comparison: Comparison) -> TestCase:
    if isinstance(test, str):
        return AssertTest(test)
    if not isinstance(test, dict):
        raise ValueError(f"{where} is not an object; write {_SHAPES}")
    name = _text(test, "name", where)
    limits = _limits(test.get("limits"), where)
    if "comparison" in test:
        comparison = _comparison(test["comparison"], where)
    if "stdin" in test or "stdout" in test:
        _only(test, {"stdin", "stdout", "arguments"}, where)
        if "stdout" not in test:
            raise ValueError(f"{where} has no 'stdout'; write what the program must print")
        return StdioTest(
            stdin=_bytes(test, "stdin", where),
            expected_stdout=_bytes(test, "stdout", where),
            name=name,
            comparison=comparison,
            arguments=[_as_text(part, f"{where}.arguments") for part in test.get("arguments", [])],
            limits=limits,
        )
    if "code" in test:
        _only(test, {"code", "entry_point"}, where)
        entry = _text(test, "entry_point", where)
        return AssertTest(_text(test, "code", where), entry, name, limits)
    _only(test, {"function", "fn_name", "args", "kwargs", "expected"}, where)
    function = _function(test) or function
    if not function or "expected" not in test:
        raise ValueError(f"{where} needs 'stdout', 'code', or 'expected' and a 'function'")
    arguments, named = test.get("args", []), test.get("kwargs", {})
    if not isinstance(arguments, list) or not isinstance(named, dict):
        raise ValueError(f"{where}: 'args' is a list and 'kwargs' an object")
    return CallTest(function, arguments, test["expected"], name, named, comparison, limits)


def _read_asserts(value: Mapping[str, Any], _: Comparison) -> list[TestCase]:
    setup, entry = _text(value, "setup", "tests"), _text(value, "entry_point", "tests")
    listed = value["asserts"]
    listed = [listed] if isinstance(listed, str) else _listed(value, "asserts")
    start = f"{setup}\n" if setup else ""
    return [
        AssertTest(start + _as_text(code, f"asserts[{number}]"), entry)
        for number, code in enumerate(listed)
    ]


def _read_code(value: Mapping[str, Any], _: Comparison) -> list[TestCase]:
    return [AssertTest(_text(value, "code", "tests"), _text(value, "entry_point", "tests"))]


def _read_columns(value: Mapping[str, Any], comparison: Comparison) -> list[TestCase]:
    inputs, outputs = _listed(value, "inputs"), _listed(value, "outputs")
    if len(inputs) != len(outputs):
        raise ValueError(f"there are {len(inputs)} 'inputs' and {len(outputs)} 'outputs'")
    function = _function(value)
    tests: list[TestCase] = []
    for number, (given, expected) in enumerate(zip(inputs, outputs, strict=True)):
        if function:
            if not isinstance(given, list):
                raise ValueError(f"inputs[{number}] is no list; write the function's arguments")
            tests.append(CallTest(function, given, expected, comparison=comparison))
        else:
            stdin = _as_text(given, f"inputs[{number}]").encode()
            stdout = _as_text(expected, f"outputs[{number}]").encode()
            tests.append(StdioTest(stdin, stdout, comparison=comparison))
    return tests


_READERS = {
    "tests": _read_list,
    "asserts": _read_asserts,
    "code": _read_code,
    "inputs": _read_columns,
}


def _comparison(value: object, where: str) -> Comparison:
    if value is None:
        return Comparison()
    parts = {"kind": value} if isinstance(value, str) else value
    names = ("kind", "absolute_tolerance", "relative_tolerance")
    if not isinstance(parts, dict) or set(parts) - set(names):
        raise ValueError(f"{where}: 'comparison' is a name, or an object of {', '.join(names)}")
    kind = parts.get("kind", "default")
    if kind not in COMPARISONS or kind == "checker":
        known = ", ".join(name for name in COMPARISONS if name != "checker")
        raise ValueError(f"{where}: no comparison is named {kind!r:.40}; choose one of {known}")
    absolute, relative = (_number(parts.get(name, 0.0), f"{where}: {name!r}") for name in names[1:])
    return Comparison(kind, absolute, relative)


def _limits(value: object, where: str) -> Limits:
    if value is None:
        return Limits()
    if not isinstance(value, dict) or set(value) - set(_LIMITS):
        raise ValueError(f"{where}: 'limits' is an object of {', '.join(_LIMITS)}")
    numbers: dict[str, Any] = {}
    for name, given in value.items():
        number = _number(given, f"{where}: limit {name!r}")
        numbers[name] = number if name.endswith("_s") else int(number)
    return Limits(**numbers)


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where} is not a number")
    return value


def _listed(value: Mapping[str, Any], key: str) -> Sequence[Any]:
    listed = value.get(key)
    if not isinstance(listed, list):
        raise ValueError(f"{key!r} is not a list")
    return listed


def _function(value: Mapping[str, Any]) -> str:
    return _text(value, "function", "tests") or _text(value, "fn_name", "tests")


def _text(value: Mapping[str, Any], key: str, where: str) -> str:
    found = value.get(key)
    return "" if found is None else _as_text(found, f"{where}: {key!r}")


def _bytes(value: Mapping[str, Any], key: str, where: str) -> bytes:
    return _text(value, key, where).encode()


def _as_text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} is not a text")
    return value


def _flag(value: Mapping[str, Any], key: str) -> bool:
    found = value.get(key, False)
    if not isinstance(found, bool):
        raise ValueError(f"{key!r} is neither true nor false")
    return found


def _only(test: Mapping[str, Any], keys: set[str], where: str) -> None:
    known = keys | {"name", "limits", "comparison"}
    unknown = sorted(set(test) - known)
    if unknown:
        raise ValueError(
            f"{where} has the key {unknown[0]!r:.40}; such a test has: {', '.join(sorted(known))}"
        )
