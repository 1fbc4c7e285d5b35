"""Judges assert code: folded where it is simple, else in a tester process that calls the candidate.

Covered: test code never shares an interpreter with the candidate: a tester runs in a second box.
The supervisor carries each frame of the candidate's for one of the tester's, and reads only its
first byte; an unasked frame ends the candidate. A test has passed only if the tester reports so
over its own channel with the tag that it was given.
Not covered: test code that hands expected values to the candidate's own functions.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from assay.sandbox.box import Boxes, Pump, Running
from assay.sandbox.domain import EndKind, RunLimits, RunMode, RunRecord, RunRequest, SandboxFault
from assay.sandbox.harness import protocol
from assay.sandbox.harness.codec import decode, encode
from assay.sandbox.harness.evaluation import NotFoldable
from assay.sandbox.harness.protocol import (
    ANSWER,
    BEGIN,
    CALLBACK,
    DONE,
    HEADER_BYTES,
    REQUEST,
    RESULT,
    TAG_BYTES,
)
from assay.sandbox.harness.references import CodecError
from assay.sandbox.judging.budget import Budget, Told, judge_within
from assay.sandbox.judging.folding import FoldedAsserts, RaisedCall, fold
from assay.sandbox.judging.link import FORGED, CandidateLink, await_hello, read
from assay.sandbox.judging.model import AssertCase, CaseOutcome, TestVerdict
from assay.sandbox.judging.text import one_line
from assay.sandbox.judging.verdicts import (
    ended,
    killed_from_outside,
    outcome,
    passed,
    raised,
)
from assay.sandbox.prepared import Prepared

WINDOW: Final = 128
TESTER_EXTRA_S: Final = 5.0
_IDLE_S: Final = 0.02
_VALUE: Final = b'["value"'
_ATTEMPTS: Final = 2
_BEFORE_USE: Final = 2  # answers that the test code does not see: to "load" and "lookup"


def judge_assertions(
    test: AssertCase, prepared: Prepared, boxes: Boxes, pump: Pump, budget: Budget
) -> CaseOutcome:
    """Judges one piece of assert code.

    Raises:
        SandboxFault: it could not be run; INVALID_TEST where the test code itself is broken.
    """
    plan = fold(test.code, test.entry_point)
    if plan is not None:
        try:
            return _Folded(test, plan, prepared, boxes, pump, budget=budget).judge()
        except NotFoldable:
            pass  # what the candidate returned is for the tester to look at
    for _ in range(_ATTEMPTS):
        try:
            return _Tested(test, prepared, boxes, pump).judge()
        except _TesterKilled:
            continue
    raise SandboxFault(
        "WORKER_DIED", f"test {test.name!r}: the process of the test code was killed"
    )


class _TesterKilled(Exception):
    """Somebody else killed the tester, which is nobody's fault here."""


class _Folded:
    def __init__(
        self,
        test: AssertCase,
        plan: FoldedAsserts,
        prepared: Prepared,
        boxes: Boxes,
        pump: Pump,
        *,
        budget: Budget,
    ) -> None:
        self._test = test
        self._plan = plan
        request = prepared.candidate(limits=test.limits)
        self._link = CandidateLink(boxes.candidate(prepared.program.text), pump, request)
        self._budget = budget
        self._answers: list[bytes] = []
        self._size_bytes = 0
        self._sent = 0

    def judge(self) -> CaseOutcome:
        name = self._test.name
        try:
            self._link.ask("load")
            self._send()
            loaded = self._link.answer()
            if loaded is None:
                return ended(name, self._link.finish(), "while it was loaded")
            told = judge_within(self._budget, lambda: _loaded(loaded), len(loaded))
            if told[0] != TestVerdict.PASSED.value:
                return self._outcome(told)
            self._collect()
            found = self._so_far()
            return ended(name, self._link.finish()) if found is None else self._outcome(found)
        finally:
            self._link.close()

    def _collect(self) -> None:
        judged = 0
        while len(self._answers) < len(self._plan.calls):
            self._send()
            answer = self._link.answer(time.monotonic() + _IDLE_S)
            if answer is not None:
                self._answers.append(answer)
                self._size_bytes += len(answer)
                if not answer.startswith(_VALUE):
                    return  # it raised, which decides, whatever the rest would be
            elif self._link.running.record is not None and not self._link.running.frames:
                return
            elif len(self._answers) > judged and self._budget.is_small(self._size_bytes):
                judged = len(self._answers)  # while it computes, see whether it has failed
                if self._so_far() is not None:
                    return

    def _so_far(self) -> Told | None:
        """The verdict of the answers; None where an assert needs a missing one.

        Raises:
            NotFoldable: a result needs the tester.
        """
        told = judge_within(
            self._budget, lambda: _found(self._plan, self._answers), self._size_bytes
        )
        if told[0] == "unfoldable":
            raise NotFoldable(told[1])
        return None if told[0] == "open" else told

    def _outcome(self, told: Told) -> CaseOutcome:
        verdict, text, memory = TestVerdict(told[0]), *told[1:]
        name = self._test.name
        if verdict is TestVerdict.SECURITY_VIOLATION:
            return ended(name, self._link.forged())
        record = self._link.finish()
        if verdict is TestVerdict.PASSED:
            return passed(name, record)
        if verdict is TestVerdict.RUNTIME_ERROR:
            return raised(name, record, text, memory=memory)
        return outcome(name, verdict, record, text)

    def _send(self) -> None:
        while self._sent < len(self._plan.calls) and self._link.pending < WINDOW:
            call = self._plan.calls[self._sent]
            arguments, keywords = list(call.arguments), call.keyword_arguments
            self._link.ask("call", call.function, arguments, keywords, False, False)
            self._sent += 1


def _loaded(content: bytes) -> Told:
    answer = read(content)
    if answer is None:
        return TestVerdict.SECURITY_VIOLATION.value, FORGED, False
    if answer.raised is not None:
        text = f"loading the program raised {answer.raised}"
        return TestVerdict.RUNTIME_ERROR.value, text, answer.memory
    return TestVerdict.PASSED.value, "", False


def _found(plan: FoldedAsserts, answers: Sequence[bytes]) -> Told:
    results: list[object] = []
    memory = False
    for content in answers:
        answer = read(content)
        if answer is None:
            return TestVerdict.SECURITY_VIOLATION.value, FORGED, False
        if not answer.whole:
            return "unfoldable", "an object", False
        memory = answer.memory
        results.append(answer.value if answer.raised is None else RaisedCall(answer.raised))
    try:
        finding = plan.judge(results)
    except NotFoldable as error:
        return "unfoldable", str(error), False
    if finding is None:
        return "open", "", False
    if finding.passed:
        return TestVerdict.PASSED.value, "", False
    broke = finding.raised is not None
    verdict = TestVerdict.RUNTIME_ERROR if broke else TestVerdict.WRONG_ANSWER
    return verdict.value, finding.explanation, memory and broke


class _Tested:
    def __init__(self, test: AssertCase, prepared: Prepared, boxes: Boxes, pump: Pump) -> None:
        self._test = test
        self._pump = pump
        self._tag = secrets.token_bytes(TAG_BYTES)
        self._asked = 0  # the candidate has one frame for each that the tester sends
        self._answered = 0
        request = prepared.candidate(limits=test.limits)
        stem = PurePosixPath(request.argv[0]).stem
        self._candidate = boxes.candidate(prepared.program.text).start(request)
        pump.add(self._candidate)
        try:
            self._tester = boxes.tester().start(_tester_request(test.limits))
        except BaseException:
            self._candidate.kill()
            pump.finish(self._candidate)
            raise
        pump.add(self._tester)
        begin = encode([test.code, test.entry_point, stem])
        self._tester.send(protocol.frame(BEGIN, self._tag, begin))

    def judge(self) -> CaseOutcome:
        try:
            await_hello(self._tester, self._pump)
            await_hello(self._candidate, self._pump)
            done = self._carry()
            if done is None:
                return self._undone()
            return self._told(*done)
        finally:
            for running in (self._tester, self._candidate):
                if running.record is None:
                    running.kill()
                    self._pump.finish(running)

    def _carry(self) -> tuple[str, str] | None:
        """Carries frames until the tester reports its end; None where one side ended before."""
        while True:
            while self._tester.frames:
                frame = self._tester.frames.popleft()
                if frame[:1] == DONE:
                    return self._done(frame)
                if frame[:1] in {REQUEST, RESULT}:
                    self._asked += 1
                    self._candidate.send(frame)
            while self._candidate.frames:
                frame = self._candidate.frames.popleft()
                short = len(frame) < HEADER_BYTES
                if short or frame[:1] not in {ANSWER, CALLBACK} or not self._asked:
                    self._candidate.kill(EndKind.SECURITY_VIOLATION, FORGED)
                    self._pump.finish(self._candidate)
                    self._candidate.frames.clear()
                    self._asked += 1
                    break
                self._asked -= 1
                self._answered += 1
                self._tester.send(frame)
            if self._tester.record is not None and not self._tester.frames:
                return None
            if self._candidate.record is not None and self._asked:
                return None
            self._pump.step()

    def _done(self, frame: bytes) -> tuple[str, str]:
        _, tag, body = protocol.split(frame)
        try:
            content: Any = decode(body)
            result, text = content
        except (CodecError, ValueError, TypeError) as error:
            raise SandboxFault("WORKER_DIED", "the tester's end is malformed") from error
        if tag != self._tag:
            raise SandboxFault("INVALID_TEST", "the test code told its end in the tester's name")
        return str(result), str(text)

    def _told(self, result: str, text: str) -> CaseOutcome:
        name = self._test.name
        if result == "invalid":
            raise SandboxFault("INVALID_TEST", one_line(f"test {name!r}: {text}"))
        if result == "forged":
            self._candidate.kill(EndKind.SECURITY_VIOLATION, text)
            return ended(name, self._pump.finish(self._candidate))
        record = self._end_candidate()
        if result == "passed":
            return passed(name, record)
        if result in {"error", "memory"}:
            return raised(name, record, text, memory=result == "memory")
        return outcome(name, TestVerdict.WRONG_ANSWER, record, text)

    def _undone(self) -> CaseOutcome:
        name = self._test.name
        if self._candidate.record is not None and self._asked:
            return ended(name, self._candidate.record)
        record = self._pump.finish(self._tester)
        ours = self._end_candidate()
        if killed_from_outside(record):
            raise _TesterKilled
        if record.end is EndKind.SIGNALLED and self._answered > _BEFORE_USE:
            text = f"the test code crashed on what it got: signal {record.signal}"
            return outcome(name, TestVerdict.WRONG_ANSWER, ours, text)
        if record.end in {EndKind.EXITED, EndKind.SIGNALLED, EndKind.SECURITY_VIOLATION}:
            told = record.stderr.data[-200:].decode("utf-8", "replace")
            message = one_line(f"test {name!r}: the test code ended its process: {told}")
            raise SandboxFault("INVALID_TEST", message)
        text = f"the test code ran into a limit on the answers: {record.end.value}"
        return outcome(name, TestVerdict.LIMIT_EXCEEDED, ours, text)

    def _end_candidate(self) -> RunRecord:
        """Lets the candidate end; nothing is judged from here on."""
        _say_bye(self._candidate)
        until_s = time.monotonic() + 1.0
        while self._candidate.record is None and (left_s := until_s - time.monotonic()) > 0:
            self._pump.step(left_s)
        if self._candidate.record is None:
            self._candidate.kill(EndKind.EXITED)
        return self._pump.finish(self._candidate)


def _say_bye(running: Running) -> None:
    running.send(protocol.frame(REQUEST, protocol.NO_TAG, encode(["bye"])))


def _tester_request(limits: RunLimits) -> RunRequest:
    """The tester outlives the candidate a little, so that the candidate's limit is met first."""
    own = RunLimits()
    roomy = own.with_(
        wall_s=limits.wall_s + TESTER_EXTRA_S,
        cpu_s=limits.cpu_s + TESTER_EXTRA_S,
        memory_bytes=max(own.memory_bytes, limits.memory_bytes),
    )
    return RunRequest(mode=RunMode.TESTER, argv=("tests.py",), limits=roomy)
