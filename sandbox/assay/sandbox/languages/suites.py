"""Suites of tests as languages: a program in one of them is a suite, its exit code the answer.

pytest, Jest and JUnit, where installed; a `_test.go` file is a program in Go (`plans.go_plan`).
They go through Execute alone and serve no kind of test.

Covered: a candidate's honest mistakes. A suite without a test fails.
Not covered: a candidate that means to cheat. Its code shares the process of its tests, and can exit
with code 0, read what they expect, or replace the framework's functions.
"""

from __future__ import annotations

from assay.sandbox.domain import MIB, BoxFile, RunLimits
from assay.sandbox.languages import plans
from assay.sandbox.languages.language import OURS, Compile, Language, Tool, named
from assay.sandbox.languages.libraries import (
    BABEL_PRESETS,
    JAVA_CLASS_PATH,
    JAVA_TUPLES,
    JUNIT,
    NODE_PATH,
)

_MANAGED = RunLimits(memory_bytes=1024 * MIB)

_PYTEST_STARTER = b"""\
import sys

import pytest

sys.exit(pytest.main(["-p", "no:cacheprovider", *sys.argv[1:]]))
"""

# What is found is looked for from where Jest lies, then in NODE_PATH: its own packages may lie
# beneath it (npm) or beside it (Debian). No configuration of the program's own is read.
_JEST_CONFIG = b"""\
const path = require("path");
const find = (name) => require.resolve(name, { paths: [require.main.filename] });
const presets = [
  [find("@babel/preset-env"), { targets: { node: "current" } }],
  [find("@babel/preset-typescript"), { allowDeclareFields: true }],
];
module.exports = {
  rootDir: process.cwd(),
  testMatch: ["**/*.{test,spec}.?([cm])[jt]s?(x)"],
  transform: {
    "\\\\.[cm]?[jt]sx?$": [find("babel-jest"), { babelrc: false, configFile: false, presets }],
  },
  testResultsProcessor: path.join(__dirname, "jest.report.js"),
};
"""

# The report of Jest's results as they are, under the name that SandboxFusion's callers ask for.
_JEST_REPORT = b"""\
module.exports = (results) => {
  require("fs").writeFileSync("jest-report.json", JSON.stringify(results));
  return results;
};
"""

SUITES = (
    Language(
        name="pytest",
        tools=(),
        distributions=("pytest",),
        main=named("test_main.py"),
        run=(),
        starter=f"{OURS}/run_pytest.py",
        files=(BoxFile(f"{OURS}/run_pytest.py", _PYTEST_STARTER),),
        version=(),
        test_kinds=(),
        self_test="""\
def test_sum(capfd):
    print(20 + 22)
    assert capfd.readouterr().out == "42\\n"
""",
        failing_suite="def test_sum():\n    assert 20 + 22 == 43\n",
    ),
    Language(
        name="jest",
        tools=(Tool("jest", "jest"), Tool("node", "nodejs")),
        libraries=BABEL_PRESETS,
        main=named("main.test.ts"),
        run=(
            "{node}", "--max-old-space-size={heap_mib}", "{jest}",
            "--config", f"{OURS}/jest.config.js", "--ci", "--runInBand", "--watchman=false",
            "--color=false", "{arguments}",
        ),
        files=(
            BoxFile(f"{OURS}/jest.config.js", _JEST_CONFIG),
            BoxFile(f"{OURS}/jest.report.js", _JEST_REPORT),
        ),
        version=("{node}", "{jest}", "--version"),
        environment={"NODE_PATH": NODE_PATH, "FORCE_COLOR": "0"},
        limits=_MANAGED,
        test_kinds=(),
        self_test="""\
import { expect, test } from "@jest/globals";
const sum = (a: number, b: number): number => a + b;
test("sum", () => expect(sum(20, 22)).toBe(42));
""",
        failing_suite='test("sum", () => expect(20 + 22).toBe(43));\n',
    ),
    Language(
        name="junit",
        tools=(Tool("javac", "default-jdk-headless"), Tool("java", "default-jdk-headless")),
        libraries=(JUNIT, JAVA_TUPLES),
        main=plans.java_main,
        compile=Compile(
            argv=plans.javac(f"{JAVA_CLASS_PATH}:{{junit}}"),
            tree=True,
            unpack_to=f"{OURS}/classes",
            suffixes=(".java",),
        ),
        run=(
            "{java}", "-Xmx{heap_mib}m", "-Xss64m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-ea",
            "-XX:TieredStopAtLevel=1", "-cp", f"{OURS}/classes:{JAVA_CLASS_PATH}:{{junit}}",
            "org.junit.platform.console.ConsoleLauncher", "--disable-banner",
            "--disable-ansi-colors", "--fail-if-no-tests", f"--scan-class-path={OURS}/classes",
            "{arguments}",
        ),
        version=("{javac}", "-version"),
        read_only=(("/etc", "java*"),),
        limits=_MANAGED,
        plan=plans.java_plan,
        test_kinds=(),
        self_test="""\
import static org.junit.jupiter.api.Assertions.assertEquals;
import org.junit.jupiter.api.Test;
class SumTest {
    @Test
    void sum() { assertEquals(42, 20 + 22); }
}
""",
        failing_suite="""\
import static org.junit.jupiter.api.Assertions.assertEquals;
import org.junit.jupiter.api.Test;
class SumTest {
    @Test
    void sum() { assertEquals(43, 20 + 22); }
}
""",
    ),
)  # fmt: skip
