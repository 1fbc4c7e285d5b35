"""SandboxFusion's AutoEval rows, prompts and pictures: requests to jobs, outcomes to responses."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.execution import Execution, Output, SourceFile
from assay.compat.fields import BadField
from assay.compat.sandbox_fusion import autoeval, prompts, run

FLAG = "a-word-that-nobody-guesses"


def output(text: str) -> Output:
    return Output(text.encode(), total_bytes=len(text.encode()))


def read(
    completion: str = "```python\nx = 1\n```",
    code: str = "#<INSERT>\nassert x == 1",
    extra: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    asset: object = None,
    **labels: object,
) -> autoeval.AutoEval:
    row = {
        "labels": json.dumps({"programming_language": "python", **labels}),
        "test": json.dumps({"code": code, "asset": asset}),
    }
    body = {
        "id": "p-1",
        "completion": completion,
        "config": {
            "dataset_type": "AutoEvalV5Dataset",
            "provided_data": row,
            "extra": extra or {},
            **(config or {}),
        },
    }
    assert autoeval.wanted_by(body)
    return autoeval.read_autoeval(body, FLAG)


def main_file(wanted: autoeval.AutoEval) -> str:
    program = wanted.run.job.program
    return program.source or next(
        file.content.decode() for file in program.files if file.path == program.entry_path
    )


def test_code_goes_where_the_mark_is_or_before() -> None:
    assert read().full_code == "x = 1\nassert x == 1"
    assert read(code="assert x == 1").full_code == "x = 1\nassert x == 1"
    quoted = read(code="text = #<INSERT>", extra={"repr_code": True})
    assert quoted.full_code == "text = 'x = 1'"
    assert main_file(quoted) == quoted.full_code


@pytest.mark.parametrize(
    ("language", "code", "left"),
    [
        ("python", 'x = 1\nif __name__ == "__main__":\n    x = 2', "x = 1"),
        ("python", "x = 1\n# Example usage:\nx = 2", "x = 1"),
        ("cpp", "int f();\nint main() { return 1; }", "int f();"),
        ("go", "int main()", "int main()"),
    ],
)
def test_what_starts_the_code_is_left_out(language: str, code: str, left: str) -> None:
    wanted = read(f"```{language}\n{code}\n```", programming_language=language)
    assert (wanted.code, wanted.kind) == (left, "fenced")


def test_files_time_outs_and_languages_are_passed_on() -> None:
    asset = json.dumps({"a.csv": None, "b.csv": base64.b64encode(b"1,2").decode()})
    wanted = read(asset=asset, config={"run_timeout": 3, "compile_timeout": None})
    limits = wanted.run.job.limits
    assert (limits.wall_time_s, limits.compile_wall_time_s) == (3.0, 40.0)
    assert [(file.path, file.content) for file in wanted.run.job.program.files] == [
        ("b.csv", b"1,2")
    ]
    suite = read("```typescript\nlet x = 1\n```", programming_language="typescript",
                 execution_language="jest")  # fmt: skip
    assert suite.run.job.program.language == "jest"
    assert suite.run.job.fetch_paths == ("jest-report.json",)
    page = read("```html\n<p>\n```", "code", programming_language="html", execution_language="js")
    assert [(file.path, file.content) for file in page.run.job.program.files] == [
        ("index.html", b"<p>")
    ]
    assert page.full_code == "code"


def test_packages_and_imports_of_go_come_first() -> None:
    code = 'package solution\n\nimport (\n\t"fmt"\n\tm "math"\n)\n\nfunc f() {}'
    test = 'package solution\n\nimport "testing"\nimport "fmt"\n\nfunc TestF(t *testing.T) { f() }'
    wanted = read(f"```go\n{code}\n```", test, programming_language="go",
                  execution_language="go_test")  # fmt: skip
    lines = wanted.full_code.split("\n")
    assert lines[:6] == ["package solution", "", 'import "fmt"', 'import m "math"',
                         'import "testing"', ""]  # fmt: skip
    assert "package" not in "".join(lines[1:])
    assert "import" not in "".join(lines[5:])
    assert wanted.run.job.program.entry_path == "main_test.go"


@given(st.lists(st.sampled_from(["fmt", "math", "os", "net/http"]), max_size=6))
def test_one_file_of_go_stays_as_it_is(names: list[str]) -> None:
    code = "".join(f'package a\nimport "{name}"\nvar _ = {number}\n'
                   for number, name in enumerate(names))  # fmt: skip
    once = autoeval._one_go_file(code)
    assert once.count("import") == len(set(names))
    assert once.count("package") == 1
    assert autoeval._one_go_file(once).split() == once.split()
    assert all(f"var _ = {number}" in once for number in range(len(names)))


def test_a_flag_must_be_printed_where_one_is_wanted() -> None:
    plain, flagged = read(), read(extra={"append_flag": True})
    assert FLAG not in plain.full_code
    assert flagged.full_code.endswith(f'\n\nprint("{FLAG}")')
    ended = Execution("exited", 0, stdout=output(""), wall_time_s=0.1)
    assert autoeval.answer_autoeval(plain, ended)["accepted"] is True
    assert autoeval.answer_autoeval(flagged, ended)["accepted"] is False
    said = Execution("exited", 0, stdout=output(f"a\n{FLAG}\n"), wall_time_s=0.1)
    assert autoeval.answer_autoeval(flagged, said)["accepted"] is True
    failed = Execution("exited", 1, stdout=output(FLAG), wall_time_s=0.1)
    assert autoeval.answer_autoeval(flagged, failed)["accepted"] is False
    other = read("let x", programming_language="typescript", extra={"append_flag": True})
    assert other.flag == ""


REPORT = {
    "testResults": [
        {
            "testFilePath": "/box/a.test.ts",
            "testResults": [
                {"status": "failed", "fullName": "a b", "ancestorTitles": ["a"], "title": "b",
                 "failureMessages": ["no"]},
            ],
        }
    ]
}  # fmt: skip


CASE = {
    "passed": False, "full_name": "a b", "file": "/box/a.test.ts", "suite": "a", "test": "b",
    "failure_messages": ["no"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "cases"),
    [
        (json.dumps(REPORT).encode(), [CASE]),
        (b"not json", []),
        (b"[1]", []),
        (b'{"testResults": [{"testResults": [{"status": 1}]}]}', []),
        (json.dumps(REPORT).replace('"b"', "NaN").encode(), []),
        (json.dumps(REPORT).replace('"no"', "[[[[1]]]]").encode(), []),
        (json.dumps(REPORT).replace('"/box/a.test.ts"', "9" * 5_000).encode(), []),
        (b"[" * 100_000, []),
        (b"\xff", []),
    ],
)  # fmt: skip
def test_a_report_of_jests_is_read_as_a_strangers(content: bytes, cases: list[object]) -> None:
    wanted = read(programming_language="js", execution_language="jest")
    ended = Execution("exited", 1, files=(SourceFile("jest-report.json", content),))
    assert autoeval.answer_autoeval(wanted, ended)["extra"] == {"jest_cases": cases}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"programming_language": "java"}, "programming_language"),
        ({"execution_language": "cobol"}, "execution_language"),
        ({"programming_language": None}, "programming_language"),
        ({"asset": "not json"}, "asset"),
        ({"asset": {"/etc/a": "eA=="}}, "['/etc/a']"),
        ({"config": {"run_timeout": 0}}, "run_timeout"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], where: str) -> None:
    with pytest.raises(BadField) as caught:
        read(**change)
    assert caught.value.path[-1] == where


# go test ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "line"), [(0, "ok  \tcommand"), (1, "FAIL\tcommand")])
def test_go_tests_end_with_the_line_of_go_test(code: int, line: str) -> None:
    wanted = run.read_run_code({"code": "package x", "language": "go_test"})
    ended = Execution("exited", code, stdout=output("PASS\n"), wall_time_s=0.5)
    body: Any = run.answer_run(wanted, ended)
    assert body["run_result"]["stdout"] == f"PASS\n{line}-line-arguments\t0.500s\n"
    late = Execution("wall-time-limit", stdout=output("o"), wall_time_s=0.5)
    body = run.answer_run(wanted, late)
    assert body["run_result"]["stdout"] == "o"
    plain = run.read_run_code({"code": "package main", "language": "go"})
    body = run.answer_run(plain, ended)
    assert body["run_result"]["stdout"] == "PASS\n"


def test_types_are_not_checked_in_this_format() -> None:
    for name in ("ts", "typescript"):
        wanted = run.read_run_code({"code": "let x = 1", "language": name})
        assert wanted.job.program.source == "// @ts-nocheck\nlet x = 1"
    plain = run.read_run_code({"code": "let x = 1", "language": "js"})
    assert plain.job.program.source == "let x = 1"


def test_mnt_is_the_programs_own_folder() -> None:
    files = {"/mnt/data/a.txt": "eA=="}
    wanted = run.read_run_code(
        {"code": "1", "language": "python", "files": files, "fetch_files": ["/mnt/b", "c"]}
    )
    assert [file.path for file in wanted.job.program.files] == ["data/a.txt"]
    assert wanted.job.fetch_paths == ("b", "c")
    ended = Execution("exited", 0, files=(SourceFile("b", b"x"),))
    body: Any = run.answer_run(wanted, ended)
    assert body["files"] == {"/mnt/b": "eA=="}


def test_a_junit_suite_may_be_files_alone() -> None:
    files = {"a.txt": "eA==", "B.java": "eA=="}
    wanted = run.read_run_code({"code": "", "language": "junit", "files": files})
    assert wanted.job.program.entry_path == "B.java"


# Prompts ------------------------------------------------------------------------------------------


def prompt(row: dict[str, Any], **config: Any) -> Any:
    given_ = {"dataset_type": "AutoEvalDataset", "provided_data": row, **config}
    one = prompts.read_prompt({"config": given_})
    assert prompts.read_prompts({"config": {**given_, "provided_data": [row]}}) == [one]
    return one


def test_a_prompt_is_what_the_row_says() -> None:
    row = {"id": 3, "content": "Why?", "labels": '{"context": "C", "fewshot": "F"}'}
    assert prompt({"id": "a", "content": "Why?", "labels": {}}) == {
        "id": "a", "prompt": "Why?", "labels": {},
    }  # fmt: skip
    assert prompt(row)["prompt"] == "C\n\nQuestion:Why?\n\nAnswer:\n"
    assert prompt(row)["labels"] == {"context": "C", "fewshot": "F"}
    shots = prompt(row, is_fewshot=True, locale="zh")["prompt"]
    assert shots == f"C\n\n{'-' * 16}\n\nF\n\n问题：Why?\n\n答案：\n"  # noqa: RUF001
    template = {"prompt_template": "$locale|$context|$question|$fewshot|$other|$$"}
    filled = prompt(row, extra=template, locale="en")["prompt"]
    assert filled == "en|C|Why?||$other|$"


def test_a_prompt_of_humaneval_is_its_rows() -> None:
    row = {"task_id": "HumanEval/0", "prompt": "def f():\n", "test": "t"}
    kind = {"dataset_type": "HumanEvalDataset"}
    assert prompt(row, **kind) == {
        "id": "HumanEval/0",
        "prompt": "def f():\n",
        "labels": {"task_id": "HumanEval/0", "test": "t"},
    }
    free = prompt(row, **kind, extra={"is_freeform": True})["prompt"]
    assert free.startswith("```python\ndef f():\n\n```\n\n")


@pytest.mark.parametrize(
    "config",
    [
        {"dataset_type": "MBPPDataset"},
        {"dataset_type": "AutoEvalDataset", "is_fewshot": True},
        {"dataset_type": "AutoEvalDataset", "provided_data": None},
        {},
    ],
)
def test_prompts_that_are_not_served(config: dict[str, Any]) -> None:
    row = {"id": 1, "content": "c", "labels": {}}
    with pytest.raises(BadField):
        prompts.read_prompt({"config": {"provided_data": row, **config}})
    with pytest.raises(BadField):
        prompts.read_prompts({"config": {"provided_data": row, **config}})


@pytest.mark.parametrize(
    "text", ["import (\n" * 50_000, "import" + " " * 100_000, "package\t" * 50_000]
)
def test_a_hostile_completion_in_go_is_put_together_in_one_pass(text: str) -> None:
    # Work that grew with its square would not end here.
    wanted = read(f"```go\n{text}\n```", programming_language="go", execution_language="go")
    assert wanted.full_code.startswith("package ")
