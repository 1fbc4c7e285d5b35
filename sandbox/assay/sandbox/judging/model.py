"""Tests and their outcomes, as plain values.

A *plain value* is a tree of exact built-in types: None, bool, int, float, str, bytes, list, tuple,
set, frozenset, dict. Nothing else crosses from a candidate to its judge.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.sandbox.domain import CapturedOutput, RunLimits, RunRecord, SubmittedProgram

Plain = object
"""A plain value; see the module's text."""


class ComparisonKind(enum.Enum):
    """The rule by which answers are compared."""

    DEFAULT = "default"  # tokens for stdout, equality as in Python for values
    EXACT = "exact"
    TOKENS = "tokens"
    NUMERIC = "numeric"
    UNORDERED = "unordered"
    CHECKER = "checker"


@dataclass(frozen=True, slots=True)
class AnswerComparison:
    """How an answer is compared; the tolerances are for numbers."""

    kind: ComparisonKind = ComparisonKind.DEFAULT
    absolute_tolerance: float = 0.0
    relative_tolerance: float = 0.0
    checker: SubmittedProgram | None = None


@dataclass(frozen=True, slots=True)
class StdioCase:
    """Feed stdin, compare stdout."""

    name: str
    stdin: bytes
    expected: bytes
    comparison: AnswerComparison = AnswerComparison()
    arguments: tuple[str, ...] = ()
    limits: RunLimits = RunLimits()


@dataclass(frozen=True, slots=True)
class CallCase:
    """Call a function ("name" or "Class.method" of a fresh instance), compare what it returns."""

    name: str
    function: str
    arguments: tuple[Plain, ...]
    expected: Plain
    keyword_arguments: Mapping[str, Plain] = field(default_factory=dict)
    comparison: AnswerComparison = AnswerComparison()
    limits: RunLimits = RunLimits()


@dataclass(frozen=True, slots=True)
class AssertCase:
    """Run test code in a process of its own that calls the candidate's."""

    name: str
    code: str
    entry_point: str = ""
    limits: RunLimits = RunLimits()


TestCase = StdioCase | CallCase | AssertCase


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests in order; limits are already those of each test."""

    tests: tuple[TestCase, ...]
    stop_at_first_failure: bool = False


class TestVerdict(enum.Enum):
    """The verdict on one test."""

    __test__ = False  # not a class of pytest's

    PASSED = "passed"
    WRONG_ANSWER = "wrong-answer"
    RUNTIME_ERROR = "runtime-error"
    LIMIT_EXCEEDED = "limit-exceeded"
    SECURITY_VIOLATION = "security-violation"
    NOT_RUN = "not-run"


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """One test's verdict; `explanation` is one line of at most 400 characters."""

    __test__ = False

    name: str
    verdict: TestVerdict
    record: RunRecord | None = None
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The outcomes of a program's tests, in their order."""

    outcomes: tuple[CaseOutcome, ...]
    compile_output: CapturedOutput = CapturedOutput()
    compile_failed: bool = False
