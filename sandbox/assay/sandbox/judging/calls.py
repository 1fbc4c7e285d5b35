"""Judges call tests: consecutive ones share a process of the candidate's, as in direct execution.

Covered: the expected values stay here; each call has its own wall time; after a crash or a limit
the rest go on in a fresh process, and earlier answers stand.
Not covered: a call's CPU time by itself. The process may use what its calls may use together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from assay.sandbox.box import Boxes, Pump
from assay.sandbox.domain import EndKind, RunLimits, RunRecord, SandboxFault
from assay.sandbox.harness.references import CodecError
from assay.sandbox.judging.budget import Budget, Told, judge_within
from assay.sandbox.judging.link import FORGED, CandidateLink, read
from assay.sandbox.judging.model import (
    CallCase,
    CaseOutcome,
    ComparisonKind,
    TestVerdict,
)
from assay.sandbox.judging.text import brief
from assay.sandbox.judging.values import compare_values
from assay.sandbox.judging.verdicts import ended, outcome, passed, raised
from assay.sandbox.prepared import Prepared

_Told = tuple[TestVerdict, str, bool]
"""The verdict on an answer, why, and whether the program lacked memory."""

WINDOW: Final = 64
_RULES: Final = frozenset(
    {
        ComparisonKind.DEFAULT,
        ComparisonKind.EXACT,
        ComparisonKind.NUMERIC,
        ComparisonKind.UNORDERED,
    }
)


def judge_calls(
    tests: Sequence[CallCase],
    prepared: Prepared,
    boxes: Boxes,
    pump: Pump,
    budget: Budget,
    *,
    stop: bool,
) -> list[CaseOutcome]:
    """Judges consecutive call tests; with `stop`, no further than the first that fails.

    Raises:
        SandboxFault: they could not be run; INVALID_TEST where a test is not usable.
    """
    for test in tests:
        if test.comparison.kind not in _RULES:
            message = f"test {test.name!r}: {test.comparison.kind.value} does not compare values"
            raise SandboxFault("INVALID_TEST", message)
    outcomes: list[CaseOutcome] = []
    while len(outcomes) < len(tests):
        group = _Group(tests[len(outcomes) :], prepared, boxes, pump, budget)
        outcomes += group.judge(stop=stop)
        if stop and outcomes[-1].verdict is not TestVerdict.PASSED:
            break
    return outcomes


class _Group:
    """Call tests in one process; judges at least one of them."""

    def __init__(
        self,
        tests: Sequence[CallCase],
        prepared: Prepared,
        boxes: Boxes,
        pump: Pump,
        budget: Budget,
    ) -> None:
        self._tests = tests
        self._budget = budget
        box = boxes.candidate(prepared.program.text)
        request = prepared.candidate(limits=_together(tests))
        self._link = CandidateLink(box, pump, request)
        self._sent = 0

    def judge(self, *, stop: bool) -> list[CaseOutcome]:
        try:
            return self._judge(stop=stop)
        except CodecError as error:
            raise SandboxFault("INVALID_TEST", f"an argument cannot be carried: {error}") from error
        finally:
            self._link.close()

    def _judge(self, *, stop: bool) -> list[CaseOutcome]:
        self._link.ask("load")
        self._send()
        self._link.come_up()
        loaded = self._next(self._tests[0])
        if loaded is None:
            record = self._link.finish()
            return [ended(test.name, record, "while it was loaded") for test in self._tests]
        told = self._told(None, loaded)
        if told[0] is not TestVerdict.PASSED:
            record = self._ended_by(told)
            return [_outcome(test, told, record, "loading the program") for test in self._tests]
        judged: list[_Told] = []
        for test in self._tests:
            self._send()
            content = self._next(test)
            if content is None:
                break
            judged.append(self._told(test, content))
            if judged[-1][0] is TestVerdict.SECURITY_VIOLATION:
                break
            if stop and judged[-1][0] is not TestVerdict.PASSED:
                break
        record = self._ended_by(judged[-1] if judged else told)
        outcomes = [
            _outcome(test, one, record, "it")
            for test, one in zip(self._tests, judged, strict=False)
        ]
        if content is None:
            outcomes.append(ended(self._tests[len(judged)].name, record))
        return outcomes

    def _told(self, test: CallCase | None, content: bytes) -> _Told:
        kind, text, memory = judge_within(
            self._budget, lambda: _judged(test, content), len(content)
        )
        return TestVerdict(kind), text, memory

    def _ended_by(self, told: _Told) -> RunRecord:
        """The end of the run; an invalid answer has it killed."""
        if told[0] is TestVerdict.SECURITY_VIOLATION:
            return self._link.forged()
        return self._link.finish()

    def _send(self) -> None:
        while self._sent < len(self._tests) and self._link.pending < WINDOW:
            test = self._tests[self._sent]
            arguments = list(test.arguments)
            keywords = dict(test.keyword_arguments)
            self._link.ask("call", test.function, arguments, keywords, True, False)
            self._sent += 1

    def _next(self, test: CallCase) -> bytes | None:
        """The next answer's content, within one test's time; None where the run has ended."""
        answer = self._link.answer(time.monotonic() + test.limits.wall_s)
        if answer is None and self._link.running.record is None:
            self._link.kill(EndKind.WALL_TIME_LIMIT)
        return answer


def _together(tests: Sequence[CallCase]) -> RunLimits:
    first = tests[0].limits
    return first.with_(
        cpu_s=first.cpu_s + sum(test.limits.cpu_s for test in tests),
        wall_s=first.wall_s + sum(test.limits.wall_s for test in tests) + 1.0,
        memory_bytes=max(test.limits.memory_bytes for test in tests),
    )


def _judged(test: CallCase | None, content: bytes) -> Told:
    answer = read(content)
    if answer is None:
        return TestVerdict.SECURITY_VIOLATION.value, FORGED, False
    if answer.raised is not None:
        return TestVerdict.RUNTIME_ERROR.value, answer.raised, answer.memory
    if test is None:
        return TestVerdict.PASSED.value, "", False
    if not answer.whole:
        text = f"expected {brief(test.expected)}, got an object that is no plain data"
        return TestVerdict.WRONG_ANSWER.value, text, False
    difference = compare_values(test.comparison, test.expected, answer.value)
    verdict = TestVerdict.PASSED if difference is None else TestVerdict.WRONG_ANSWER
    return verdict.value, difference or "", False


def _outcome(test: CallCase, told: _Told, record: RunRecord, who: str) -> CaseOutcome:
    verdict, text, memory = told
    if verdict is TestVerdict.RUNTIME_ERROR:
        return raised(test.name, record, f"{who} raised {text}", memory=memory)
    if verdict is TestVerdict.PASSED:
        return passed(test.name, record)
    return outcome(test.name, verdict, record, text)
