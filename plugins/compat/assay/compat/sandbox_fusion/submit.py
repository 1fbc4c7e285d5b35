"""SandboxFusion's `/submit` on data that the caller provides: JSON to jobs, outcomes to JSON. Pure.

Served, by `config.dataset_type` or the peer's name of a data set:

CommonOJDataset   a program per case of stdin and expected stdout
MBPPDataset       Python functions and a list of assert statements
HumanEvalDataset  Python functions, `check(candidate)` and the name of the function

Differences from github.com/bytedance/SandboxFusion (469de08):

1. No data set is kept here: `config.provided_data` is required.
2. The assertions of MBPP and HumanEval run in a process of their own. There the program and its
   tests share one, and a program that leaves with exit code 0 before they run is accepted.
3. A case may have stdin and stdout only; the peer ignores files by name.
4. `extracted_type` is always said, except for a block of the caller's own logic.
5. NumPy is imported for HumanEval only where the program names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.clients.execution import (
    AssertTest,
    Execution,
    ExecutionJob,
    Limits,
    Output,
    Program,
    TestJob,
    TestReport,
    TestSuite,
)
from assay.compat.fields import Fields
from assay.compat.programs import CPU_SHARE, MIB
from assay.compat.sandbox_fusion import extract
from assay.compat.sandbox_fusion.run import LANGUAGES, RunCode, answer_run, make_job, make_program

RELATIVE_TOLERANCE = 1e-5
MAX_CASES = 10_000

_TYPES = ("CommonOJDataset", "MBPPDataset", "HumanEvalDataset")
_NAMES = {
    "code_contests": "CommonOJDataset",
    "mbpp": "MBPPDataset",
    "humaneval_python": "HumanEvalDataset",
    "shadow_humaneval_python": "HumanEvalDataset",
}
_TEN_SECONDS = frozenset({"cpp", "go", "java"})  # the others have twenty
_COMPILE_S = 10.0
_SHOWN_CHARS = 1000
_MAX_OUTPUT_BYTES = 16 * MIB
_SPARE_BYTES = 16 * 1024
_WAVE_BYTES = 32 * MIB  # an answer of the sandbox takes twice as much
_PRELUDE = """\
import math, re, sys, copy, datetime, itertools, collections, heapq, statistics, functools
import hashlib, string
from typing import *
from collections import *
"""
_NUMPY = "import numpy\nimport numpy as np\n"


@dataclass(frozen=True, slots=True)
class SubmittedCase:
    """One case: stdin and the expected stdout."""

    stdin: str
    stdout: str


@dataclass(frozen=True, slots=True)
class Submission:
    """A request of `/submit`. Time-outs are by the clock.

    Attributes:
        id: the caller's name for the problem.
        dataset_type: one of those served.
        completion: what the model wrote.
        language: the peer's name of the language.
        compile_timeout_s: of the compilation.
        run_timeout_s: of each run.
        custom_logic: the caller's own logic of extraction; empty for none.
        run_all_cases: go on after the first case that fails.
        return_full_case: return long texts of cases that passed uncut.
        cases: for CommonOJDataset.
        prompt: what the completion continues, for HumanEval; empty where it stands for itself.
        tests: assertions, for the others.
        entry_point: the function under test, for HumanEval.
    """

    id: object
    dataset_type: str
    completion: str
    language: str
    compile_timeout_s: float
    run_timeout_s: float
    custom_logic: str = ""
    run_all_cases: bool = False
    return_full_case: bool = False
    cases: tuple[SubmittedCase, ...] = ()
    prompt: str = ""
    tests: str = ""
    entry_point: str = ""

    @property
    def has_cases(self) -> bool:
        """Whether it is judged by cases instead of assertions."""
        return self.dataset_type == "CommonOJDataset"


def read_submit(body: object) -> Submission:
    """Reads a request.

    Raises:
        BadField: a field is missing or wrong, or the kind of data set is not served.
    """
    fields = Fields(body)
    problem = fields.identity("id")
    config = fields.inner("config")
    kind = _NAMES.get(fields.text("dataset"), "")
    if not kind:
        kind = config.text("dataset_type") if config.has("dataset_type") else ""
    if kind not in _TYPES:
        served = ", ".join((*_TYPES, "AutoEvalDataset"))
        raise config.bad("dataset_type", f"{kind[:60]!r} is not served here; {served} are")
    if not config.has("provided_data"):
        raise config.bad("provided_data", "is required: this server keeps no data sets")
    extra = config.inner("extra", {})
    language = config.text("language") if config.has("language") else ""
    row = config.inner("provided_data")
    common = {
        "id": problem,
        "dataset_type": kind,
        "completion": fields.text("completion"),
        "compile_timeout_s": config.seconds("compile_timeout", _COMPILE_S),
        "custom_logic": (
            config.text("custom_extract_logic") if config.has("custom_extract_logic") else ""
        ),
        "run_all_cases": extra.flag("run_all_cases"),
        "return_full_case": extra.flag("return_full_case"),
    }
    if kind == "CommonOJDataset":
        if not language:
            raise config.bad("language", "is required for CommonOJDataset")
        if language not in LANGUAGES:
            known = ", ".join(sorted(LANGUAGES))
            raise config.bad("language", f"{language[:60]!r} is not served; {known} are")
        run_s = 10.0 if language in _TEN_SECONDS else 20.0
        return Submission(
            **common,  # type: ignore[arg-type]
            language=language,
            run_timeout_s=config.seconds("run_timeout", run_s),
            cases=_cases(row),
        )
    if language not in ("", "python"):
        raise config.bad("language", f"{kind} is served for python only")
    fewshot = config.flag("is_fewshot") if config.has("is_fewshot") else False
    prompt = "" if kind == "MBPPDataset" or extra.flag("is_freeform") else row.text("prompt")
    return Submission(
        **common,  # type: ignore[arg-type]
        language="python",
        run_timeout_s=config.seconds("run_timeout", 20.0),
        prompt=prompt,
        tests=_assertions(row, fewshot) if kind == "MBPPDataset" else _check(row),
        entry_point="" if kind == "MBPPDataset" else row.text("entry_point"),
    )


def _cases(row: Fields) -> tuple[SubmittedCase, ...]:
    found = row.loaded("test")
    if not isinstance(found, list) or not 0 < len(found) <= MAX_CASES:
        raise row.bad("test", f"must be a list of 1 to {MAX_CASES} cases")
    cases = []
    for number, value in enumerate(found):
        case = Fields(value, ("config", "provided_data", "test", number))
        _check_only(case, "input", "stdin")
        _check_only(case, "output", "stdout")
        stdin, stdout = case.inner("input").text("stdin"), case.inner("output").text("stdout")
        cases.append(SubmittedCase(stdin, stdout))
    return tuple(cases)


def _check_only(case: Fields, name: str, known: str) -> None:
    if len(case.inner(name).names()) > 1:
        raise case.bad(name, f"may hold {known} only; files by name are not served")


def _assertions(row: Fields, fewshot: bool) -> str:
    found = row.loaded("test_list")
    if not isinstance(found, list) or not found or not all(isinstance(t, str) for t in found):
        raise row.bad("test_list", "must be a list of assert statements")
    return "\n".join(found[-1:] if fewshot else found)


def _check(row: Fields) -> str:
    return row.text("tests") if row.has("tests") else row.text("test")


def extracted(submission: Submission, custom: list[extract.CodeBlock]) -> tuple[str, str | None]:
    """The code of a submission, and how it was found.

    `custom` are the blocks of the caller's own logic, if there is any.
    """
    text, language = submission.completion, submission.language
    if submission.has_cases:
        return extract.choose([*extract.candidates(text, language), *custom], language)
    if custom:
        return extract.choose(custom, language)
    if submission.dataset_type == "MBPPDataset":
        code, kind = extract.first_block(text.partition("[DONE]")[0], language)
        for stop in ("\nassert", '\n"""'):
            code = code.partition(stop)[0]
        return code, kind
    if submission.prompt:
        return _continuation(text), None
    return extract.choose(extract.candidates(text, language), language)


def _continuation(completion: str) -> str:
    end = completion.find("\n")
    while 0 <= end < len(completion) - 1 and completion[end + 1].isspace():
        end = completion.find("\n", end + 1)
    return completion if end < 0 or end == len(completion) - 1 else completion[:end]


def case_run(submission: Submission, code: str, case: SubmittedCase) -> RunCode:
    """The run of one case."""
    program = make_program(Fields({}), submission.language, code, {})
    job = make_job(
        program,
        stdin=case.stdin.encode(),
        compile_timeout_s=submission.compile_timeout_s,
        run_timeout_s=submission.run_timeout_s,
        output_bytes=_kept_bytes(case),
    )
    return RunCode(job, submission.compile_timeout_s, submission.run_timeout_s, {})


def _kept_bytes(case: SubmittedCase) -> int:
    return min(2 * len(case.stdout.encode()) + _SPARE_BYTES, _MAX_OUTPUT_BYTES)


def assertion_job(submission: Submission, code: str, most: Limits) -> TestJob:
    """The job that runs the assertions."""
    seconds = submission.run_timeout_s
    limits = Limits(cpu_time_s=min(seconds * CPU_SHARE, most.cpu_time_s or seconds),
                    wall_time_s=seconds)  # fmt: skip
    test = AssertTest(submission.tests, submission.entry_point, limits=limits)
    return TestJob(Program("python", full_code(submission, code)), TestSuite([test]))


def full_code(submission: Submission, code: str) -> str:
    """The program that is run: for HumanEval, with its prompt and the imports that it expects."""
    if submission.dataset_type != "HumanEvalDataset":
        return code
    program = f"{submission.prompt}\n{code}" if submission.prompt else code
    return _PRELUDE + (_NUMPY if "numpy" in program or "np." in program else "") + program


def passes(case: SubmittedCase, execution: Execution) -> bool:
    """Whether the program ended well, with the expected output.

    Line by line, stripped and without case; two lines that are numbers may differ by 1e-5.
    """
    if not execution.ok or execution.stdout.truncated:
        return False
    ours = execution.stdout.text.strip().split("\n")
    expected = case.stdout.strip().split("\n")
    return len(ours) == len(expected) and all(map(_same_line, ours, expected))


def _same_line(ours: str, expected: str) -> bool:
    ours, expected = ours.lower().strip(), expected.lower().strip()
    if ours == expected:
        return True
    try:
        got, wanted = float(ours), float(expected)
    except ValueError:
        return False
    return abs(got - wanted) / max(abs(wanted), 1e-10) < RELATIVE_TOLERANCE


def answer_case(
    submission: Submission, run: RunCode, case: SubmittedCase, execution: Execution
) -> dict[str, object]:
    """The answer of one case."""
    passed = passes(case, execution)
    cut = passed and not submission.return_full_case
    info = {
        "input": {"stdin": _brief(case.stdin) if cut else case.stdin},
        "output": {"stdout": _brief(case.stdout) if cut else case.stdout},
    }
    return {"passed": passed, "exec_info": answer_run(run, execution), "test_info": info}


def _brief(text: str) -> str:
    if len(text) <= _SHOWN_CHARS:
        return text
    kept = (_SHOWN_CHARS - 3) // 2
    return f"{text[:kept]}...{text[-kept:]}"


def answer_assertions(report: TestReport) -> dict[str, object]:
    """The answer of the assertions, which count as one test."""
    outcome = report.outcomes[0]
    execution = outcome.execution or Execution("exited")
    said = outcome.explanation
    if not outcome.passed and execution.ok:
        # The program's own process has ended well; that of its tests has not.
        words = f"{execution.stderr.text}{said}".encode()
        execution = Execution(
            "exited", 1, stdout=execution.stdout, stderr=Output(words, total_bytes=len(words)),
            wall_time_s=execution.wall_time_s,
        )  # fmt: skip
    run = RunCode(ExecutionJob(Program("python")), 0.0, 0.0, {})
    info = answer_run(run, execution)
    info["status"] = "Success" if outcome.passed else "Failed"
    info["message"] = info["message"] or ("" if outcome.passed else said)
    return {"passed": outcome.passed, "exec_info": info, "test_info": None}


def answer_nothing() -> dict[str, object]:
    """The answer for a completion without code."""
    words = b"no code was found in the completion"
    execution = Execution("exited", 1, stderr=Output(words, total_bytes=len(words)))
    run = RunCode(ExecutionJob(Program("python")), 0.0, 0.0, {})
    return {"passed": False, "exec_info": answer_run(run, execution), "test_info": None}


def answer_submit(
    submission: Submission, code: str, kind: str | None, tests: list[dict[str, object]]
) -> dict[str, object]:
    """The response.

    `kind` is how the code was found; `tests` are the answers up to the first that failed, or all.
    """
    assertions = not submission.has_cases
    return {
        "id": submission.id,
        "accepted": all(test["passed"] for test in tests),
        "extracted_code": code,
        "full_code": full_code(submission, code) if assertions else None,
        "test_code": submission.tests if assertions else None,
        "tests": tests,
        "extracted_type": kind,
        "extra": None,
    }


def waves(
    cases: Sequence[SubmittedCase], *, all_at_once: bool, program_bytes: int = 0
) -> list[range]:
    """Which cases run together; `all_at_once` begins with as many as there is room for.

    Few at first, since most programs that fail do so at once. A wave fits one answer of the
    sandbox, however much a program prints, and one request, where each case has its copy of the
    program.
    """
    found: list[range] = []
    start, size = 0, len(cases) if all_at_once else 1
    while start < len(cases):
        end, room, sent = start, _WAVE_BYTES, _WAVE_BYTES
        while end < min(start + size, len(cases)):
            room -= 2 * _kept_bytes(cases[end])  # stdout and stderr
            sent -= program_bytes + len(cases[end].stdin.encode())
            if min(room, sent) < 0 and end > start:
                break
            end += 1
        found.append(range(start, end))
        start, size = end, min(4 * size, len(cases))
    return found
