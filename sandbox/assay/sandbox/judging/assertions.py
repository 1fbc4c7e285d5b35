"""Judges assert code: folded where it is simple, else in a tester process that calls the candidate.

Covered: test code never shares an interpreter with the candidate. Where it runs in a tester, that
is a second box; the warden carries frames between the two and looks at nothing but their first
byte, except that an answer without a request ends the candidate. A test has passed only if the
tester says so with the number that it was given, over its own channel.
Not covered: test code that hands expected values to the candidate's own functions.
"""

from __future__ import annotations

import secrets
import time
from pathlib import PurePosixPath
from typing import Any, Final

from assay.sandbox.box import Boxes, Pump, Running
from assay.sandbox.domain import EndKind, Limits, RunMode, RunRecord, RunRequest, SandboxFault
from assay.sandbox.harness.codec import CodecError, decode, encode
from assay.sandbox.harness.frames import ANSWER, BEGIN, CALLBACK, DONE, REQUEST, RESULT
from assay.sandbox.judging.evaluation import NotFoldable
from assay.sandbox.judging.folding import Finding, Plan, Raised, fold
from assay.sandbox.judging.link import CandidateLink, await_hello
from assay.sandbox.judging.model import AssertTest, TestOutcome, TestVerdict
from assay.sandbox.judging.text import one_line
from assay.sandbox.judging.verdicts import ended, outcome, passed, raised
from assay.sandbox.prepared import Prepared

WINDOW: Final = 128
TESTER_EXTRA_S: Final = 5.0
_IDLE_S: Final = 0.02
_FORGED: Final = "it answered what was not asked"


def judge_assertions(test: AssertTest, prepared: Prepared, boxes: Boxes, pump: Pump) -> TestOutcome:
    """Judges one piece of assert code.

    Raises:
        SandboxFault: it could not be run; INVALID_TEST where the test code itself is broken.
    """
    plan = fold(test.code, test.entry_point)
    if plan is not None:
        try:
            return _Folded(test, plan, prepared, boxes, pump).judge()
        except NotFoldable:
            pass  # what the candidate returned is for the tester to look at
    return _Tested(test, prepared, boxes, pump).judge()


class _Folded:
    """Assert code whose calls the warden makes itself."""

    def __init__(
        self, test: AssertTest, plan: Plan, prepared: Prepared, boxes: Boxes, pump: Pump
    ) -> None:
        self._test = test
        self._plan = plan
        request = prepared.candidate(limits=test.limits)
        self._link = CandidateLink(boxes.candidate(prepared.program.text), pump, request)
        self._results: list[object] = []
        self._memory = False
        self._sent = 0

    def judge(self) -> TestOutcome:
        """The outcome.

        Raises:
            NotFoldable: a result needs the tester.
        """
        name = self._test.name
        try:
            self._link.ask("load")
            self._send()
            loaded = self._link.answer()
            if loaded is None:
                return ended(name, self._link.finish(), "while it was loaded")
            if loaded.raised is not None:
                text = f"loading the program raised {loaded.raised}"
                return raised(name, self._link.finish(), text, memory=loaded.memory)
            finding = self._collect()
            record = self._link.finish()
            if finding is None:
                return ended(name, record)
            if finding.passed:
                return passed(name, record)
            if finding.raised is not None:
                return raised(name, record, finding.explanation, memory=self._memory)
            return outcome(name, TestVerdict.WRONG_ANSWER, record, finding.explanation)
        finally:
            self._link.close()

    def _collect(self) -> Finding | None:
        """Takes answers until they decide; None where the run ended before that."""
        judged = 0
        while len(self._results) < len(self._plan.calls):
            self._send()
            answer = self._link.answer(time.monotonic() + _IDLE_S)
            if answer is None:
                if len(self._results) > judged:  # while it computes, see whether it has failed
                    judged = len(self._results)
                    finding = self._plan.judge(self._results)
                    if finding is not None:
                        return finding
                if self._link.running.record is not None and not self._link.running.frames:
                    return None
                continue
            if answer.raised is not None:
                self._results.append(Raised(answer.raised))
                self._memory = answer.memory
                break
            if not answer.whole:
                raise NotFoldable("an object")
            self._results.append(answer.value)
        return self._plan.judge(self._results)

    def _send(self) -> None:
        while self._sent < len(self._plan.calls) and self._link.pending < WINDOW:
            call = self._plan.calls[self._sent]
            arguments, keywords = list(call.arguments), call.keyword_arguments
            self._link.ask("call", call.function, arguments, keywords, False, False)
            self._sent += 1


class _Tested:
    """Assert code in a tester process."""

    def __init__(self, test: AssertTest, prepared: Prepared, boxes: Boxes, pump: Pump) -> None:
        self._test = test
        self._pump = pump
        self._nonce = secrets.token_hex(16)
        self._asked = 0
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
        begin = encode([self._nonce, test.code, test.entry_point, stem])
        self._tester.send(BEGIN + begin)

    def judge(self) -> TestOutcome:
        """The outcome."""
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
        """Carries frames until the tester has told the end; None where one side ended before."""
        while True:
            while self._tester.frames:
                frame = self._tester.frames.popleft()
                if frame[:1] == DONE:
                    return self._done(frame)
                self._asked += frame[:1] == REQUEST
                if frame[:1] in {REQUEST, RESULT}:
                    self._candidate.send(frame)
            while self._candidate.frames:
                frame = self._candidate.frames.popleft()
                if frame[:1] not in {ANSWER, CALLBACK} or not self._asked:
                    self._candidate.kill(None, _FORGED)
                    self._pump.finish(self._candidate)
                    self._candidate.frames.clear()
                    self._asked += 1
                    break
                self._asked -= frame[:1] == ANSWER
                self._tester.send(frame)
            if self._tester.record is not None and not self._tester.frames:
                return None
            if self._candidate.record is not None and self._asked:
                return None
            self._pump.step()

    def _done(self, frame: bytes) -> tuple[str, str]:
        try:
            content: Any = decode(frame[1:])
            nonce, result, text = content
        except (CodecError, ValueError, TypeError) as error:
            raise SandboxFault("WORKER_DIED", "the tester's end is malformed") from error
        if nonce != self._nonce:
            raise SandboxFault("INVALID_TEST", "the test code told its end in the tester's name")
        return str(result), str(text)

    def _told(self, result: str, text: str) -> TestOutcome:
        """The outcome that the tester told."""
        name = self._test.name
        if result == "invalid":
            raise SandboxFault("INVALID_TEST", one_line(f"test {name!r}: {text}"))
        record = self._end_candidate()
        if result == "passed":
            return passed(name, record)
        if result in {"error", "memory"}:
            return raised(name, record, text, memory=result == "memory")
        return outcome(name, TestVerdict.WRONG_ANSWER, record, text)

    def _undone(self) -> TestOutcome:
        """The outcome where the tester told no end."""
        name = self._test.name
        if self._candidate.record is not None and self._asked:
            return ended(name, self._candidate.record)
        record = self._pump.finish(self._tester)
        ours = self._end_candidate()
        if record.end in {EndKind.EXITED, EndKind.SIGNALLED, EndKind.SECURITY_VIOLATION}:
            told = record.stderr.data[-200:].decode("utf-8", "replace")
            message = one_line(f"test {name!r}: the test code ended its process: {told}")
            raise SandboxFault("INVALID_TEST", message)
        text = f"the test code ran into a limit on the answers: {record.end.value}"
        return outcome(name, TestVerdict.LIMIT_EXCEEDED, ours, text)

    def _end_candidate(self) -> RunRecord:
        """Lets the candidate end; what it does from here on judges nothing."""
        _say_bye(self._candidate)
        until_s = time.monotonic() + 1.0
        while self._candidate.record is None and (left_s := until_s - time.monotonic()) > 0:
            self._pump.step(left_s)
        if self._candidate.record is None:
            self._candidate.kill(EndKind.EXITED)
        return self._pump.finish(self._candidate)


def _say_bye(running: Running) -> None:
    running.send(REQUEST + encode(["", "bye"]))


def _tester_request(limits: Limits) -> RunRequest:
    """The tester outlives the candidate a little, so that the candidate's limit is met first."""
    own = Limits()
    roomy = own.with_(
        wall_s=limits.wall_s + TESTER_EXTRA_S,
        cpu_s=limits.cpu_s + TESTER_EXTRA_S,
        memory_bytes=max(own.memory_bytes, limits.memory_bytes),
    )
    return RunRequest(mode=RunMode.TESTER, argv=("tests.py",), limits=roomy)
