"""Judges stdin/stdout tests: one run each, compared here or by a checker.

A checker gets the names of three files, with the input, the program's output and the expected one.
Exit code 0 accepts, 1 rejects. One that breaks instead (another code, a signal, a limit, an error
of
its interpreter) runs once more on the expected output: if it does not accept that, the suite is at
fault; if it does, the output is unreadable and so wrong. So no program can print its way to a
fault.
The exit codes of testlib.h fit in: 2, 3, 4 and 8 are such breaks, and so is partial credit (7, or 2
and more from `_pc`): it does not accept.

Covered: the expected output stays in the supervisor, or goes to the checker's process in a second
box; an output that was cut off, or of a run that did not end well, never passes. A checker gets the
program's output as a file, never as an argument.
Not covered: a checker is believed. Without an expected output, an output that breaks the checker is
wrong, even if every output does. An expected output that its own checker rejects makes a fault of
every output that breaks the checker.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from typing import Final

from assay.sandbox.box import Box, Boxes, Pump
from assay.sandbox.domain import (
    MIB,
    BoxFile,
    EndKind,
    RunLimits,
    RunRecord,
    RunRequest,
    SandboxFault,
)
from assay.sandbox.judging.budget import Budget, Overrun, Unjudged
from assay.sandbox.judging.model import (
    AnswerComparison,
    CaseOutcome,
    ComparisonKind,
    StdioCase,
    TestVerdict,
)
from assay.sandbox.judging.stdout import compare_output
from assay.sandbox.judging.text import one_line
from assay.sandbox.judging.verdicts import ended, outcome, passed
from assay.sandbox.prepared import CompileFailed, Prepared, Preparer

CHECKER_FILES: Final = ("input.txt", "answer.txt", "expected.txt")
# How interpreters end with 1 for an error of the program's: Python, whose last line alone names an
# error of syntax, Node.js and Java.
_ERROR: Final = re.compile(
    rb"^Traceback \(most recent call last\)|^(?:Syntax|Indentation|Tab)Error: |^\s+at |"
    rb"^Exception in thread ",
    re.MULTILINE,
)
_CODES: Final = {
    2: "presentation error",
    3: "the checker failed",
    7: "partial credit",
    8: "unexpected end of file",
}


class _Accepting:
    """Checkers that accepted their test's expected output; the latest ones only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, key: bytes) -> bool:
        if key not in self._keys:
            return False
        self._keys.move_to_end(key)
        return True

    def add(self, key: bytes) -> None:
        self._keys[key] = None
        if len(self._keys) > self._most:
            self._keys.popitem(last=False)


_accepting: Final = _Accepting(1024)


def judge_output(
    test: StdioCase,
    prepared: Prepared,
    boxes: Boxes,
    pump: Pump,
    preparer: Preparer,
    *,
    budget: Budget,
) -> CaseOutcome:
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
    output = record.stdout.data
    try:
        if checker is not None:
            difference = _checked(checker, test, output, boxes.tester(), pump)
        else:
            compare = partial(compare_output, test.comparison, test.expected, output)
            difference = budget.run(compare, len(output))
    except Overrun as overrun:
        return outcome(test.name, TestVerdict.LIMIT_EXCEEDED, record, str(overrun))
    except Unjudged as unjudged:
        difference = str(unjudged)
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


def _checker(test: StdioCase, preparer: Preparer) -> Prepared | None:
    comparison: AnswerComparison = test.comparison
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


def _checked(checker: Prepared, test: StdioCase, answer: bytes, box: Box, pump: Pump) -> str | None:
    """None where the checker accepts an answer, else what is wrong with it.

    Raises:
        SandboxFault: INVALID_TEST, it does not accept the expected output either.
    """
    record = _check(checker, test, answer, box, pump)
    if record.ok:
        return None
    if not _broke(record):
        said = record.stdout.data[:200].decode("utf-8", "replace").strip()
        return one_line(f"the checker rejects it: {said}".rstrip(": "))
    key = _key(checker, test)
    if test.expected and key not in _accepting:
        reference = _check(checker, test, test.expected, box, pump)
        if not reference.ok:
            text = f"the checker does not accept the expected output: {_ending(reference)}"
            raise SandboxFault("INVALID_TEST", one_line(f"test {test.name[:80]!r}: {text}"))
        _accepting.add(key)
    return one_line(f"the checker could not read the output: {_ending(record)}")


def _check(checker: Prepared, test: StdioCase, answer: bytes, box: Box, pump: Pump) -> RunRecord:
    contents = (test.stdin, answer, test.expected)
    limits = _with_room(test.limits, sum(map(len, contents)))
    request = checker.run(stdin=b"", arguments=CHECKER_FILES, limits=limits)
    files = tuple(BoxFile(path, data) for path, data in zip(CHECKER_FILES, contents, strict=True))
    return run_to_end(box, pump, replace(request, files=(*request.files, *files)))


def _with_room(limits: RunLimits, size_bytes: int) -> RunLimits:
    """The limits, with a folder that takes the checker's files: a long answer is no fault."""
    needed = 2 * size_bytes + MIB
    return limits if needed <= limits.disk_bytes else limits.with_(disk_bytes=needed)


def _broke(record: RunRecord) -> bool:
    """The checker neither accepts nor rejects.

    An interpreter exits with 1 for an error of the checker's own. An answer that the checker
    repeats on
    stderr may look the same, and is wrong either way.
    """
    if record.end is not EndKind.EXITED or record.exit_code not in {0, 1}:
        return True
    return record.exit_code == 1 and _ERROR.search(record.stderr.data) is not None


def _ending(record: RunRecord) -> str:
    if record.end is EndKind.EXITED:
        code = record.exit_code
        ending = f"{_CODES[code]}, exit code {code}" if code in _CODES else f"exit code {code}"
    else:
        ending = record.end.value
    said = (record.stderr.data[-200:] or record.stdout.data[:200]).decode("utf-8", "replace")
    return f"{ending}: {said}".rstrip(": \n")


def _key(checker: Prepared, test: StdioCase) -> bytes:
    """What a checker's verdict on the expected output depends on, in 32 bytes."""
    program = checker.program
    parts = [
        repr((program.language, program.entry_path, program.arguments, test.limits)).encode(),
        repr(sorted(program.environment.items())).encode(),
        program.source.encode("utf-8", "surrogatepass"),
        *(part for file in program.files for part in (file.path.encode(), file.content)),
        test.stdin,
        test.expected,
    ]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
