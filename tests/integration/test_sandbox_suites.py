"""Suites of tests in real boxes: they pass, fail and hold no test; and libraries, where they are."""

# ruff: noqa: E501 - small programs stay on one line

from __future__ import annotations

import dataclasses
import json
import subprocess
import zipfile
from pathlib import Path

import pytest

import sandbox_languages_support as support
import sandbox_service
from assay.clients.execution import (
    ExecutionClient,
    StdioTest,
    TestJob,
    TestSuite,
)
from assay.clients.execution import (
    Program as SentProgram,
)
from assay.sandbox.domain import BoxFile, EndKind, RunRecord, SubmittedProgram
from assay.sandbox.languages import LANGUAGES, self_test, table
from assay.sandbox.prepared import CompileFailed
from sandbox_languages_support import QUICK, Bench

bench = support.bench


def file(path: str, text: str) -> BoxFile:
    return BoxFile(path, text.encode())


JUNIT = "import static org.junit.jupiter.api.Assertions.*;\nimport org.junit.jupiter.api.Test;\n"

SUITES = {
    "pytest": (
        "import pytest\nfrom other import f\n@pytest.fixture\ndef seven():\n    return 7\n@pytest.mark.parametrize('n', [1, 2])\ndef test_f(seven, n, tmp_path):\n    assert f(n) == seven * n\n",
        {"other.py": "def f(n):\n    return n * 7\n"},
        {"other.py": "def f(n):\n    return 7\n"},
        "def f():\n    return 7\n",
    ),
    "jest": (
        'import { f } from "./other";\ndescribe("f", () => {\n  test.each([1, 2])("%i", (n: number) => expect(f(n)).toBe(7 * n));\n});\n',
        {"other.ts": "export const f = (n: number): number => n * 7;\n"},
        {"other.ts": "export const f = (n: number): number => 7;\n"},
        "export const f = 7;\n",
    ),
    "junit": (
        JUNIT + "class OtherTest {\n    @Test void one() { assertEquals(7, Other.f(1)); }\n    @Test void two() { assertEquals(14, Other.f(2)); }\n}\n",
        {"Other.java": "class Other { static int f(int n) { return n * 7; } }\n"},
        {"Other.java": "class Other { static int f(int n) { return 7; } }\n"},
        "class A { int f() { return 7; } }\n",
    ),
}  # fmt: skip


def run(bench: Bench, language: str, source: str, files: dict[str, str]) -> RunRecord:
    beside = tuple(file(path, text) for path, text in files.items())
    return bench.need(language).execute(SubmittedProgram(language, source, beside))


@pytest.mark.parametrize("language", SUITES)
def test_a_suite_passes_fails_and_is_never_empty(bench: Bench, language: str) -> None:
    suite, right, wrong, empty = SUITES[language]
    passed = run(bench, language, suite, right)
    assert passed.ok, passed
    failed = run(bench, language, suite, wrong)
    assert (failed.end, failed.exit_code) == (EndKind.EXITED, 1), failed
    said = failed.stdout.data + failed.stderr.data
    assert (b"7 == (7 * 2)" if language == "pytest" else b"14") in said  # what was expected
    nothing = run(bench, language, empty, {})
    assert nothing.end is EndKind.EXITED
    assert nothing.exit_code != 0, nothing


def test_every_suite_of_the_table_is_tested_here() -> None:
    assert set(SUITES) == {name for name, language in LANGUAGES.items() if language.failing_suite}
    assert all(not LANGUAGES[name].test_kinds for name in SUITES)


def test_a_runner_that_passes_everything_is_not_served(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.need("pytest")
    starter = LANGUAGES["pytest"].starter
    careless = dataclasses.replace(
        LANGUAGES["pytest"], files=(file(starter, "print('1 passed')\n"),)
    )
    monkeypatch.setitem(table._BY_NAME, "pytest", careless)
    missing = self_test(bench.toolchains, "pytest", bench.boxes, bench.pump)
    assert missing is not None
    assert "wrong answer: exited, exit code 0" in missing.why


def test_a_program_sees_the_packages_that_are_allowed_and_no_others(bench: Bench) -> None:
    text = (
        "import importlib.metadata as m, pluggy\n"
        "print(sorted({d.name.lower() for d in m.distributions()}))\n"
        "import hypothesis\n"
    )
    record = bench.need_jail().need("pytest").execute(SubmittedProgram("python", text))
    assert record.exit_code == 1
    assert b"No module named 'hypothesis'" in record.stderr.data
    seen = set(json.loads(record.stdout.data.decode().replace("'", '"')))
    assert {"numpy", "pytest", "pluggy"} <= seen
    assert not {"grpcio", "assay-rl-sandbox", "hypothesis"} & seen


def test_jest_leaves_a_report(bench: Bench) -> None:
    bench.need("jest")
    limits = LANGUAGES["jest"].limits.with_(wall_s=60.0, cpu_s=60.0)
    text = 'test("a", () => {});\ntest("b", () => { throw new Error("no"); });\n'
    prepared = bench.preparer.prepare(SubmittedProgram("jest", text), QUICK)
    request = prepared.run(stdin=b"", limits=limits, fetch_paths=("jest-report.json",))
    running = bench.boxes.candidate().start(request)
    bench.pump.add(running)
    [report] = bench.pump.finish(running).files
    [suite] = json.loads(report.content)["testResults"]
    assert [(case["title"], case["status"]) for case in suite["testResults"]] == [
        ("a", "passed"),
        ("b", "failed"),
    ]


def need_node_package(name: str) -> None:
    from assay.sandbox.languages.libraries import NODE_PATH

    if not any(Path(folder, name).exists() for folder in NODE_PATH.split(":")):
        pytest.skip(f"the package {name} is not where programs look (node-{name})")


def test_programs_use_the_packages_of_the_machine(bench: Bench) -> None:
    need_node_package("lodash")
    program = SubmittedProgram(
        "javascript", 'console.log(require("lodash").chunk([1, 2, 3], 2).length)'
    )
    assert bench.need("javascript").execute(program).stdout.data == b"2\n"
    text = 'import _ from "lodash";\nconst size: number = _.chunk([1, 2, 3], 2).length;\nconsole.log(size)'
    assert (
        bench.need("typescript").execute(SubmittedProgram("typescript", text)).stdout.data == b"2\n"
    )


def test_typescript_has_types_of_nodes_own(bench: Bench) -> None:
    text = "process.stdin.on('data', (seen: Buffer) => { const u: URL = new URL('http://a/b'); console.log(seen.length, u.pathname); });"
    record = bench.need("typescript").execute(SubmittedProgram("typescript", text), stdin=b"12")
    assert record.stdout.data == b"2 /b\n", record


def test_a_module_that_is_nowhere_fails_when_it_runs(bench: Bench) -> None:
    text = 'import nothing from "no-such-module";\nconsole.log(nothing)'
    record = bench.need("typescript").execute(SubmittedProgram("typescript", text))
    assert (record.end, record.exit_code) == (EndKind.EXITED, 1), record
    assert b"Cannot find module" in record.stderr.data


def test_a_jar_beside_a_java_program_is_on_its_class_path(bench: Bench, tmp_path: Path) -> None:
    chain = bench.need("java").toolchains.found["java"]
    (tmp_path / "Seven.java").write_text(
        "package lib; public class Seven { public static int get() { return 7; } }"
    )
    subprocess.run([chain.commands["javac"], "-d", tmp_path, tmp_path / "Seven.java"], check=True)
    with zipfile.ZipFile(tmp_path / "seven.jar", "w") as jar:
        jar.write(tmp_path / "lib/Seven.class", "lib/Seven.class")
    text = (
        "class A { public static void main(String[] a) { System.out.println(lib.Seven.get()); } }"
    )
    beside = (BoxFile("jars/seven.jar", (tmp_path / "seven.jar").read_bytes()),)
    record = bench.execute(SubmittedProgram("java", text, beside))
    assert (record.stdout.data, record.ok) == (b"7\n", True), record
    with pytest.raises(CompileFailed):
        bench.preparer.prepare(SubmittedProgram("java", text), QUICK)


def test_go_tests_may_use_testify(bench: Bench) -> None:
    if not Path("/usr/share/gocode/src/github.com/stretchr/testify").exists():
        pytest.skip("the package golang-github-stretchr-testify-dev is not installed")
    text = 'package x\nimport (\n\t"testing"\n\t"github.com/stretchr/testify/assert"\n)\nfunc TestA(t *testing.T) { assert.Equal(t, 2, 1+%d) }'
    for number, code in ((1, 0), (2, 1)):
        program = SubmittedProgram("go", "", (file("a_test.go", text % number),), "a_test.go")
        record = bench.need("go").execute(program)
        assert (record.end, record.exit_code) == (EndKind.EXITED, code), record
        assert (b"Not equal" in record.stdout.data) is bool(code)


@pytest.mark.slow
def test_a_suite_is_no_program_for_tests(bench: Bench) -> None:
    bench.need("pytest")
    with (
        sandbox_service.running("--languages", "pytest", "--slots", "1") as (target, _),
        ExecutionClient(target) as client,
    ):
        [fault] = client.run_tests(
            [TestJob(SentProgram("pytest", "def test(): pass"), TestSuite([StdioTest(b"", b"")]))],
            timeout_s=60,
        )
        assert (fault.reason, fault.code) == ("INVALID_TEST", "INVALID_ARGUMENT")
        [language] = client.list_languages(timeout_s=60).languages
        assert (language.name, language.test_kinds) == ("pytest", ())
        assert "pytest" in language.toolchain_version
