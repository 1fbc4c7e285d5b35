"""Judges call tests: consecutive ones share a process of the candidate's, as in direct execution.

Covered: the expected values stay here; each call has its own time on the clock; after a crash or a
limit the rest go on in a fresh process, and what was answered before stands.
Not covered: a call's CPU time by itself. The process may use what its calls may use together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from assay.sandbox.box import Boxes, Pump
from assay.sandbox.domain import EndKind, Limits, RunRecord, SandboxFault
from assay.sandbox.harness.codec import CodecError
from assay.sandbox.judging.link import Answer, CandidateLink
from assay.sandbox.judging.model import (
    CallTest,
    ComparisonKind,
    TestOutcome,
    TestVerdict,
)
from assay.sandbox.judging.text import brief
from assay.sandbox.judging.values import compare_values
from assay.sandbox.judging.verdicts import ended, outcome, passed, raised
from assay.sandbox.prepared import Prepared

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
    tests: Sequence[CallTest], prepared: Prepared, boxes: Boxes, pump: Pump, *, stop: bool
) -> list[TestOutcome]:
    """Judges consecutive call tests; with `stop`, no further than the first that fails.

    Raises:
        SandboxFault: they could not be run; INVALID_TEST where a test is not usable.
    """
    for test in tests:
        if test.comparison.kind not in _RULES:
            message = f"test {test.name!r}: {test.comparison.kind.value} does not compare values"
            raise SandboxFault("INVALID_TEST", message)
    outcomes: list[TestOutcome] = []
    while len(outcomes) < len(tests):
        group = _Group(tests[len(outcomes) :], prepared, boxes, pump)
        outcomes += group.judge(stop=stop)
        if stop and outcomes[-1].verdict is not TestVerdict.PASSED:
            break
    return outcomes


class _Group:
    """Call tests in one process; judges at least one of them."""

    def __init__(
        self, tests: Sequence[CallTest], prepared: Prepared, boxes: Boxes, pump: Pump
    ) -> None:
        self._tests = tests
        box = boxes.candidate(prepared.program.text)
        request = prepared.candidate(limits=_together(tests))
        self._link = CandidateLink(box, pump, request)
        self._sent = 0

    def judge(self, *, stop: bool) -> list[TestOutcome]:
        """The outcomes of the tests that this process came to."""
        try:
            return self._judge(stop=stop)
        except CodecError as error:
            raise SandboxFault("INVALID_TEST", f"an argument cannot be carried: {error}") from error
        finally:
            self._link.close()

    def _judge(self, *, stop: bool) -> list[TestOutcome]:
        self._link.ask("load")
        self._send()
        self._link.come_up()
        loaded = self._next(self._tests[0])
        if loaded is None:
            record = self._link.finish()
            return [ended(test.name, record, "while it was loaded") for test in self._tests]
        if loaded.raised is not None:
            record = self._link.finish()
            text = f"loading the program raised {loaded.raised}"
            return [raised(t.name, record, text, memory=loaded.memory) for t in self._tests]
        judged: list[tuple[Answer, str | None]] = []
        for test in self._tests:
            self._send()
            answer = self._next(test)
            if answer is None:
                break
            judged.append((answer, _difference(test, answer)))
            if stop and (answer.raised is not None or judged[-1][1] is not None):
                break
        record = self._link.finish()
        outcomes = [
            _outcome(test, answer, difference, record)
            for test, (answer, difference) in zip(self._tests, judged, strict=False)
        ]
        if answer is None:
            outcomes.append(ended(self._tests[len(judged)].name, record))
        return outcomes

    def _send(self) -> None:
        """Keeps some calls ahead of the answers."""
        while self._sent < len(self._tests) and self._link.pending < WINDOW:
            test = self._tests[self._sent]
            arguments = list(test.arguments)
            keywords = dict(test.keyword_arguments)
            self._link.ask("call", test.function, arguments, keywords, True, False)
            self._sent += 1

    def _next(self, test: CallTest) -> Answer | None:
        """The next answer, within the time of one test; None where the run has ended."""
        answer = self._link.answer(time.monotonic() + test.limits.wall_s)
        if answer is None and self._link.running.record is None:
            self._link.kill(EndKind.WALL_TIME_LIMIT)
        return answer


def _together(tests: Sequence[CallTest]) -> Limits:
    """What a process may use that serves all these tests, and is loaded for them."""
    first = tests[0].limits
    return first.with_(
        cpu_s=first.cpu_s + sum(test.limits.cpu_s for test in tests),
        wall_s=first.wall_s + sum(test.limits.wall_s for test in tests) + 1.0,
        memory_bytes=max(test.limits.memory_bytes for test in tests),
    )


def _difference(test: CallTest, answer: Answer) -> str | None:
    if answer.raised is not None:
        return None
    if not answer.whole:
        return f"expected {brief(test.expected)}, got an object that is no plain data"
    return compare_values(test.comparison, test.expected, answer.value)


def _outcome(
    test: CallTest, answer: Answer, difference: str | None, record: RunRecord
) -> TestOutcome:
    if answer.raised is not None:
        return raised(test.name, record, f"it raised {answer.raised}", memory=answer.memory)
    if difference is not None:
        return outcome(test.name, TestVerdict.WRONG_ANSWER, record, difference)
    return passed(test.name, record)
