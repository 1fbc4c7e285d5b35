"""What a program prints, held against checkers of every kind: each cell of the table is a verdict.

A fault says that the suite is broken. Only the suite brings one about: the checker that does not
accept the expected output of its own test.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.sandbox.domain import RunLimits, RunRequest, SandboxFault, SubmittedProgram
from assay.sandbox.judging import outputs
from assay.sandbox.judging.budget import Budget
from assay.sandbox.judging.model import AnswerComparison, ComparisonKind, StdioCase, TestVerdict
from assay.sandbox.judging.outputs import judge_output
from sandbox_languages_support import Bench, bench
from sandbox_support import ProcessBox, ProcessBoxes, ScriptPrepared, judge_python

__all__ = ["bench"]

PASSED, WRONG = TestVerdict.PASSED, TestVerdict.WRONG_ANSWER
LIMITS = RunLimits(cpu_s=2.0, wall_s=6.0, output_bytes=4 * 2**20)

OUTPUTS: dict[str, bytes] = {
    "right": b"42\n",
    "wrong": b"41\n",
    "empty": b"",
    "garbage": b"forty-two\n",
    "no UTF-8": b"\xff\xfe4\x802\n",
    "5,000 digits": b"4" * 5_000,
    "huge": b"7 " * 2**20,
    "NUL": b"42\x00\n",
    "a traceback": b"Traceback (most recent call last)\nValueError\n",
    "an option": b"--help; exit 0 #\n",
}

PYTHON_TEXT = """
import sys
question, answer, expected = (open(name, encoding="utf-8").read() for name in sys.argv[1:])
sys.exit(0 if int(answer) == int(expected) else 1)
"""
PYTHON_BYTES = """
import sys
question, answer, expected = (open(name, "rb").read() for name in sys.argv[1:])
sys.exit(0 if answer.split() == expected.split() else 1)
"""
ECHOES = """
import sys
question, answer, expected = (open(name, "rb").read() for name in sys.argv[1:])
sys.stderr.buffer.write(answer[:300])
sys.stdout.buffer.write(answer[:300])
sys.exit(0 if answer == expected else 1)
"""
PRESENTATION = """
import sys
question, answer, expected = (open(name, "rb").read() for name in sys.argv[1:])
if not answer.strip().isdigit():
    sys.exit(2)
sys.exit(0 if answer.split() == expected.split() else 1)
"""
PARTIAL = """
import sys
answer, expected = (open(name, "rb").read() for name in sys.argv[2:])
sys.exit(0 if answer == expected else 7)
"""
LOOPS_ON_OTHERS = """
import sys
answer, expected = (open(name, "rb").read() for name in sys.argv[2:])
while answer != expected:
    pass
"""
EATS_ON_OTHERS = """
import sys
answer, expected = (open(name, "rb").read() for name in sys.argv[2:])
if answer != expected:
    x = [0] * 10**9
    x = x * 50
"""
ABORTS_ON_OTHERS = """
import os, sys
answer, expected = (open(name, "rb").read() for name in sys.argv[2:])
if answer != expected:
    os.abort()
"""
BREAKS_ALWAYS = "import no_such_module"
LOOPS_ALWAYS = "while True: pass"
REJECTS_OR_BREAKS = """
import sys
int(open(sys.argv[2]).read())
sys.exit(1)
"""

# What is not "right" is wrong, for every checker that accepts the expected output.
SOUND = {
    "text": PYTHON_TEXT,
    "bytes": PYTHON_BYTES,
    "echoes": ECHOES,
    "presentation": PRESENTATION,
    "partial": PARTIAL,
    "eats": EATS_ON_OTHERS,
    "aborts": ABORTS_ON_OTHERS,
}


@pytest.fixture(scope="module")
def boxes() -> Iterator[ProcessBoxes]:
    made = ProcessBoxes()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_accepting", outputs._Accepting(8))


def printing(output: bytes) -> str:
    return f"import sys, zlib\nsys.stdout.buffer.write({output!r})"


def checked(
    checker: SubmittedProgram, expected: bytes = OUTPUTS["right"], limits: RunLimits = LIMITS
) -> StdioCase:
    comparison = AnswerComparison(ComparisonKind.CHECKER, checker=checker)
    return StdioCase("a", b"6 7\n", expected, comparison, limits=limits)


def judged(boxes: ProcessBoxes, checker: str, output: bytes, **more: object) -> tuple[object, str]:
    """The verdict and its reason, or the fault's."""
    test = checked(SubmittedProgram("python", checker), **more)  # type: ignore[arg-type]
    try:
        (outcome,) = judge_python(boxes, printing(output), test)
    except SandboxFault as fault:
        return fault.reason, fault.message
    return outcome.verdict, outcome.explanation


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("kind", SOUND)
def test_a_checker_that_accepts_the_reference_gives_verdicts_only(
    boxes: ProcessBoxes, kind: str, output: str
) -> None:
    verdict, said = judged(boxes, SOUND[kind], OUTPUTS[output])
    assert verdict is (PASSED if output == "right" else WRONG), said
    assert bool(said) == (output != "right")
    assert len(said) <= 400


@pytest.mark.parametrize("output", ["right", "garbage", "huge"])
def test_a_checker_that_an_output_keeps_busy(boxes: ProcessBoxes, output: str) -> None:
    limits = RunLimits(cpu_s=1.0, wall_s=2.0, output_bytes=4 * 2**20)
    verdict, said = judged(boxes, LOOPS_ON_OTHERS, OUTPUTS[output], limits=limits)
    assert verdict is (PASSED if output == "right" else WRONG), said
    assert output == "right" or "could not read the output: " in said


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_checker_that_breaks_on_the_reference_is_the_suites_fault(
    boxes: ProcessBoxes, output: str
) -> None:
    verdict, said = judged(boxes, BREAKS_ALWAYS, OUTPUTS[output])
    assert verdict == "INVALID_TEST"
    assert "no_such_module" in said
    assert "expected output" in said


def test_a_checker_that_never_ends_is_the_suites_fault(boxes: ProcessBoxes) -> None:
    verdict, said = judged(boxes, LOOPS_ALWAYS, b"42", limits=RunLimits(cpu_s=1.0, wall_s=1.0))
    assert verdict == "INVALID_TEST"
    assert "time-limit" in said


def test_a_checker_that_rejects_the_reference_is_at_fault_where_it_breaks(
    boxes: ProcessBoxes,
) -> None:
    assert judged(boxes, REJECTS_OR_BREAKS, OUTPUTS["wrong"])[0] is WRONG
    assert judged(boxes, REJECTS_OR_BREAKS, OUTPUTS["garbage"])[0] == "INVALID_TEST"


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("checker", [PYTHON_TEXT, BREAKS_ALWAYS], ids=["text", "breaks"])
def test_without_an_expected_output_whatever_breaks_the_checker_is_wrong(
    boxes: ProcessBoxes, checker: str, output: str
) -> None:
    verdict, said = judged(boxes, checker, OUTPUTS[output], expected=b"")
    assert verdict is WRONG
    assert "could not read the output: exit code 1: " in said


def test_the_reason_names_the_codes_of_testlib(boxes: ProcessBoxes) -> None:
    _, said = judged(boxes, PRESENTATION, b"x")
    assert said == "the checker could not read the output: presentation error, exit code 2"
    _, said = judged(boxes, PARTIAL, b"x")
    assert said == "the checker could not read the output: partial credit, exit code 7"


def test_an_answer_longer_than_the_programs_folder_reaches_the_checker(
    boxes: ProcessBoxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[RunRequest] = []
    start = ProcessBox.start

    def watched(box: ProcessBox, request: RunRequest) -> object:
        started.append(request)
        return start(box, request)

    monkeypatch.setattr(ProcessBox, "start", watched)
    limits = RunLimits(output_bytes=4 * 2**20, disk_bytes=2**20)
    assert judged(boxes, PYTHON_BYTES, OUTPUTS["huge"], limits=limits)[0] is WRONG
    assert started[0].limits.disk_bytes == 2**20
    assert started[1].limits.disk_bytes > sum(len(file.content) for file in started[1].files)


class CountingPrepared(ScriptPrepared):
    """A checker that counts its runs."""

    runs = 0

    def run(self, **more: object) -> RunRequest:  # type: ignore[override]
        CountingPrepared.runs += 1
        return super().run(**more)  # type: ignore[arg-type]


class CountingPreparer:
    def prepare(self, program: SubmittedProgram, limits: RunLimits) -> CountingPrepared:
        return CountingPrepared(program)


def test_garbage_costs_the_reference_once(
    boxes: ProcessBoxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CountingPrepared, "runs", 0)

    def judge_one(output: bytes, checker: str = PYTHON_TEXT, expected: bytes = b"42\n") -> int:
        before = CountingPrepared.runs
        program = ScriptPrepared(SubmittedProgram("python", printing(output)))
        test = checked(SubmittedProgram("python", checker), expected)
        outcome = judge_output(
            test, program, boxes, boxes.pump, CountingPreparer(), budget=Budget(boxes.pump)
        )
        assert outcome.verdict is WRONG
        return CountingPrepared.runs - before

    assert [judge_one(b"x"), judge_one(b"y"), judge_one(b"\xff")] == [2, 1, 1]
    assert judge_one(b"41") == 1
    assert judge_one(b"x", expected=b"43\n") == 2
    assert judge_one(b"x", checker=PYTHON_TEXT + "#") == 2
    for number in range(9):  # no more than eight are remembered here
        judge_one(b"x", expected=b"%d\n" % number)
    assert judge_one(b"x") == 2


TESTLIB = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
// Ends as a checker made with testlib.h does: ok 0, wrong answer 1, presentation error 2, fail 3,
// dirt 4, points 7, unexpected end of file 8.
static std::string read(const char* name) {
    std::ifstream file(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}
int main(int argc, char** argv) {
    if (argc != 4) return 3;
    std::string answer = read(argv[2]), expected = read(argv[3]);
    if (answer.empty()) return 8;
    if (answer.size() > 2000000) for (volatile int i = 0;; i = i + 1) {}
    if (answer[0] == 'T') std::abort();
    char* end = nullptr;
    long value = std::strtol(answer.c_str(), &end, 10);
    if (end == answer.c_str()) {
        std::cerr << "Expected integer, but '" << answer << "' found\n";
        return 2;
    }
    if (*end != '\n') return answer.size() > 1000 ? 3 : 4;
    return value == std::strtol(expected.c_str(), nullptr, 10) ? 0 : 1;
}
"""


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_compiled_checker_with_the_exit_codes_of_testlib(bench: Bench, output: str) -> None:
    bench.need("cpp").need("python")
    limits = LIMITS.with_(memory_bytes=512 * 2**20, compile_wall_s=100.0, cpu_s=3.0)
    program = bench.preparer.prepare(SubmittedProgram("python", printing(OUTPUTS[output])), limits)
    test = checked(SubmittedProgram("cpp", TESTLIB), limits=limits)
    outcome = judge_output(
        test, program, bench.boxes, bench.pump, bench.preparer, budget=Budget(bench.pump)
    )
    assert outcome.verdict is (PASSED if output == "right" else WRONG), outcome.explanation
    broke = "could not read the output: " in outcome.explanation
    assert broke == (output not in ("right", "wrong"))


def test_a_compiled_checker_that_fails_on_the_reference_is_the_suites_fault(bench: Bench) -> None:
    bench.need("cpp").need("python")
    limits = LIMITS.with_(compile_wall_s=100.0)
    for source in ("int main() { return 3; }", "int main() { __builtin_trap(); }", "int main( {"):
        program = bench.preparer.prepare(SubmittedProgram("python", printing(b"x")), limits)
        test = checked(SubmittedProgram("cpp", source), limits=limits)
        with pytest.raises(SandboxFault) as caught:
            judge_output(
                test, program, bench.boxes, bench.pump, bench.preparer, budget=Budget(bench.pump)
            )
        assert caught.value.reason == "INVALID_TEST"
