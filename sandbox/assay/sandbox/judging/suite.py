"""Holds a prepared program against a suite of tests, in order."""

from __future__ import annotations

from assay.sandbox.box import Boxes, Pump
from assay.sandbox.domain import SandboxFault
from assay.sandbox.judging.assertions import judge_assertions
from assay.sandbox.judging.budget import Budget
from assay.sandbox.judging.calls import judge_calls
from assay.sandbox.judging.model import (
    AssertTest,
    CallTest,
    Report,
    StdioTest,
    Suite,
    TestOutcome,
    TestVerdict,
)
from assay.sandbox.judging.outputs import judge_output
from assay.sandbox.prepared import Prepared, Preparer


def judge(prepared: Prepared, suite: Suite, boxes: Boxes, pump: Pump, preparer: Preparer) -> Report:
    """Runs a program on each test and judges it.

    Args:
        prepared: the program.
        suite: the tests; at least one.
        boxes: where to run things; `pump` drives them.
        pump: waits for what runs.
        preparer: compiles checkers.

    Raises:
        SandboxFault: the tests could not be run; INVALID_TEST where the suite itself is at fault.
            There is then no verdict on any of the tests.
    """
    if not suite.tests:
        raise SandboxFault("INVALID_TEST", "the suite has no test")
    outcomes: list[TestOutcome] = []
    budget = Budget(pump)
    while len(outcomes) < len(suite.tests):
        rest = suite.tests[len(outcomes) :]
        test = rest[0]
        if isinstance(test, StdioTest):
            outcomes.append(judge_output(test, prepared, boxes, pump, preparer, budget=budget))
        elif isinstance(test, AssertTest):
            outcomes.append(judge_assertions(test, prepared, boxes, pump, budget))
        else:
            calls = _leading_calls(rest)
            stop = suite.stop_at_first_failure
            outcomes += judge_calls(calls, prepared, boxes, pump, budget, stop=stop)
        if suite.stop_at_first_failure and outcomes[-1].verdict is not TestVerdict.PASSED:
            break
    failed = len(outcomes)
    left = [TestOutcome(test.name, TestVerdict.NOT_RUN) for test in suite.tests[failed:]]
    return Report((*outcomes, *left), prepared.compile_output)


def _leading_calls(tests: tuple[StdioTest | CallTest | AssertTest, ...]) -> list[CallTest]:
    """The call tests that come first."""
    calls: list[CallTest] = []
    for test in tests:
        if not isinstance(test, CallTest):
            break
        calls.append(test)
    return calls
