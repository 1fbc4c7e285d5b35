"""Piston's format: requests to jobs, outcomes to responses, versions."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.execution import Execution, LanguageInfo, Limits, Output, SandboxInfo
from assay.clients.execution.types import END_KINDS
from assay.clients.types import Fault
from assay.compat.fields import BadField
from assay.compat.piston import face, run
from assay.compat.piston.versions import fits, read_version
from assay.compat.programs import is_retryable
from assay.kit.reasons import LEXICON
from assay.sandbox.languages.table import LANGUAGES

INFO = SandboxInfo(
    languages=tuple(
        LanguageInfo(name, f"{name} (Debian 12.2.0-14) 12.2.1", Limits(), ("stdio",))
        for name in sorted(LANGUAGES)
    ),
    isolation_layers=(),
    max_limits=Limits(
        cpu_time_s=30.0, wall_time_s=60.0, memory_bytes=2**30, compile_wall_time_s=60.0
    ),
    max_items=8,
    max_message_bytes=2**20,
    max_item_bytes=2**20,
    version="1",
)


def read(**fields: Any) -> run.Execute:
    body = {"language": "python", "version": "*", "files": [{"content": "print(1)"}], **fields}
    return run.read_execute(body, INFO)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Python 3.11.7", (3, 11, 7)),
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.1", (12, 2, 0)),
        ("go version go1.19.8 linux/amd64", (1, 19, 8)),
        ("v20.20.2", (20, 20, 2)),
        ("javac 17.0.15", (17, 0, 15)),
        ("Version 4.8.4", (4, 8, 4)),
        ("javac 21", (21, 0, 0)),
        ("unknown", (0, 0, 0)),
    ],
)
def test_versions_of_toolchains(text: str, version: tuple[int, int, int]) -> None:
    assert read_version(text) == version


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        ("*", True), ("", True), ("x", True), ("3", True), ("3.x", True), ("3.11", True),
        ("3.11.7", True), ("v3.11.7", True), ("=3.11", True), ("3.11.8", False), ("2", False),
        ("3.1", False), ("^3.9.1", True), ("^2", False), ("~3.11.2", True), ("~3.10", False),
        ("~3", True), (">=3.10", True), (">3.11", False), (">3.11.6", True), ("<=3.11", True),
        ("<3.11.7", False), (">=3 <3.12", True), (">=3.12 <4", False), ("2 || 3", True),
        (">*", False), (">=*", True),
    ],
)  # fmt: skip
def test_selectors(selector: str, taken: bool) -> None:
    assert fits(selector, (3, 11, 7)) is taken


@given(st.tuples(*[st.integers(0, 40)] * 3))
def test_a_version_fits_itself_and_zero_majors_are_strict(version: tuple[int, int, int]) -> None:
    text = ".".join(map(str, version))
    assert all(fits(sign + text, version) for sign in ("", "=", "^", "~", ">=", "<="))
    assert not any(fits(sign + text, version) for sign in ("<", ">"))
    zero, minor, patch = 0, version[1] + 1, version[2]
    assert not fits(f"^0.{minor}.0", (zero, minor + 1, patch))


def test_selectors_that_are_none() -> None:
    with pytest.raises(BadField, match="is no version"):
        read(version="latest")


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_language_has_a_name_of_pistons(language: str) -> None:
    runtimes = run.runtimes_of(INFO.languages)
    [runtime] = [each for each in runtimes if each.ours == language]
    for name in (runtime.language, *runtime.aliases):
        assert read(language=name).job.program.language == language


def test_defaults_are_pistons() -> None:
    job = read().job
    assert job.limits == Limits(cpu_time_s=12.0, wall_time_s=3.0, compile_wall_time_s=10.0)
    assert job.stdin == b"\n"  # it ends every stdin with a newline
    assert read(stdin="a\n").job.stdin == b"a\n"
    assert read(run_memory_limit=-1, run_timeout=0) == read()


def test_limits_are_in_milliseconds_and_bytes() -> None:
    limits = read(
        run_timeout=1500, run_cpu_time=500, compile_timeout=2000, run_memory_limit=10**6
    ).job.limits
    assert limits == Limits(
        cpu_time_s=0.5, wall_time_s=1.5, memory_bytes=10**6, compile_wall_time_s=2.0
    )
    assert read(run_timeout=60_000).job.limits.cpu_time_s == 30.0  # the sandbox's maximum


def test_files_keep_their_names_and_bytes() -> None:
    files = [
        {"name": "data.bin", "content": base64.b64encode(b"\0\1").decode(), "encoding": "base64"},
        {"name": "b.hex", "content": "ff00", "encoding": "hex"},
        {"name": "start.py", "content": "import other", "encoding": "utf8"},
        {"content": "x = 1", "encoding": "unheard-of"},
    ]
    program = read(files=files, args=["a", "b"]).job.program
    assert program.entry_path == "start.py"
    assert program.arguments == ("a", "b")
    assert {file.path: file.content for file in program.files} == {
        "start.py": b"import other",
        "data.bin": b"\0\1",
        "b.hex": b"\xff\0",
        "file3.code": b"x = 1",
    }


@pytest.mark.parametrize(
    ("language", "name", "entry"),
    [("c++", "", "file0.code.cpp"), ("c++", "a.cc", "a.cc"), ("c", "a.cpp", "a.cpp.c"),
     ("d", "", "file0_code.d"), ("d", "a.d", "a.d"), ("verilog", "a.v", "a.v"),
     ("js", "a.mjs", "a.mjs"), ("python", "a", "a"), ("java", "a.java", ""), ("sql", "q", "")],
)  # fmt: skip
def test_compilers_get_the_names_that_they_want(language: str, name: str, entry: str) -> None:
    files = [{"name": name, "content": "text"}]
    program = read(language=language, files=files).job.program
    assert program.entry_path == entry
    assert program.source == ("" if entry else "text")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"language": "brainfuck"}, "brainfuck-* runtime is unknown"),
        ({"version": "2"}, "python-2 runtime is unknown"),
        ({"language": None}, "language: must be a string"),
        ({"version": None}, "version: must be a string"),
        ({"files": None}, "files: is required as an array"),
        ({"files": []}, "files: must include at least one utf8 encoded file"),
        ({"files": [{"name": "a"}]}, "files.0.content: is required"),
        ({"files": [{"content": "!", "encoding": "base64"}]}, "files.0.content: is not base64"),
        ({"files": [{"name": "../a", "content": ""}]}, "files.0.name: must be a relative path"),
        ({"files": [{"name": "a", "content": ""}] * 2}, "files: two of them have the same name"),
        ({"run_timeout": 60_001}, "run_timeout: cannot exceed the configured limit of 60000"),
        ({"run_timeout": "1"}, "run_timeout: must be a number"),
        ({"compile_memory_limit": -2}, "compile_memory_limit: must be non-negative"),
    ],
)
def test_wrong_requests_say_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BadField) as caught:
        read(**fields)
    assert str(run.refusal(caught.value)["message"]).startswith(message)


ENDS = {
    "exited": (7, None, "RE"),
    "signalled": (None, "SIGSEGV", "SG"),
    "cpu-time-limit": (None, "SIGKILL", "TO"),
    "wall-time-limit": (None, "SIGKILL", "TO"),
    "memory-limit": (None, "SIGKILL", "SG"),
    "output-limit": (None, "SIGKILL", "OL"),
    "process-limit": (None, "SIGKILL", "SG"),
    "security-violation": (None, "SIGSYS", "SG"),
    "compile-error": (1, None, "RE"),
}


def test_every_end_has_its_answer() -> None:
    assert set(ENDS) == set(END_KINDS)
    for end, expected in ENDS.items():
        execution = Execution(
            end,
            exit_code=7 if end == "exited" else 0,
            signal=11 if end == "signalled" else 0,
            stdout=Output(b"o", total_bytes=1),
            stderr=Output(b"e", total_bytes=1),
            cpu_time_s=0.25,
            wall_time_s=0.5,
            peak_memory_bytes=4096,
        )
        body: Any = run.answer_execute(read(language="c++"), execution)
        ran = body["run"]
        assert (ran["code"], ran["signal"], ran["status"]) == expected
        assert ran["message"]
        assert (ran["cpu_time"], ran["wall_time"], ran["memory"]) == (250.0, 500.0, 4096)
        assert (body["compile"] == ran) == (end == "compile-error")


def test_a_program_that_ended_well() -> None:
    execution = Execution("exited", stdout=Output(b"o"), stderr=Output(b"e"))
    body: Any = run.answer_execute(read(), execution)
    assert (body["language"], body["version"]) == ("python", "12.2.0")
    assert "compile" not in body
    found = {key: body["run"][key] for key in ("output", "code", "signal", "message", "status")}
    assert found == {"output": "oe", "code": 0, "signal": None, "message": None, "status": None}
    compiled: Any = run.answer_execute(read(language="c++"), execution)
    assert compiled["compile"]["code"] == 0


def test_no_fault_is_an_answer() -> None:
    for reason, known in LEXICON.items():
        fault = Fault(str(reason), "why", known.code.name)
        assert face.fault_status(fault) >= 400
        assert face.fault_body(fault)["retryable"] is is_retryable(fault)
        assert "run" not in face.fault_body(fault)
        if is_retryable(fault):
            assert face.fault_status(fault) in (429, 503, 504)


FILE = st.dictionaries(st.sampled_from(["name", "content", "encoding"]), st.text(max_size=4))
SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
FIELDS = ["language", "version", "files", "stdin", "args", "run_timeout", "run_memory_limit",
          "compile_timeout", "compile_cpu_time"]  # fmt: skip


@given(st.sampled_from(FIELDS), SCALAR | st.lists(FILE, max_size=2))
def test_whatever_is_sent_is_read_or_refused(name: str, value: Any) -> None:
    with contextlib.suppress(BadField):
        read(**{name: value})
