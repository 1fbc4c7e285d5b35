"""Judges stdin/stdout tests: one run each, compared here or by a checker.

Covered: the expected output stays in the warden, or goes to the checker's process in a second box;
an output that was cut off, or of a run that did not end well, never passes.
Not covered: a checker is believed. One that breaks is a fault of the suite's, not a verdict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from assay.sandbox.box import Box, Boxes, Pump
from assay.sandbox.domain import BoxFile, EndKind, RunRecord, RunRequest, SandboxFault
from assay.sandbox.judging.model import (
    Comparison,
    ComparisonKind,
    StdioTest,
    TestOutcome,
    TestVerdict,
)
from assay.sandbox.judging.stdout import compare_output
from assay.sandbox.judging.text import one_line
from assay.sandbox.judging.verdicts import ended, outcome, passed
from assay.sandbox.prepared import CompileFailed, Prepared, Preparer

CHECKER_FILES: Final = ("input.txt", "answer.txt", "expected.txt")


def judge_output(
    test: StdioTest, prepared: Prepared, boxes: Boxes, pump: Pump, preparer: Preparer
) -> TestOutcome:
    """Runs the program on one test's input and judges its output.

    Raises:
        SandboxFault: it could not be run or judged.
    """
    checker = _checker(test, preparer)
    request = prepared.run(stdin=test.stdin, arguments=test.arguments, limits=test.limits)
    record = run_to_end(boxes.candidate(prepared.program.text), pump, request)
    if not record.ok:
        return ended(test.name, record, when="")
    if record.stdout.truncated:
        text = f"its output of {record.stdout.total_bytes} bytes is longer than what is kept"
        return outcome(test.name, TestVerdict.WRONG_ANSWER, record, text)
    if checker is not None:
        difference = _check(checker, test, record.stdout.data, boxes.tester(), pump)
    else:
        difference = compare_output(test.comparison, test.expected, record.stdout.data)
    if difference is None:
        return passed(test.name, record)
    return outcome(test.name, TestVerdict.WRONG_ANSWER, record, difference)


def run_to_end(box: Box, pump: Pump, request: RunRequest) -> RunRecord:
    """Runs a program; nothing of it is left when this returns or raises."""
    running = box.start(request)
    pump.add(running)
    try:
        return pump.finish(running)
    finally:
        if running.record is None:
            running.kill()
            pump.finish(running)


def _checker(test: StdioTest, preparer: Preparer) -> Prepared | None:
    """The test's checker, compiled; None where the rule needs none."""
    comparison: Comparison = test.comparison
    if comparison.kind is not ComparisonKind.CHECKER:
        return None
    if comparison.checker is None:
        raise SandboxFault("INVALID_TEST", f"test {test.name!r}: the checker's program is missing")
    try:
        return preparer.prepare(comparison.checker, test.limits)
    except CompileFailed as error:
        output = error.record.stderr.data[-300:].decode("utf-8", "replace")
        message = one_line(f"test {test.name!r}: the checker does not compile: {output}")
        raise SandboxFault("INVALID_TEST", message) from error


def _check(checker: Prepared, test: StdioTest, answer: bytes, box: Box, pump: Pump) -> str | None:
    """What the checker says: exit code 0 accepts, 1 rejects."""
    contents = (test.stdin, answer, test.expected)
    request = checker.run(stdin=b"", arguments=CHECKER_FILES, limits=test.limits)
    files = tuple(BoxFile(path, data) for path, data in zip(CHECKER_FILES, contents, strict=True))
    record = run_to_end(box, pump, replace(request, files=(*request.files, *files)))
    if record.end is EndKind.EXITED and record.exit_code in {0, 1}:
        # An interpreter exits with 1 for an error of the checker's own: that is no rejection.
        broke = record.exit_code == 1 and b"Traceback (most recent call last)" in record.stderr.data
        if not broke:
            said = record.stdout.data[:200].decode("utf-8", "replace").strip()
            return None if record.ok else one_line(f"the checker rejects it: {said}".rstrip(": "))
    told = record.stderr.data[-200:].decode("utf-8", "replace")
    ending = f"{record.end.value}, exit code {record.exit_code}"
    message = one_line(f"test {test.name!r}: the checker broke ({ending}): {told}")
    raise SandboxFault("INVALID_TEST", message)
