"""The languages without a box: the table, the layout of files, how a compiler ends."""

# ruff: noqa: E501 - small programs stay on one line

from __future__ import annotations

import dataclasses
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.sandbox.box import Pump
from assay.sandbox.domain import (
    BoxFile,
    CapturedOutput,
    EndKind,
    RunLimits,
    RunRecord,
    RunRequest,
    SandboxFault,
    SubmittedProgram,
)
from assay.sandbox.judging.verdicts import killed_from_outside
from assay.sandbox.languages import (
    LANGUAGES,
    CompileCache,
    LanguagePreparer,
    MissingLanguage,
    Toolchains,
    discover,
    find_language,
)
from assay.sandbox.languages.arrange import arrange, sources
from assay.sandbox.languages.java_source import read_java
from assay.sandbox.languages.language import Layout, fill
from assay.sandbox.languages.plans import cpp_plan, go_plan, javascript_main
from assay.sandbox.languages.toolchains import Toolchain
from assay.sandbox.prepared import CompileFailed

ALL_NAMES = {
    "python", "c", "cpp", "java", "javascript", "typescript", "go", "rust", "bash", "sql",
    "pytest", "jest", "junit",
    "perl", "ruby", "php", "lua", "r", "racket", "csharp", "d", "d_ut", "scala", "kotlin", "verilog",
}  # fmt: skip


def toolchain(name: str, warm: str = "/warm") -> Toolchain:
    commands = {tool.command: f"/tools/{tool.command}" for tool in LANGUAGES[name].tools}
    libraries = {each.name: f"/lib/{each.name}" for each in LANGUAGES[name].libraries}
    return Toolchain(name, commands, (), "0", warm, libraries)


def file(path: str, text: str = "") -> BoxFile:
    return BoxFile(path, text.encode())


# The table ----------------------------------------------------------------------------------------


def test_the_table_has_the_languages_that_are_promised() -> None:
    assert list(LANGUAGES) == [name for name in LANGUAGES if LANGUAGES[name].name == name]
    assert set(LANGUAGES) == ALL_NAMES


def test_no_two_languages_share_a_name() -> None:
    names = [name for lang in LANGUAGES.values() for name in (lang.name, *lang.aliases)]
    assert len(names) == len(set(names))
    assert all(find_language(name.upper()).name in LANGUAGES for name in names)


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("warm", ["", "/warm"])
def test_every_template_fills(name: str, warm: str) -> None:
    language, chain = LANGUAGES[name], toolchain(name, warm)
    main = language.main(language.self_test)
    files = (file(main, language.self_test),)
    layout = Layout(main, language.self_test, files, warm=bool(warm))
    values = {
        **chain.values, **language.plan(layout), "main": main, "sources": (main,),
        "product": "product", "heap_mib": "99", "arguments": ("a",),
    }  # fmt: skip
    argv = language.compile.argv if language.compile else ()
    for template in (argv, language.run, language.version):
        assert fill(template, values).count("") <= (template is argv and not warm)
    for template in language.warm.commands if language.warm else ():
        assert "/warm" in "".join(fill(template, {**values, "warm": "/warm"}))


def test_a_template_that_names_nothing_is_a_defect() -> None:
    with pytest.raises(KeyError):
        fill(("{nothing}",), {})
    with pytest.raises(TypeError, match="several"):
        fill(("-x{many}",), {"many": ("a", "b")})
    assert fill(("{many}", "{{one}}", "{one}{one}"), {"many": (), "one": "1"}) == (
        "{{one}}",
        "11",
    )


def test_a_new_language_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    awk = dataclasses.replace(
        LANGUAGES["bash"], name="awk", aliases=(), run=("{bash}", "-c", "awk -f {main}")
    )
    monkeypatch.setitem(LANGUAGES, "awk", awk)
    chains = Toolchains({"awk": dataclasses.replace(toolchain("bash"), language="awk")}, {})
    assert chains.found["awk"].values["bash"] == "/tools/bash"


# Finding tools ------------------------------------------------------------------------------------


def command(folder: Path, name: str, text: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_what_is_missing_names_its_package(tmp_path: Path) -> None:
    chains = discover(["go", "ts", "python"], path=str(tmp_path))
    assert list(chains.found) == ["python"]
    assert chains.missing["go"].package == "golang-go"
    assert chains.missing["typescript"].package == "node-typescript"
    with pytest.raises(SandboxFault, match=r"install golang-go.*python") as caught:
        chains.get("golang")
    assert caught.value.reason == "UNKNOWN_LANGUAGE"
    assert caught.value.metadata == {"language": "go", "package": "golang-go"}


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(SandboxFault, match=r"'cobol'.*rust") as caught:
        discover(["cobol"])
    assert caught.value.reason == "UNKNOWN_LANGUAGE"


def test_tools_are_followed_to_where_they_really_are(tmp_path: Path) -> None:
    real = command(tmp_path / "jdk/bin", "javac")
    command(tmp_path / "jdk/bin", "java")
    (tmp_path / "path").mkdir()
    (tmp_path / "path/javac").symlink_to(real)
    command(tmp_path / "path", "java")
    chain = discover(["java"], path=str(tmp_path / "path")).found["java"]
    assert chain.commands == {
        "javac": str(tmp_path / "jdk/bin/javac"),
        "java": str(tmp_path / "jdk/bin/java"),
    }
    assert str(tmp_path / "jdk") in chain.read_only


def test_a_launcher_is_asked_for_the_real_compiler(tmp_path: Path) -> None:
    command(tmp_path / "real/bin", "rustc")
    launcher = command(tmp_path / "cargo", "rustup", f"echo {tmp_path}/real")
    (tmp_path / "cargo/rustc").symlink_to(launcher)
    command(tmp_path / "cargo", "gcc")
    chain = discover(["rust"], path=str(tmp_path / "cargo")).found["rust"]
    assert chain.commands["rustc"] == str(tmp_path / "real/bin/rustc")
    assert str(tmp_path / "real") in chain.read_only
    command(tmp_path / "cargo", "rustup", "exit 1")
    assert "rust" in discover(["rust"], path=str(tmp_path / "cargo")).missing


def test_a_changed_tool_changes_the_fingerprint(tmp_path: Path) -> None:
    command(tmp_path, "gcc")
    before = discover(["c"], path=str(tmp_path)).found["c"].fingerprint
    assert before == discover(["c"], path=str(tmp_path)).found["c"].fingerprint
    command(tmp_path, "gcc", "# newer")
    assert before != discover(["c"], path=str(tmp_path)).found["c"].fingerprint


def test_toolchains_travel_as_text() -> None:
    chains = Toolchains(
        {"c": toolchain("c")}, {"go": MissingLanguage("go", "not here", "golang-go")}
    )
    assert Toolchains.from_json(chains.to_json()) == chains
    less = chains.without([MissingLanguage("c", "It failed its self-test.")])
    assert (set(less.found), set(less.missing)) == (set(), {"c", "go"})
    with pytest.raises(SandboxFault, match="failed its self-test"):
        less.get("c")


# Laying out files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", ".", "a\0b", ".assay/x", "x" * 256, "a/" * 600 + "a", "\ud800"],
)  # fmt: skip
def test_a_path_that_leaves_the_folder_is_refused(path: str) -> None:
    with pytest.raises(SandboxFault) as caught:
        arrange(SubmittedProgram("python", "1", (file(path),)), LANGUAGES["python"], warm=False)
    assert caught.value.reason == "INVALID_PROGRAM"


@pytest.mark.parametrize(
    "program",
    [
        SubmittedProgram("python", "1", (file("a"), file("a"))),
        SubmittedProgram("python", "1", (file("a"), file("a/b"))),
        SubmittedProgram("python", "1", (file("main.py"),)),
        SubmittedProgram("python", "1", (), "other.py"),
        SubmittedProgram("python", "", (file("other.py"),)),
        SubmittedProgram("python", "1", arguments=("a\0",)),
        SubmittedProgram("python", "1", environment={"A=B": "c"}),
        SubmittedProgram("python", "1", environment={"": "c"}),
        SubmittedProgram("python", "1", environment={"A": "\0"}),
        SubmittedProgram("python", "\udc80"),
    ],
)
def test_a_malformed_program_is_refused(program: SubmittedProgram) -> None:
    with pytest.raises(SandboxFault) as caught:
        arrange(program, LANGUAGES["python"], warm=False)
    assert caught.value.reason == "INVALID_PROGRAM"


def test_the_source_takes_its_place_among_the_files() -> None:
    layout = arrange(
        SubmittedProgram("c", "int x;", (file("a.c"), file("b.h"))), LANGUAGES["c"], warm=False
    )
    assert (layout.main, layout.text) == ("main.c", "int x;")
    assert sources(layout, (".c",)) == ("./main.c", "./a.c")
    chosen = SubmittedProgram("c", "", (file("a.c", "int y;"), file("-o.c")), "a.c")
    layout = arrange(chosen, LANGUAGES["c"], warm=False)
    assert (layout.main, layout.text) == ("a.c", "int y;")
    assert sources(layout, (".c",)) == ("./a.c", "./-o.c")
    assert [f.path for f in layout.files] == ["a.c", "-o.c"]


def test_nothing_at_all_is_a_program() -> None:
    layout = arrange(SubmittedProgram("python", ""), LANGUAGES["python"], warm=False)
    assert [(f.path, f.content) for f in layout.files] == [("main.py", b"")]


# Reading Java -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "main"),
    [
        ("", "Main.java", "Main"),
        ("public class A { public static void main(String[] a) {} }", "A.java", "A"),
        ("class A {} class B { static void main(String[] a) {} }", "Main.java", "B"),
        ("package x . y; public final class A { void main() {} }", "A.java", "x.y.A"),
        ("class A { } public class B { } class C { public static void main(String... a) { } }", "B.java", "C"),
        ('class A { String s = "class B { void main("; /* } class C { void main( */ } class D { void main() {} }', "Main.java", "D"),
        ("// public class A\npublic\nstatic interface I { static void main(String[] a) {} }", "I.java", "I"),
        ("public record R(int a) { public static void main(String[] a) {} }", "R.java", "R"),
        ("public enum E { A, B; static void main(String[] a) {} }", "E.java", "E"),
        ("class A { class B { void main() {} } } class C { char c = '{'; void main() {} }", "Main.java", "C"),
        ('class A { String t = """\n } class X { void main( " \n"""; void main() {} }', "Main.java", "A"),
        ("import java.util.*; @Deprecated public class A {}", "A.java", "A"),
        ("class A { Class<?> c = A.class; void main() {} }", "Main.java", "A"),
        ("}}} class A { void main() {}", "Main.java", "A"),
        (f"public class {'A' * 300} {{ void main() {{}} }}", "Main.java", "A" * 300),
    ],
)  # fmt: skip
def test_java_names(text: str, name: str, main: str) -> None:
    source = read_java(text)
    assert (source.file_name, source.main_class) == (name, main)


def test_java_reads_a_long_text_in_time() -> None:
    read_java("/*" * 200_000)
    read_java('"' * 200_000)
    read_java("a . " * 200_000)


# Plans --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "early"),
    [
        ("#include <bits/stdc++.h>\n", True),
        ("// a\n/* b\n */\n#include <cassert>\n # include<bits/stdc++.h>\nint main() {}", True),
        ("#define N 1\n#include <bits/stdc++.h>", False),
        ("#pragma GCC optimize(3)\n#include <bits/stdc++.h>", False),
        ('#include "own.h"\n#include <bits/stdc++.h>', False),
        ("int x;\n#include <bits/stdc++.h>", False),
        ("#include <vector>\n", False),
    ],
)
def test_cpp_reads_the_precompiled_header_first_where_nothing_can_tell(
    text: str, *, early: bool
) -> None:
    layout = Layout("main.cpp", text, (), warm=True)
    assert bool(cpp_plan(layout)["early"]) is early
    assert cpp_plan(dataclasses.replace(layout, warm=False))["early"] == ()


def go_layout(main: str, *paths: str, text: str = "package main", warm: bool = True) -> Layout:
    files = tuple(file(path, text) for path in (main, *paths))
    return Layout(main, text, files, warm=warm)


def test_go_is_built_as_its_files_want() -> None:
    direct = go_plan(go_layout("main.go", "a.go", "b_test.go", "lib/c.go"))
    assert "tool compile" in direct["script"]
    assert direct["units"] == ("./main.go", "./a.go")
    module = go_plan(go_layout("cmd/main.go", "go.mod"))
    assert " build " in module["script"]
    assert module["units"] == ("./cmd",)
    tests = go_plan(go_layout("a_test.go", "a.go"))
    assert " test -c " in tests["script"]
    assert tests["units"] == ("./a_test.go", "./a.go")
    for layout in (go_layout("main.go", warm=False), go_layout("main.go", text="//go:embed x\n")):
        assert " build " in go_plan(layout)["script"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import fs from 'fs';", "main.mjs"),
        ("import {a} from 'fs';", "main.mjs"),
        ("import 'fs';", "main.mjs"),
        ("export const a = 1", "main.mjs"),
        ("const fs = require('fs')", "main.js"),
        ("import('fs').then(f)", "main.js"),
        ("important = 1", "main.js"),
        ("", "main.js"),
    ],
)
def test_javascript_modules_get_their_suffix(text: str, name: str) -> None:
    assert javascript_main(text) == name


# What a compiler's end is taken for ---------------------------------------------------------------


class ScriptedRun:
    """A run that has ended before anybody looked."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.frames: deque[bytes] = deque()

    def watched(self) -> list[int]:
        return []

    def deadline_s(self) -> float:
        return 0.0


class ScriptedBoxes:
    """A box in which every run ends as it was told."""

    level = "none"

    def __init__(self, answer: Callable[[RunRequest], RunRecord]) -> None:
        self.answer = answer
        self.requests: list[RunRequest] = []

    def candidate(self, source: str = "") -> ScriptedBoxes:
        return self

    tester = candidate

    def start(self, request: RunRequest) -> ScriptedRun:
        self.requests.append(request)
        return ScriptedRun(self.answer(request))


def preparer(record: RunRecord, folder: Path) -> tuple[LanguagePreparer, ScriptedBoxes]:
    boxes = ScriptedBoxes(lambda _: record)
    chains = Toolchains({"c": toolchain("c")}, {})
    return LanguagePreparer(chains, CompileCache(folder), boxes, Pump()), boxes  # type: ignore[arg-type]


PROGRAM = SubmittedProgram("c", "int main(void) {}")
MADE = (BoxFile(".assay/product", b"\x7fELF"),)


@pytest.mark.parametrize(
    ("record", "end", "kept"),
    [
        (RunRecord(EndKind.EXITED, exit_code=1, stderr=CapturedOutput(b"bad", 3)), EndKind.COMPILE_ERROR, True),
        (RunRecord(EndKind.EXITED, exit_code=1, stderr=CapturedOutput(b"cc1: Killed", 11)), EndKind.COMPILE_ERROR, False),
        (RunRecord(EndKind.EXITED, exit_code=1, stdout=CapturedOutput(b"x OutOfMemoryError", 18)), EndKind.COMPILE_ERROR, False),
        (RunRecord(EndKind.EXITED), EndKind.COMPILE_ERROR, False),
        (RunRecord(EndKind.SIGNALLED, signal=11), EndKind.COMPILE_ERROR, False),
        (RunRecord(EndKind.SIGNALLED, signal=9, files=MADE), EndKind.COMPILE_ERROR, False),
        (RunRecord(EndKind.WALL_TIME_LIMIT, files=MADE), EndKind.WALL_TIME_LIMIT, False),
        (RunRecord(EndKind.MEMORY_LIMIT), EndKind.MEMORY_LIMIT, False),
    ],
)  # fmt: skip
def test_how_a_compiler_ends(
    record: RunRecord, end: EndKind, *, kept: bool, tmp_path: Path
) -> None:
    compiler, boxes = preparer(record, tmp_path)
    for _ in range(2):
        with pytest.raises(CompileFailed) as caught:
            compiler.prepare(PROGRAM, RunLimits())
        assert caught.value.record.end is end
        assert caught.value.record.files == ()
        words = record.stdout.data + record.stderr.data
        assert caught.value.record.stderr.data == words
    runs = 2 if killed_from_outside(record) else 1
    assert len(boxes.requests) == (1 if kept else 2 * runs)


@pytest.mark.parametrize(
    "killed",
    [
        RunRecord(EndKind.SIGNALLED, signal=9),
        RunRecord(
            EndKind.EXITED, exit_code=1,
            stderr=CapturedOutput(b"gcc: fatal error: Killed signal terminated program cc1\n", 55),
        ),
    ],
)  # fmt: skip
def test_a_compiler_that_is_killed_from_outside_runs_once_more(
    killed: RunRecord, tmp_path: Path
) -> None:
    records = [killed, RunRecord(EndKind.EXITED, files=MADE)]
    boxes = ScriptedBoxes(lambda _: records.pop(0))
    chains = Toolchains({"c": toolchain("c")}, {})
    compiler = LanguagePreparer(chains, CompileCache(tmp_path), boxes, Pump())  # type: ignore[arg-type]
    compiler.prepare(PROGRAM, RunLimits())
    assert records == []


@pytest.mark.parametrize("code", [126, 127])
def test_a_compiler_that_is_not_there_is_our_fault(code: int, tmp_path: Path) -> None:
    compiler, _ = preparer(RunRecord(EndKind.EXITED, exit_code=code), tmp_path)
    with pytest.raises(SandboxFault) as caught:
        compiler.prepare(PROGRAM, RunLimits())
    assert caught.value.reason == "INTERNAL"


def test_a_success_is_kept_under_what_went_into_it(tmp_path: Path) -> None:
    compiler, boxes = preparer(RunRecord(EndKind.EXITED, files=MADE), tmp_path)
    same = [
        PROGRAM,
        dataclasses.replace(PROGRAM, arguments=("a",), environment={"A": "b"}),
    ]
    others = [
        dataclasses.replace(PROGRAM, source="int main(void) {;}"),
        dataclasses.replace(PROGRAM, files=(file("a.c"),)),
        dataclasses.replace(PROGRAM, files=(file("b.c"),)),
        dataclasses.replace(PROGRAM, files=(file("a.c", "\n"),)),
    ]
    for program in same:
        compiler.prepare(program, RunLimits(compile_wall_s=5.0))
        compiler.prepare(program, RunLimits(compile_wall_s=9.0, memory_bytes=1 << 30))
    assert len(boxes.requests) == 1
    for program in others:
        compiler.prepare(program, RunLimits())
    assert len(boxes.requests) == 1 + len(others)
    assert boxes.requests[0].limits.wall_s == 5.0


def test_a_request_keeps_its_executable_and_the_last_one_closes_it(tmp_path: Path) -> None:
    compiler, _ = preparer(RunRecord(EndKind.EXITED, files=MADE), tmp_path)
    request = compiler.prepare(PROGRAM, RunLimits()).run(stdin=b"", limits=RunLimits())
    assert request.executable is not None
    number = int(request.executable)
    assert os.pread(number, 9, 0) == b"\x7fELF"
    assert not os.get_inheritable(number)
    with pytest.raises(OSError, match="not permitted"):
        os.pwrite(number, b"x", 0)
    del request
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(number)


def test_a_run_sees_data_but_not_the_source(tmp_path: Path) -> None:
    compiler, _ = preparer(RunRecord(EndKind.EXITED, files=MADE), tmp_path)
    program = dataclasses.replace(
        PROGRAM, files=(file("in.txt"),), arguments=("a",), environment={"A": "1", "B": "1"}
    )
    request = compiler.prepare(program, RunLimits()).run(
        stdin=b"x", arguments=("b",), environment={"B": "2"}, limits=RunLimits(), fetch_paths=("o",)
    )
    assert request.argv == ("main", "a", "b")
    assert [f.path for f in request.files] == ["in.txt"]
    assert (request.stdin, request.fetch_paths) == (b"x", ("o",))
    assert request.environment == {"A": "1", "B": "2"}
