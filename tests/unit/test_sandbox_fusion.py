"""SandboxFusion's format: requests to jobs, outcomes to responses, extraction, comparison."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.execution.v1 import execution_pb2
from assay.clients.execution import Execution, Limits, Output, SourceFile, TestOutcome, TestReport
from assay.clients.execution.convert import result_from_proto
from assay.clients.execution.types import END_KINDS
from assay.clients.types import Fault
from assay.compat import programs
from assay.compat.fields import BadField
from assay.compat.sandbox import Sound
from assay.compat.sandbox_fusion import extract, run
from assay.compat.sandbox_fusion import submit as judge
from assay.compat.sandbox_fusion.custom import LogicError, read_blocks
from assay.compat.sandbox_fusion.jupyter import read_run_jupyter
from assay.kit.reasons import LEXICON
from assay.sandbox.domain import CapturedOutput as BoxOutput
from assay.sandbox.domain import EndKind, RunRecord
from assay.sandbox.languages import LANGUAGES
from assay.sandbox.results import compile_failure_to_proto, execution_to_proto

NOTHING = run.read_run_code({"code": "", "language": "python"})
TEXT = st.text(st.characters(codec="utf-8"), max_size=40)


def output(text: str) -> Output:
    return Output(text.encode(), total_bytes=len(text.encode()))


def request(**fields: Any) -> run.RunCode:
    return run.read_run_code({"code": "print(1)", "language": "python", **fields})


def test_what_is_not_said_is_the_peers_default() -> None:
    wanted = request(expected_stdout="1")  # an unknown field, such as ROLL sends
    assert wanted.job.limits == Limits(wall_time_s=10.0, compile_wall_time_s=10.0)
    assert wanted.job.stdin == b""
    assert request(stdin=None) == wanted
    assert request(memory_limit_MB=-1, files={"a": None, "IGNORE_THIS_FILE": "eA=="}) == wanted


def test_limits_and_files_are_passed_on() -> None:
    wanted = request(
        run_timeout=2,
        compile_timeout=0.5,
        memory_limit_MB=64,
        stdin="7\n",
        files={"./d//a.bin": base64.encodebytes(bytes(100)).decode()},
        fetch_files=["./out.txt"],
    )
    assert wanted.job.limits == Limits(
        wall_time_s=2.0, compile_wall_time_s=0.5, memory_bytes=64 * programs.MIB
    )
    assert [(file.path, file.content) for file in wanted.job.program.files] == [
        ("d/a.bin", bytes(100))
    ]
    assert (wanted.job.stdin, wanted.job.fetch_paths) == (b"7\n", ("out.txt",))
    fitted = programs.fit(wanted.job, Limits(cpu_time_s=5.0))
    assert fitted.limits.cpu_time_s == 5.0  # four times the wall clock is above the maximum
    assert programs.fit(wanted.job, Limits(cpu_time_s=500.0)).limits.cpu_time_s == 8.0
    assert programs.fit(fitted, Limits(cpu_time_s=500.0)) == fitted  # what is stated stays


def test_a_file_may_have_the_programs_usual_name() -> None:
    program = request(files={"main.py": "eA=="}).job.program
    assert program.entry_path == "run_code_main.py"
    assert {file.path: file.content for file in program.files} == {
        "main.py": b"x",
        "run_code_main.py": b"print(1)",
    }
    assert request(language="go_test").job.program.entry_path == "main_test.go"
    script = request(language="kotlin_script", files={"main.kts": "eA=="}).job.program
    assert (script.language, script.entry_path) == ("kotlin", "run_code_main.kts")


def test_every_language_of_the_sandbox_has_a_name() -> None:
    assert set(run.LANGUAGES.values()) == set(LANGUAGES)
    compiled = {name for name, language in LANGUAGES.items() if language.compile}
    assert compiled == run.COMPILED
    for name, ours in run.LANGUAGES.items():
        assert request(language=name).job.program.language == ours


def test_php_that_is_not_marked_is_php() -> None:
    assert request(language="php", code="echo 1;").job.program.source == "<?php echo 1;"
    marked = "a <?php echo 1;"
    assert request(language="php", code=marked).job.program.source == marked


@pytest.mark.parametrize(
    ("language", "run_s", "compile_s"),
    [("kotlin_script", 30, 30), ("csharp", 300, 60), ("racket", 1, 5), ("scala", 30, 5)],
)
def test_what_the_peer_compiles_in_the_run_has_the_runs_time(
    language: str, run_s: float, compile_s: float
) -> None:
    wanted = request(language=language, run_timeout=run_s, compile_timeout=5)
    assert (wanted.compile_timeout_s, wanted.run_timeout_s) == (compile_s, run_s)
    assert wanted.job.limits.compile_wall_time_s == compile_s


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"language": "lean"}, "language"),
        ({"language": 3}, "language"),
        ({"code": None}, "code"),
        ({"code": "\ud800"}, "code"),
        ({"run_timeout": 0}, "run_timeout"),
        ({"run_timeout": float("nan")}, "run_timeout"),
        ({"run_timeout": "5"}, "run_timeout"),
        ({"compile_timeout": -1}, "compile_timeout"),
        ({"memory_limit_MB": True}, "memory_limit_MB"),
        ({"memory_limit_MB": 10**400}, "memory_limit_MB"),
        ({"run_timeout": -(10**400)}, "run_timeout"),
        ({"stdin": 5}, "stdin"),
        ({"files": []}, "files"),
        ({"files": {"a": "not base64!"}}, "files['a']"),
        ({"files": {"../a": "eA=="}}, "files['../a']"),
        ({"files": {"/etc/a": "eA=="}}, "files['/etc/a']"),
        ({"files": {"": "eA=="}}, "files['']"),
        ({"fetch_files": ["/etc/b"]}, "fetch_files"),
        ({"fetch_files": ["/mnt/../b"]}, "fetch_files"),
        ({"fetch_files": ["/mnt"]}, "fetch_files"),
        ({"fetch_files": "a"}, "fetch_files"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(BadField) as caught:
        request(**fields)
    [detail] = run.refusal(caught.value)["detail"]  # type: ignore[misc]
    assert detail["loc"] == ["body", where]


def test_a_body_that_is_no_object() -> None:
    with pytest.raises(BadField, match="must be an object"):
        run.read_run_code([])


RAN = {
    "exited": ("Finished", 3),
    "signalled": ("Finished", -11),
    "cpu-time-limit": ("TimeLimitExceeded", None),
    "wall-time-limit": ("TimeLimitExceeded", None),
    "memory-limit": ("Finished", -9),
    "output-limit": ("Finished", -9),
    "process-limit": ("Finished", -9),
    "security-violation": ("Finished", -31),
}


def test_every_end_has_its_answer() -> None:
    assert {*RAN, "compile-error"} == set(END_KINDS)
    for end, (status, code) in RAN.items():
        execution = Execution(
            end,
            exit_code=3 if end == "exited" else 0,
            signal=11 if end == "signalled" else 0,
            stdout=output("o"),
            stderr=output("e"),
            wall_time_s=0.5,
        )
        body: Any = run.answer_run(NOTHING, execution)
        assert (body["status"], body["compile_result"]) == ("Failed", None)
        assert body["run_result"] == {
            "status": status,
            "execution_time": 0.5,
            "return_code": code,
            "stdout": "o",
            "stderr": "e",
        }
        assert (body["message"] == "") == (end in ("exited", "signalled"))


def test_a_program_that_ended_well() -> None:
    wanted = run.read_run_code({"code": "", "language": "cpp", "fetch_files": ["./a"]})
    job = execution_pb2.ExecutionResult(
        execution=execution_to_proto(RunRecord(EndKind.EXITED, wall_s=0.25), "namespaces")
    )
    job.execution.files.add(path="a", content=b"\0\1")
    job.timings.execution.FromMilliseconds(1000)
    execution = result_from_proto(job)
    assert isinstance(execution, Execution)
    body: Any = run.answer_run(wanted, execution)
    assert (body["status"], body["message"]) == ("Success", "")
    assert (body["compile_result"]["return_code"], body["run_result"]["return_code"]) == (0, 0)
    assert body["compile_result"]["execution_time"] == 0.75
    assert base64.b64decode(body["files"]["./a"]) == b"\0\1"


@pytest.mark.parametrize("words", ["", "main.cpp:1: warning"])
@pytest.mark.parametrize("end", [EndKind.COMPILE_ERROR, EndKind.WALL_TIME_LIMIT])
def test_a_compiler_that_ended_badly_is_told_from_a_program_that_did(
    end: EndKind, words: str
) -> None:
    said = BoxOutput(words.encode(), len(words.encode()))
    record = RunRecord(end, stderr=said, wall_s=0.5)
    failed = execution_pb2.ExecutionResult(execution=compile_failure_to_proto(record, "x"))
    ended = execution_pb2.ExecutionResult(execution=execution_to_proto(record, "x", said))
    compiling, running = result_from_proto(failed), result_from_proto(ended)
    assert isinstance(compiling, Execution)
    assert isinstance(running, Execution)
    assert (compiling.compiling, running.compiling) == (True, False)
    body: Any = run.answer_run(NOTHING, compiling)
    assert (body["status"], body["run_result"]) == ("Failed", None)
    assert body["compile_result"]["stderr"] == words
    late = end is EndKind.WALL_TIME_LIMIT
    assert body["compile_result"]["status"] == ("TimeLimitExceeded" if late else "Finished")
    assert body["compile_result"]["return_code"] == (None if late else 1)


def test_what_was_cut_is_said() -> None:
    execution = Execution("exited", stdout=Output(b"ab", truncated=True, total_bytes=9))
    assert "stdout has 9 bytes" in str(run.answer_run(NOTHING, execution)["message"])


def test_no_fault_is_a_verdict() -> None:
    for reason, known in LEXICON.items():
        fault = Fault(str(reason), "why", known.code.name)
        body = run.fault_body(fault)
        assert body["status"] == "SandboxError"
        assert body["run_result"] is None
        assert str(reason) in str(body["message"])
        status = run.fault_status(fault)
        assert status == 504 if programs.is_retryable(fault) else status in (200, 422)
        assert not (programs.is_retryable(fault) and programs.is_callers(fault))


FENCE = "```"


@pytest.mark.parametrize(
    ("completion", "code", "kind"),
    [
        (f"Words\n{FENCE}python\na = 1\n{FENCE}\nwords", "a = 1", "fenced"),
        (f"{FENCE}bash\nls\n{FENCE}\n{FENCE}python\na = 1\n  {FENCE}", "a = 1", "fenced"),
        (f"{FENCE}\nno tag\n{FENCE}", "no tag", "fenced"),
        (f"{FENCE}python\na = 1\nwords", "a = 1\nwords", "incomplete_fenced"),
        (f"{FENCE}python\na = '{FENCE}'\n", f"a = '{FENCE}'\n", "incomplete_fenced"),
        ("So:\nimport os\n\ndef f():\n\n  return 1\nSo.", "import os\ndef f():\n  return 1\n",
         "heuristic"),
        ("I give up.", "", "empty"),
        ("", "", "empty"),
    ],
)  # fmt: skip
def test_extraction(completion: str, code: str, kind: str) -> None:
    assert extract.choose(extract.candidates(completion, "python"), "python") == (code, kind)


def test_extraction_of_other_languages() -> None:
    [query] = extract.extract_heuristic_code("Then\n select 1\n from t; and", "sql")
    assert query.code == " select 1\n from t"
    assert extract.extract_heuristic_code("ls\n\nls", "bash")[0].code == "ls\nls\n"
    assert extract.extract_heuristic_code("int main() {}", "cpp") == []


def test_a_callers_own_block_wins() -> None:
    blocks = [*extract.extract_fenced_code(f"{FENCE}python\nb\n{FENCE}")]
    own = extract.CodeBlock(40, "mine", "python")
    assert extract.choose([*blocks, own], "python") == ("mine", None)


@given(st.lists(TEXT.filter(lambda text: "`" not in text), max_size=5))
def test_blocks_come_back_as_they_were_fenced(codes: list[str]) -> None:
    text = "\n".join(f"{FENCE}python\n{code}\n{FENCE}" for code in codes)
    found = extract.extract_fenced_code(text)
    assert [block.code.rstrip() for block in found] == [code.rstrip() for code in codes]
    assert all(block.language == "python" for block in found)


@pytest.mark.parametrize("piece", ["```\n", "\n", "def f():\n x\n", "#a\n", " ", "`", "with a\n"])
def test_extraction_is_linear(piece: str) -> None:
    text = piece * (30_000 // len(piece))
    for language in ("python", "sql", "bash"):
        extract.candidates("```" + text, language)
        extract.candidates(text, language)


def test_first_blocks_end_before_what_runs_them() -> None:
    text = f"{FENCE}python\ndef f():\n    pass\n# Example usage\nf()\n{FENCE}"
    assert extract.first_block(text, "python") == ("def f():\n    pass", "fenced")
    assert extract.first_block("", "python") == ("", "empty")


@pytest.mark.parametrize(
    ("expected", "actual", "right"),
    [
        ("4\n", "4", True),
        ("Yes", " yES \n", True),
        ("1 2", "1  2", False),  # white space inside a line counts
        ("a\nb", "a\nb\n\n", True),
        ("a\nb", "a", False),
        ("a\n\nb", "a\nb", False),
        ("1000000", "1000009", True),
        ("1000000", "1000011", False),
        ("0", "1e-16", True),
        ("0.1", "1e-1", True),
        ("1 1", "1 1.0", False),  # a line is one number, or text
        ("inf", "Infinity", False),
        ("nan", "NaN", True),  # as texts
        ("", "", True),
        ("", "x", False),
    ],
)
def test_comparison(expected: str, actual: str, right: bool) -> None:
    case = judge.SubmittedCase("", expected)
    assert judge.passes(case, Execution("exited", stdout=output(actual))) is right
    assert not judge.passes(case, Execution("exited", 1, stdout=output(actual)))
    assert not judge.passes(case, Execution("wall-time-limit", stdout=output(actual)))


@given(TEXT)
def test_an_output_equals_itself(text: str) -> None:
    assert judge.passes(
        judge.SubmittedCase("", text), Execution("exited", stdout=output(f" {text}\n"))
    )


@given(st.integers(0, 64 * programs.MIB), st.integers(1, 900), st.booleans())
def test_a_wave_is_one_request_however_long_the_program(
    program_bytes: int, count: int, all_at_once: bool
) -> None:
    cases = [judge.SubmittedCase("in", "out")] * count
    found = judge.waves(cases, all_at_once=all_at_once, program_bytes=program_bytes)
    assert [number for wave in found for number in wave] == list(range(count))
    assert all(len(w) == 1 or len(w) * (program_bytes + 2) <= 32 * programs.MIB for w in found)


@given(st.lists(st.integers(0, 20 * programs.MIB), max_size=40), st.integers(0, 500), st.booleans())
def test_waves_cover_every_case_once_and_fit_an_answer(
    sizes: list[int], small: int, all_at_once: bool
) -> None:
    cases = [judge.SubmittedCase("", _Text(size)) for size in [*sizes, *[3] * small]]
    found = judge.waves(cases, all_at_once=all_at_once)
    assert [number for wave in found for number in wave] == list(range(len(cases)))
    for wave in found:
        kept = [judge.case_run(submission(OJ), "", cases[n]).job.limits.output_bytes for n in wave]
        assert len(wave) == 1 or 2 * sum(filter(None, kept)) <= 32 * programs.MIB
    if all_at_once and not sizes and small:
        assert len(found) == 1
    assert not found or all_at_once or len(found[0]) == 1


class _Text(str):
    """Stands for a text of so many bytes, without having them."""

    def __new__(cls, size: int) -> _Text:
        made = super().__new__(cls)
        made.size = size
        return made

    size: int

    def encode(self, *_: object) -> Any:  # type: ignore[override]
        return range(self.size)


CASES = [{"input": {"stdin": "1"}, "output": {"stdout": "2"}}]
OJ = {"dataset_type": "CommonOJDataset", "language": "python", "provided_data": {"test": CASES}}


def submission(config: dict[str, Any], **fields: Any) -> judge.Submission:
    return judge.read_submit(
        {"dataset": "x", "id": 1, "completion": "", "config": config, **fields}
    )


def test_submissions_are_read() -> None:
    found = submission(OJ | {"extra": {"run_all_cases": True}})
    assert found.cases == (judge.SubmittedCase("1", "2"),)
    assert found.run_all_cases
    assert (found.run_timeout_s, submission(OJ | {"language": "cpp"}).run_timeout_s) == (20, 10)
    as_text = {"test": '[{"input": {"stdin": "1"}, "output": {"stdout": "2"}}]'}
    assert submission(OJ | {"provided_data": as_text}).cases == found.cases
    assert submission({**OJ, "dataset_type": None}, dataset="code_contests").has_cases


def test_what_a_case_run_may_print_grows_with_what_is_expected() -> None:
    long = judge.SubmittedCase("7", "x" * 3 * programs.MIB)
    job = judge.case_run(submission(OJ), "print(1)", long).job
    assert job.limits.output_bytes == 6 * programs.MIB + 16 * 1024
    assert (job.stdin, job.program.source) == (b"7", "print(1)")


@pytest.mark.parametrize(
    ("config", "trouble"),
    [
        ({**OJ, "dataset_type": "AiderBenchmarkDataset"}, "not served here"),
        ({**OJ, "provided_data": None}, "keeps no data sets"),
        ({**OJ, "language": None}, "required for CommonOJDataset"),
        ({**OJ, "language": "lean"}, "is not served"),
        ({**OJ, "provided_data": {"test": []}}, "1 to 10000 cases"),
        ({**OJ, "provided_data": {"test": "["}}, "is not JSON"),
        ({**OJ, "provided_data": {"test": [{"input": {"stdin": ""}}]}}, "is required"),
        (
            {**OJ, "provided_data": {"test": [{**CASES[0], "input": {"stdin": "", "a.txt": ""}}]}},
            "stdin only",
        ),
        ({"dataset_type": "MBPPDataset", "language": "cpp", "provided_data": {}}, "python only"),
        ({"dataset_type": "MBPPDataset", "provided_data": {"test_list": []}}, "assert statements"),
        ({"dataset_type": "HumanEvalDataset", "provided_data": {"test": ""}}, "is required"),
    ],
)
def test_wrong_submissions(config: dict[str, Any], trouble: str) -> None:
    with pytest.raises(BadField, match=trouble):
        submission(config)


def test_long_cases_that_passed_are_cut() -> None:
    case = judge.SubmittedCase("i" * 2000, "o")
    wanted = judge.case_run(submission(OJ), "", case)
    right, wrong = (Execution("exited", stdout=output(text)) for text in "ox")
    found: Any = judge.answer_case(submission(OJ), wanted, case, right)
    assert found["passed"]
    assert len(found["test_info"]["input"]["stdin"]) == 999
    whole: Any = judge.answer_case(submission(OJ), wanted, case, wrong)
    assert (whole["passed"], whole["test_info"]["input"]["stdin"]) == (False, "i" * 2000)


HUMAN = {
    "dataset_type": "HumanEvalDataset",
    "provided_data": {"prompt": "def f(x):", "test": "def check(c): ...", "entry_point": "f"},
}


def test_a_completion_ends_where_its_function_does() -> None:
    found = submission(HUMAN, completion="    y = 1\n\n    return y\n\ndef other")
    code, kind = judge.extracted(found, [])
    assert (code, kind) == ("    y = 1\n\n    return y\n", None)
    assert judge.full_code(found, code).endswith("def f(x):\n    y = 1\n\n    return y\n")
    assert "numpy" not in judge.full_code(found, code)
    assert "import numpy as np" in judge.full_code(found, "    return np.ones(x)")


def test_answers_in_free_form_stand_for_themselves() -> None:
    free = {**HUMAN, "extra": {"is_freeform": True}}
    found = submission(free, completion=f"{FENCE}python\ndef f(x): return x\n{FENCE}")
    assert judge.extracted(found, []) == ("def f(x): return x", "fenced")
    job = judge.assertion_job(found, "def f(x): return x", Limits(cpu_time_s=30.0))
    suite: Any = job.suite
    assert (suite.tests[0].entry_point, suite.tests[0].limits.cpu_time_s) == ("f", 30.0)


def test_mbpp_drops_the_models_own_assertions() -> None:
    row = {"dataset_type": "MBPPDataset", "provided_data": {"test_list": ["assert a", "assert b"]}}
    text = f"{FENCE}python\ndef f(): pass\nassert f()\n{FENCE}\n[DONE] more"
    found = submission(row, completion=text)
    assert found.tests == "assert a\nassert b"
    assert judge.extracted(found, []) == ("def f(): pass", "fenced")
    assert submission({**row, "is_fewshot": True}).tests == "assert b"


def test_failed_assertions_are_not_the_programs_good_end() -> None:
    outcome = TestOutcome("1", "wrong-answer", Execution("exited"), "f(1) is 2, not 3")
    body: Any = judge.answer_assertions(TestReport((outcome,)))
    assert (body["passed"], body["exec_info"]["status"]) == (False, "Failed")
    assert body["exec_info"]["run_result"]["return_code"] == 1
    assert "f(1) is 2, not 3" in body["exec_info"]["run_result"]["stderr"]
    passed: Any = judge.answer_assertions(
        TestReport((TestOutcome("1", "passed", Execution("exited")),))
    )
    assert (passed["passed"], passed["exec_info"]["status"]) == (True, "Success")


def test_logic_that_fails_says_how() -> None:
    with pytest.raises(LogicError, match="ValueError: no"):
        read_blocks(Execution("exited", 1, stderr=output("Traceback\nValueError: no\n")))
    with pytest.raises(LogicError, match="wall-time-limit"):
        read_blocks(Execution("wall-time-limit"))
    for content in (b"", b"[" * 100_000, b"[[1e999, 1, 1]]", b"[1]", b"\xff", b"9" * 5_000):
        left = (SourceFile("assay_blocks.json", content),)
        with pytest.raises(LogicError, match="readable"):
            read_blocks(Execution("exited", files=left if content else ()))


def test_code_that_has_worked_is_remembered_for_a_while() -> None:
    sound = Sound(2)
    for text in ("a", "b"):
        sound.add((text,))
    assert ("a",) in sound
    sound.add(("\ud800", "c"))
    assert [("a",) in sound, ("b",) in sound, ("\ud800", "c") in sound] == [True, False, True]
    assert ("\ud800c",) not in sound


NAME = st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NAME,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAME, inner, max_size=3),
    max_leaves=6,
)
RUN = {"code": "1", "language": "python", "files": {"a": "eA=="}, "fetch_files": ["b"],
       "run_timeout": 1, "compile_timeout": 1, "memory_limit_MB": 1, "stdin": ""}  # fmt: skip
SUBMIT = {"dataset": "x", "id": 1, "completion": "", "config": {**OJ, "extra": {}}}
NOTEBOOK = {"cells": ["1"], "files": {}, "total_timeout": 1, "cell_timeout": 1, "kernel": "python3"}
READERS = [(run.read_run_code, RUN), (judge.read_submit, SUBMIT), (read_run_jupyter, NOTEBOOK)]


@given(st.sampled_from(READERS), st.data())
def test_whatever_is_sent_is_read_or_refused(reader: Any, data: st.DataObject) -> None:
    read, valid = reader
    read(valid)
    whole = data.draw(JSON)
    name = data.draw(st.sampled_from(sorted(valid)))
    inner = data.draw(st.sampled_from(sorted(OJ)))
    for body in (
        whole,
        {**valid, name: whole},
        {**valid, "config": {**OJ, inner: whole}},
        {**valid, "config": {**OJ, "provided_data": {"test": [whole]}}},
    ):
        with contextlib.suppress(BadField):
            read(body)
