"""open-r1's Codeforces package, as Piston's endpoint answers for it."""

from __future__ import annotations

from typing import Any

import pytest

from assay.clients.execution import Execution, LanguageInfo, Limits, Output, SandboxInfo, SourceFile
from assay.compat.fields import BadField
from assay.compat.piston import codeforces
from assay.compat.piston.face import fault_status

INFO = SandboxInfo(
    (LanguageInfo("python", "3.11.7", Limits(), ("stdio",)),),
    (), Limits(cpu_time_s=30.0, wall_time_s=60.0, memory_bytes=2**30), 8, 2**20, 2**20, "1",
)  # fmt: skip


def body(config: str = "TIME_LIMIT=2.0\nMEMORY_LIMIT=256.0\nINPUT_MODE=stdio", **more: str) -> Any:
    named = {"main.python": "print(input())", "input.txt": "a\r\nb", "correct_output.txt": "A  yes",
             "grader_config": config, **more}  # fmt: skip
    files = [{"name": name, "content": content} for name, content in named.items()]
    return {"language": "cf_python3", "version": "*", "run_timeout": 12000, "files": files}


def read(**more: str) -> codeforces.CodeforcesTask:
    return codeforces.read_task(body(**more), INFO)


def ran(text: str = "", **more: Any) -> Execution:
    return Execution(**{"end": "exited", "stdout": Output(text.encode()), **more})


def test_the_program_never_sees_what_is_expected() -> None:
    task = read(**{"checker.py": "print(1)"})
    assert task.job.program.files == ()
    assert task.job.stdin == b"a\nb"
    assert task.job.limits.wall_time_s == 2.0
    assert task.job.limits.memory_bytes == 256 * 2**20
    by_file = read(config="TIME_LIMIT=1\nINPUT_MODE=file")
    assert by_file.job.program.files == (SourceFile("input.txt", b"a\nb"),)
    assert (by_file.job.stdin, by_file.job.fetch_paths) == (b"", ("output.txt",))
    assert by_file.job.limits.memory_bytes is None


@pytest.mark.parametrize(
    ("output", "right"),
    [("A YES", True), ("A\n\n yes\n", True), ("a yes", False), ("A yesno", False), ("A", False)],
)
def test_words_are_compared(output: str, right: bool) -> None:
    task = read()
    verdict = codeforces.compared(task, codeforces.written(task, ran(output)))
    assert (verdict.stdout.strip(), verdict.code) == ("1" if right else "0", 0)


def test_without_an_expected_output_the_programs_is_given_back() -> None:
    unjudged = body()
    del unjudged["files"][2]
    task = codeforces.read_task(unjudged, INFO)
    assert task.expected is None
    assert codeforces.compared(task, "x\n").stdout == "x\n"


@pytest.mark.parametrize(
    ("execution", "code", "words"),
    [
        (ran(exit_code=3), 3, "Runtime error with exit code 3"),
        (ran(end="signalled", signal=11), 139, "Runtime error with exit code 139"),
        (ran(end="wall-time-limit"), 124, "Time limit exceeded (2s)"),
        (ran(end="cpu-time-limit"), 124, "Time limit exceeded (2s)"),
        (ran(end="memory-limit"), 134, "Memory limit exceeded (256MB)"),
        (ran(end="security-violation"), 137, "Runtime error"),
        (ran(stdout=Output(b"x", truncated=True, total_bytes=9)), 0, "isn't correct"),
    ],
)
def test_programs_that_fail(execution: Execution, code: int, words: str) -> None:
    verdict = codeforces.failure(read(), execution)
    assert verdict is not None
    assert (verdict.stdout, verdict.code) == ("0\n", code)
    assert words in verdict.stderr
    assert codeforces.failure(read(), ran()) is None


@pytest.mark.parametrize(
    ("said", "code", "stdout"), [("1\n", 0, "1\n"), (" 100", 0, "1\n"), ("0", 0, "0\n"),
                                 ("0.5", 0, "0\n"), ("0", 1, "0\n"), ("1", 3, "1\n"),
                                 ("nan", 0, "0\n"), ("9" * 5000, 0, "0\n"), ("1e999", 0, "0\n")]
)  # fmt: skip
def test_checkers_decide(said: str, code: int, stdout: str) -> None:
    task = read(**{"checker.py": "print(1)"})
    job = codeforces.checker_job(task, "out\n")
    assert job.program.arguments == ("input.txt", "correct_output.txt", "output.txt")
    assert {file.path: file.content for file in job.program.files} == {
        "input.txt": b"a\nb",
        "correct_output.txt": b"A  yes",
        "output.txt": b"out\n",
    }
    verdict = codeforces.checked(ran(said, exit_code=code))
    assert verdict is not None
    assert (verdict.stdout, verdict.code) == (stdout, code)
    assert codeforces.accepts(ran(said, exit_code=code)) == (stdout == "1\n")


@pytest.mark.parametrize(
    ("execution", "code"),
    [
        (ran("", exit_code=1, stderr=Output(b"ValueError: forty-two")), 1),
        (ran("accepted"), 0),
        (ran(""), 0),
        (ran("1 1"), 0),
        (ran(stdout=Output(b"\xff")), 0),
        (ran(end="wall-time-limit"), 124),
        (None, 124),
    ],
)
def test_a_checker_that_prints_no_number_has_broken(execution: Execution | None, code: int) -> None:
    assert execution is None or codeforces.checked(execution) is None
    assert not codeforces.accepts(execution)
    verdict = codeforces.unreadable(execution)
    assert (verdict.stdout, verdict.code) == ("0\n", code)
    fault = codeforces.broken_checker(execution)
    assert fault.reason == ("INVALID_TEST" if execution else "ITEM_TOO_LARGE")
    assert fault_status(fault) == 400


def test_a_compile_stage_is_always_told() -> None:
    task = read()
    answer: Any = codeforces.answer_task(task, ran("x"), codeforces.ScriptOutput("1\n", "", 0))
    assert (answer["compile"]["code"], answer["run"]["stdout"]) == (0, "1\n")
    failed: Any = codeforces.answer_task(task, ran(end="compile-error"), None)
    assert failed["compile"]["code"] == 1
    assert failed["run"] == failed["compile"]


@pytest.mark.parametrize(
    ("request_body", "trouble"),
    [
        (body(config=""), "TIME_LIMIT"),
        (body(config="TIME_LIMIT=61"), "at most 60"),
        (body(config="TIME_LIMIT=x"), "above 0"),
        ({**body(), "language": "c++17"}, "runtime is unknown"),
        ({**body(), "version": "2"}, "runtime is unknown"),
    ],
)
def test_wrong_tasks(request_body: Any, trouble: str) -> None:
    assert codeforces.is_task(request_body)
    with pytest.raises(BadField, match=trouble):
        codeforces.read_task(request_body, INFO)


def test_its_languages_are_listed_where_they_are_served() -> None:
    assert [each["language"] for each in codeforces.answer_runtimes(INFO)] == ["cf_python3"]
    assert not codeforces.is_task([])
    assert not codeforces.is_task({"language": ["c++17"]})
