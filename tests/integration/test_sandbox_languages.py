"""Every language in a real box: programs run, fail and compile as they would anywhere."""

# ruff: noqa: E501 - small programs stay on one line

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sandbox_languages_samples as samples
import sandbox_languages_support as support
from assay.sandbox.box import Box
from assay.sandbox.domain import (
    MIB,
    BoxFile,
    EndKind,
    RunLimits,
    RunRequest,
    SandboxFault,
    SubmittedProgram,
)
from assay.sandbox.languages import (
    LANGUAGES,
    LanguagePreparer,
    discover,
    language_info,
    self_test,
    warm_up,
)
from assay.sandbox.prepared import CompileFailed
from sandbox_languages_support import QUICK, Bench

pytestmark = pytest.mark.slow

bench = support.bench

PROGRAMS = {name: language for name, language in LANGUAGES.items() if not language.failing_suite}
COMPILED = [name for name, language in PROGRAMS.items() if language.compile]


def file(path: str, text: str) -> BoxFile:
    return BoxFile(path, text.encode())


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_proves_itself(bench: Bench, language: str) -> None:
    bench.need(language)
    assert self_test(bench.toolchains, language, bench.boxes, bench.pump) is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_names_its_version(bench: Bench, language: str) -> None:
    info = language_info(bench.need(language).toolchains, language)
    assert any(letter.isdigit() for letter in info.toolchain_version)
    assert ("stdio" in info.test_kinds) is (language in PROGRAMS)


def test_a_broken_toolchain_fails_its_self_test(bench: Bench, tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "node"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 41\n")
    fake.chmod(0o755)
    toolchains = discover(["javascript"], path=str(fake.parent))
    assert toolchains.found["javascript"].read_only == (str(tmp_path),)
    if bench.jailed:
        shutil.copy("/bin/sh", fake)  # the box shows what it was started with, and so not this one
    missing = self_test(toolchains, "javascript", bench.boxes, bench.pump)
    assert missing is not None
    assert "self-test" in missing.why


BROKEN = {
    "c": "int main(void) { return x; }",
    "cpp": "int main() { std::cout << 1; }",
    "java": "public class A { int f() { return \"a\"; } }",
    "typescript": "const x: number = 'a';\nconsole.log(x);",
    "go": 'package main\nimport "os"\nfunc main() {}',
    "rust": 'fn main() { let x: i32 = "a"; }',
    **samples.BROKEN,
}  # fmt: skip


@pytest.mark.parametrize("language", COMPILED)
def test_what_does_not_compile_says_why(bench: Bench, language: str) -> None:
    with pytest.raises(CompileFailed) as caught:
        bench.need(language).preparer.prepare(SubmittedProgram(language, BROKEN[language]), QUICK)
    record = caught.value.record
    assert record.end is EndKind.COMPILE_ERROR
    assert record.exit_code != 0
    words = record.stderr.data.lower()
    assert b"error" in words or b"imported and not used" in words


CRASHING = {
    "python": "print('a', flush=True)\nraise SystemExit(3)",
    "c": '#include <stdio.h>\n#include <stdlib.h>\nint main() { puts("a"); exit(3); }',
    "cpp": "#include <iostream>\nint main() { std::cout << \"a\\n\"; return 3; }",
    "java": 'class A { public static void main(String[] a) { System.out.println("a"); System.exit(3); } }',
    "javascript": "console.log('a'); process.exitCode = 3;",
    "typescript": "console.log('a'); process.exitCode = 3;",
    "go": 'package main\nimport ("fmt"; "os")\nfunc main() { fmt.Println("a"); os.Exit(3) }',
    "rust": 'fn main() { println!("a"); std::process::exit(3) }',
    "bash": "echo a\nexit 3",
    "sql": "SELECT 'a';\n.exit 3",
    **samples.CRASHING,
}  # fmt: skip


@pytest.mark.parametrize("language", PROGRAMS)
def test_output_and_exit_code_come_back(bench: Bench, language: str) -> None:
    record = bench.need(language).execute(SubmittedProgram(language, CRASHING[language]))
    assert (record.stdout.data, record.end, record.exit_code) == (b"a\n", EndKind.EXITED, 3)


ECHOING = {
    "python": "import sys, os\nprint(sys.argv[1:], os.environ['MOOD'])",
    "c": '#include <stdio.h>\n#include <stdlib.h>\nint main(int n, char **v) { printf("[\'%s\', \'%s\'] %s\\n", v[1], v[2], getenv("MOOD")); }',
    "cpp": '#include <cstdio>\n#include <cstdlib>\nint main(int n, char **v) { printf("[\'%s\', \'%s\'] %s\\n", v[1], v[2], getenv("MOOD")); }',
    "java": "class A { public static void main(String[] a) { System.out.println(\"['\" + a[0] + \"', '\" + a[1] + \"'] \" + System.getenv(\"MOOD\")); } }",
    "javascript": "console.log(`['${process.argv[2]}', '${process.argv[3]}'] ${process.env.MOOD}`)",
    "typescript": "console.log(`['${process.argv[2]}', '${process.argv[3]}'] ${process.env.MOOD}`)",
    "go": 'package main\nimport ("fmt"; "os")\nfunc main() { fmt.Printf("[\'%s\', \'%s\'] %s\\n", os.Args[1], os.Args[2], os.Getenv("MOOD")) }',
    "rust": "use std::env;\nfn main() { let a: Vec<String> = env::args().collect(); println!(\"['{}', '{}'] {}\", a[1], a[2], env::var(\"MOOD\").unwrap()); }",
    "bash": "echo \"['$1', '$2'] $MOOD\"",
    **samples.ECHOING,
}  # fmt: skip


@pytest.mark.parametrize("language", ECHOING)
def test_arguments_and_environment_arrive(bench: Bench, language: str) -> None:
    program = SubmittedProgram(
        language, ECHOING[language], arguments=("-a",), environment={"MOOD": "fair"}
    )
    record = bench.need(language).execute(program, arguments=("b c",))
    assert record.stdout.data == b"['-a', 'b c'] fair\n", record


SEVERAL_FILES = {
    "python": SubmittedProgram("python", "import other\nprint(other.f())", (file("other.py", "def f(): return 7"),)),
    "c": SubmittedProgram("c", "#include <stdio.h>\nint f(void);\nint main(void) { printf(\"%d\\n\", f()); }", (file("lib/other.c", "int f(void) { return 7; }"),)),
    "cpp": SubmittedProgram("cpp", '#include <iostream>\n#include "h/f.h"\nint main() { std::cout << f() << "\\n"; }', (file("f.cc", "int f() { return 7; }"), file("h/f.h", "int f();"))),
    "java": SubmittedProgram("java", "package p; public class Start { public static void main(String[] a) { System.out.println(Other.f()); } }", (file("p/Other.java", "package p; class Other { static int f() { return 7; } }"),)),
    "javascript": SubmittedProgram("javascript", "console.log(require('./lib/other').f())", (file("lib/other.js", "exports.f = () => 7"),)),
    "typescript": SubmittedProgram("typescript", "import { f } from './lib/other';\nconsole.log(f())", (file("lib/other.ts", "export function f(): number { return 7 }"),)),
    "go": SubmittedProgram("go", 'package main\nimport "fmt"\nfunc main() { fmt.Println(f()) }', (file("other.go", "package main\nfunc f() int { return 7 }"),)),
    "go module": SubmittedProgram("go", 'package main\nimport ("fmt"; "some/lib")\nfunc main() { fmt.Println(lib.F()) }', (file("go.mod", "module some\n"), file("lib/other.go", "package lib\nfunc F() int { return 7 }"))),
    "rust": SubmittedProgram("rust", 'mod other;\nfn main() { println!("{}", other::f()); }', (file("other.rs", "pub fn f() -> i32 { 7 }"),)),
    "bash": SubmittedProgram("bash", ". ./other.sh\nf", (file("other.sh", "f() { echo 7; }"),)),
    "entry in files": SubmittedProgram("python", "", (file("app/start.py", "print(7)"),), "app/start.py"),
    "javascript module": SubmittedProgram("javascript", "import { f } from './other.mjs';\nconsole.log(f())", (file("other.mjs", "export const f = () => 7"),)),
    "java entry": SubmittedProgram("java", "", (file("q/B.java", "package q; class A {} class B { public static void main(String... a) { System.out.println(7); } }"),), "q/B.java"),
    **samples.SEVERAL_FILES,
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL_FILES)
def test_programs_of_several_files(bench: Bench, name: str) -> None:
    program = SEVERAL_FILES[name]
    record = bench.need(program.language).execute(program)
    assert (record.stdout.data, record.ok) == (b"7\n", True), record


@pytest.mark.parametrize("language", ["python", "c", "go", "java", "javascript", "bash"])
def test_data_files_are_there_at_run_time(bench: Bench, language: str) -> None:
    text = {
        "python": "print(open('d/in.txt').read())",
        "c": '#include <stdio.h>\nint main() { char b[9]; fgets(b, 9, fopen("d/in.txt", "r")); puts(b); }',
        "go": 'package main\nimport ("fmt"; "os")\nfunc main() { b, _ := os.ReadFile("d/in.txt"); fmt.Println(string(b)) }',
        "java": 'class A { public static void main(String[] a) throws Exception { System.out.println(java.nio.file.Files.readString(java.nio.file.Path.of("d/in.txt"))); } }',
        "javascript": "console.log(require('fs').readFileSync('d/in.txt', 'utf8'))",
        "bash": "cat d/in.txt; echo",
    }[language]  # fmt: skip
    record = bench.need(language).execute(
        SubmittedProgram(language, text, (file("d/in.txt", "seen"),))
    )
    assert record.stdout.data == b"seen\n", record


def test_a_go_test_file_runs_its_tests(bench: Bench) -> None:
    text = 'package x\nimport "testing"\nfunc TestA(t *testing.T) { if %s { t.Error("no") } }'
    for condition, code in (("1 == 1", 1), ("1 == 2", 0)):
        program = SubmittedProgram("go", "", (file("a_test.go", text % condition),), "a_test.go")
        record = bench.need("go").execute(program)
        assert (record.end, record.exit_code) == (EndKind.EXITED, code), record


def test_java_runs_with_assertions_on(bench: Bench) -> None:
    text = "class A { public static void main(String[] a) { assert 1 + 1 == 3; } }"
    record = bench.need("java").execute(SubmittedProgram("java", text))
    assert record.exit_code == 1
    assert b"AssertionError" in record.stderr.data


def test_typescript_knows_nodes_modules_and_its_own_declarations(bench: Bench) -> None:
    text = """
declare var require: any;
import * as readline from "readline";
const assert = require("node:assert");
const name = "no clash with the browser's";
async function main(): Promise<void> {
    const lines = readline.createInterface({ input: process.stdin });
    let sum = 0n;
    for await (const line of lines) sum += BigInt(line);
    assert.equal(sum, 3n);
    setTimeout(() => console.log(name.length, sum.toString()), 1);
}
main();
"""
    record = bench.need("typescript").execute(SubmittedProgram("typescript", text), stdin=b"1\n2\n")
    assert record.stdout.data == b"27 3\n", record


def test_sql_reads_stdin_first_and_cannot_leave(bench: Bench) -> None:
    bench.need("sql")
    setup = b"CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)"
    record = bench.execute(SubmittedProgram("sql", "SELECT sum(a), count(*) FROM t;"), stdin=setup)
    assert (record.stdout.data, record.ok) == (b"6|3\n", True)
    record = bench.execute(SubmittedProgram("sql", "SELECT nothing FROM t;"), stdin=setup)
    assert record.exit_code == 1
    record = bench.execute(SubmittedProgram("sql", ".shell echo out\n.system echo out"))
    assert (b"out" in record.stdout.data, record.exit_code) == (False, 1)


def test_an_empty_program_runs_and_says_nothing(bench: Bench) -> None:
    for language in ("python", "bash", "javascript", "sql"):
        record = bench.need(language).execute(SubmittedProgram(language, ""))
        assert (record.stdout.data, record.ok) == (b"", True), language
    for language in ("c", "java", "go"):
        record = bench.need(language).execute(SubmittedProgram(language, ""))
        assert not record.ok, language


class Counting:
    """Boxes that count what is started in the candidate's."""

    def __init__(self, bench: Bench) -> None:
        self._boxes = bench.boxes
        self.started: list[RunRequest] = []

    def candidate(self, source: str = "") -> Box:
        counted, inner = self, self._boxes.candidate(source)

        class Counted:
            level = inner.level

            def start(self, request: RunRequest) -> object:
                counted.started.append(request)
                return inner.start(request)

            def close(self) -> None: ...

        return Counted()  # type: ignore[return-value]

    def tester(self) -> Box:
        return self._boxes.tester()


@pytest.mark.parametrize("language", COMPILED)
def test_an_equal_program_compiles_once(bench: Bench, language: str, tmp_path: Path) -> None:
    from assay.sandbox.languages import CompileCache

    boxes = Counting(bench.need(language))
    cache = CompileCache(tmp_path)
    one, two = (LanguagePreparer(bench.toolchains, cache, boxes, bench.pump) for _ in range(2))
    program = SubmittedProgram(language, LANGUAGES[language].self_test)
    first, again = one.prepare(program, QUICK), two.prepare(program, QUICK)
    assert len(boxes.started) == 1
    for prepared in (first, again, first):
        request = prepared.run(stdin=b"40 2\n", limits=LANGUAGES[language].limits)
        running = boxes.candidate().start(request)
        bench.pump.add(running)
        assert bench.pump.finish(running).stdout.data.strip() == b"42"
    for preparer in (one, two):
        with pytest.raises(CompileFailed):
            preparer.prepare(SubmittedProgram(language, BROKEN[language]), QUICK)
    assert len(boxes.started) == 5


def test_only_python_answers_calls(bench: Bench) -> None:
    prepared = bench.preparer.prepare(SubmittedProgram("python", "def f(): ..."), QUICK)
    assert prepared.candidate(limits=QUICK).channel
    prepared = bench.need("bash").preparer.prepare(SubmittedProgram("bash", ":"), QUICK)
    with pytest.raises(SandboxFault, match=r"stdio.*python") as caught:
        prepared.candidate(limits=QUICK)
    assert caught.value.reason == "INVALID_TEST"


def test_languages_work_without_what_is_made_in_advance(bench: Bench) -> None:
    cold = discover(["cpp", "go"])
    for language in cold.found:
        assert self_test(cold, language, bench.boxes, bench.pump) is None


def test_warming_up_again_makes_nothing_and_mends_what_is_half_made(tmp_path: Path) -> None:
    cold = discover(["cpp"])
    if "cpp" not in cold.found:
        pytest.skip(cold.missing["cpp"].why)
    warm = warm_up(cold, tmp_path)
    header = Path(warm.found["cpp"].warm, "bits/stdc++.h.gch")
    made = header.stat().st_mtime_ns
    assert warm_up(cold, tmp_path) == warm
    assert header.stat().st_mtime_ns == made
    Path(warm.found["cpp"].warm, ".assay-done").unlink()
    assert warm_up(cold, tmp_path) == warm
    assert header.stat().st_mtime_ns != made


def test_a_command_that_cannot_warm_leaves_the_language_cold(tmp_path: Path) -> None:
    (tmp_path / "g++").write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    (tmp_path / "g++").chmod(0o755)
    cold = discover(["cpp"], path=str(tmp_path))
    assert warm_up(cold, tmp_path / "warm").found["cpp"].warm == ""


HEAP = RunLimits(memory_bytes=256 * MIB, compile_wall_s=100.0, wall_s=60.0, cpu_s=60.0)


def test_runtimes_are_told_their_heap(bench: Bench) -> None:
    programs = {
        "java": "class A { public static void main(String[] a) { System.out.println(Runtime.getRuntime().maxMemory() >> 20); } }",
        "javascript": "console.log(require('v8').getHeapStatistics().heap_size_limit >> 20)",
    }  # fmt: skip
    for language, text in programs.items():
        record = bench.need(language).execute(SubmittedProgram(language, text), limits=HEAP)
        assert 150 <= int(record.stdout.data) <= 245, (language, record)
