"""Holds a prepared program against a suite of tests, in order.

Covered: where a program was killed from outside, its test is run once more, with its limits anew,
and then judged as it stands.
Not covered: a process of the program's that was killed from outside; only the program sees that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from assay.sandbox.box import Boxes, Pump
from assay.sandbox.domain import SandboxFault
from assay.sandbox.judging.assertions import judge_assertions
from assay.sandbox.judging.budget import Budget
from assay.sandbox.judging.calls import judge_calls
from assay.sandbox.judging.model import (
    AssertCase,
    CallCase,
    CaseOutcome,
    StdioCase,
    Suite,
    SuiteReport,
    TestVerdict,
)
from assay.sandbox.judging.outputs import judge_output
from assay.sandbox.judging.verdicts import killed_from_outside
from assay.sandbox.prepared import Prepared, Preparer


def judge(
    prepared: Prepared, suite: Suite, boxes: Boxes, pump: Pump, preparer: Preparer
) -> SuiteReport:
    """Runs a program on each test and judges it.

    Args:
        prepared: the program.
        suite: the tests; at least one.
        boxes: where to run; `pump` drives them.
        pump: waits for what runs.
        preparer: compiles checkers.

    Raises:
        SandboxFault: the tests could not be run; INVALID_TEST where the suite itself is at fault.
            There
            is then no verdict on any of the tests.
    """
    if not suite.tests:
        raise SandboxFault("INVALID_TEST", "the suite has no test")
    outcomes: list[CaseOutcome] = []
    budget = Budget(pump)
    while len(outcomes) < len(suite.tests):
        rest = suite.tests[len(outcomes) :]
        test = rest[0]
        if isinstance(test, StdioCase):
            one = partial(judge_output, test, prepared, boxes, pump, preparer, budget=budget)
            outcomes.append(_twice_if_killed(one))
        elif isinstance(test, AssertCase):
            one = partial(judge_assertions, test, prepared, boxes, pump, budget)
            outcomes.append(_twice_if_killed(one))
        else:
            some = partial(
                judge_calls,
                prepared=prepared,
                boxes=boxes,
                pump=pump,
                budget=budget,
                stop=suite.stop_at_first_failure,
            )
            calls = _leading_calls(rest)
            outcomes += _again_where_killed(some(calls), calls, some)
        if suite.stop_at_first_failure and outcomes[-1].verdict is not TestVerdict.PASSED:
            break
    failed = len(outcomes)
    left = [CaseOutcome(test.name, TestVerdict.NOT_RUN) for test in suite.tests[failed:]]
    return SuiteReport((*outcomes, *left), prepared.compile_output)


def _twice_if_killed(judge_it: Callable[[], CaseOutcome]) -> CaseOutcome:
    """A test's outcome; the second, where the first was killed from outside."""
    made = judge_it()
    return judge_it() if _was_killed(made) else made


def _again_where_killed(
    made: Sequence[CaseOutcome],
    tests: Sequence[CallCase],
    judge_them: Callable[[Sequence[CallCase]], list[CaseOutcome]],
) -> list[CaseOutcome]:
    """Outcomes of call tests; those lost to a kill from outside are judged once more.

    One kill takes one test, or, while the program is loaded, all tests of that process.
    """
    outcomes: list[CaseOutcome] = []
    while len(outcomes) < len(made):
        at = len(outcomes)
        if not _was_killed(made[at]):
            outcomes.append(made[at])
            continue
        taken = [tests[at]]
        for test, other in zip(tests[at + 1 :], made[at + 1 :], strict=False):
            if other.record is not made[at].record:
                break
            taken.append(test)
        second = judge_them(taken)
        if not _was_killed(second[0]):  # it got further, and what it had not come to is new
            second = [second[0], *_again_where_killed(second[1:], taken[1:], judge_them)]
        outcomes += second
        if len(second) < len(taken):
            break  # it failed one, and the suite stops there
    return outcomes


def _was_killed(made: CaseOutcome) -> bool:
    """Whether a test was lost to a kill from outside; earlier answers stand."""
    if made.verdict is not TestVerdict.RUNTIME_ERROR or made.record is None:
        return False
    return killed_from_outside(made.record)


def _leading_calls(tests: tuple[StdioCase | CallCase | AssertCase, ...]) -> list[CallCase]:
    calls: list[CallCase] = []
    for test in tests:
        if not isinstance(test, CallCase):
            break
        calls.append(test)
    return calls
