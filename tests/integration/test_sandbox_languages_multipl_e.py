"""MultiPL-E through the languages: a model's solution with its tests behind it must exit with 0.

The solutions are a model's and some are wrong, so the share that passes is bounded from below, with
room, and what fails must fail as a program does: it does not compile, ends with another code, or
never ends (as three of those below do outside of the sandbox too: cpp/88, sh/35 and sh/91).
"""

from __future__ import annotations

import functools
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import sandbox_languages_support as support
from assay.sandbox.domain import BoxFile, EndKind, SubmittedProgram
from sandbox_languages_support import Bench

bench = support.bench

DATA = Path(__file__).resolve().parents[3] / "shared/data/multipl_e.jsonl.gz"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.data,
    pytest.mark.skipif(not DATA.exists(), reason="no ../shared/data/multipl_e.jsonl.gz"),
]

ROWS_BY_NAME = {
    "cpp": "cpp", "go": "go_test.go", "java": "java", "javascript": "js", "rust": "rs",
    "typescript": "ts", "bash": "sh", "php": "php", "ruby": "rb", "csharp": "cs",
}  # fmt: skip
LEAST_SHARE = 0.5
MOST_UNCOMPILED = 0.2
MOST_ENDLESS = 0.2


@dataclass(frozen=True)
class Row:
    id: str
    prompt: str
    solution: str
    tests: str


@functools.cache
def rows(language: str) -> tuple[Row, ...]:
    with gzip.open(DATA, "rt") as lines:
        data = [json.loads(line) for line in lines]
    return tuple(
        Row(row["id"], row["prompt"], unfenced(row["gpt_solution"]), row["tests"])
        for row in data
        if row["language"] == ROWS_BY_NAME[language]
        and "humaneval" in row["id"]
        and not (language == "csharp" and ".Equals(" in row["tests"])  # of lists: never true
    )


def unfenced(text: str) -> str:
    found = re.search(r"```[^\n]*\n(.*?)(?:```|\Z)", text, re.DOTALL)
    return found[1] if found else text


def without_function(text: str, start: str) -> str:
    """Cuts the function that starts with `start`, to its closing brace, out of a text."""
    at = re.search(start, text)
    if not at:
        return text
    depth = 0
    for index in range(text.find("{", at.start()), len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return text[: at.start()] + text[index + 1 :]
    return text[: at.start()]


def csharp_program(row: Row, solution: str, closed: str) -> SubmittedProgram:
    head = "".join(re.findall(r"(?m)^using [\w.]+;\n", row.prompt))
    body = re.sub(r"(?s)(?:public\s+)?static\s+void\s+Main\s*\(.*", "", solution)
    body = re.sub(r"(?m)^\s*using [\w.]+;\s*$", "", body).rstrip()
    while body.endswith("}") and body.count("}") >= body.count("{"):
        body = body[:-1].rstrip()  # the class, which the tests close
    return SubmittedProgram("csharp", head + body + "\n" + closed)


JAVATUPLES = Path("/usr/share/java/javatuples.jar")


def program(language: str, row: Row) -> SubmittedProgram:
    """A solution and its tests as one program; the tests begin by closing the prompt's function."""
    solution, tests = row.solution, row.tests
    closed = re.sub(r"\A\s*\}\n", "", tests)
    match language:
        case "cpp" | "rust":
            cpp = language == "cpp"
            head = "#include<assert.h>\n#include<bits/stdc++.h>\n" if cpp else ""
            body = without_function(solution, r"(int|fn)\s+main\s*\(")
            return SubmittedProgram(language, head + body + closed)
        case "go":
            while re.search(r"func\s+(Test\w*|main)\s*\(", solution):
                solution = without_function(solution, r"func\s+(Test\w*|main)\s*\(")
            body = re.sub(r"\Apackage\s+\w+", "", solution.strip())
            for name in ("testing", "fmt"):
                if f'"{name}"' not in body:
                    body = f'\nimport "{name}"\n' + body
            text = f"package main_test\n{body}\n{closed}"
            return SubmittedProgram(
                "go", "", (BoxFile("main_test.go", text.encode()),), "main_test.go"
            )
        case "java":
            inside = without_function(solution, r"public\s+static\s+void\s+main\s*\(")
            imports = "".join(re.findall(r"import [^\n]+\n", row.prompt))
            body = re.sub(r"(?m)^\s*import [^\n]+\n", "", inside).rstrip()
            body = body.removesuffix("}").rstrip()
            return SubmittedProgram("java", imports + body + "\n" + re.sub(r"\A\s*\}\n", "", tests))
        case "csharp":
            return csharp_program(row, solution, closed)
        case "php" | "bash":
            opened = "<?php\n" if language == "php" and "<?php" not in solution else ""
            return SubmittedProgram(
                language, opened + re.sub(r"\?>\s*\Z", "", solution) + "\n" + closed
            )
        case _:
            return SubmittedProgram(language, solution + "\n" + tests)


def outcomes(langs: Bench, language: str, every: int) -> Iterator[tuple[Row, EndKind, bool, str]]:
    for row in rows(language)[::every]:
        record = langs.execute(program(language, row))
        words = (record.stderr.data or record.stdout.data).decode(errors="replace")
        yield row, record.end, record.ok, words


def check_share(langs: Bench, language: str, every: int) -> None:
    if language == "java" and not JAVATUPLES.exists():
        pytest.skip("these Java programs need the Debian package libjavatuples-java")
    seen = list(outcomes(langs, language, every))
    passed = sum(ok for _, _, ok, _ in seen)
    ends = {end for _, end, _, _ in seen}
    endless = {EndKind.WALL_TIME_LIMIT, EndKind.CPU_TIME_LIMIT}
    assert ends <= {EndKind.EXITED, EndKind.SIGNALLED, EndKind.COMPILE_ERROR} | endless
    assert sum(end in endless for _, end, _, _ in seen) <= MOST_ENDLESS * len(seen)
    failed = [f"{row.id}: {end.value}: {words[-300:]}" for row, end, ok, words in seen if not ok]
    assert passed >= LEAST_SHARE * len(seen), "\n".join(failed)
    uncompiled = sum(end is EndKind.COMPILE_ERROR for _, end, _, _ in seen)
    assert uncompiled <= MOST_UNCOMPILED * len(seen), "\n".join(failed)


@pytest.mark.parametrize("language", ROWS_BY_NAME)
def test_a_few_solutions_pass_their_own_tests(bench: Bench, language: str) -> None:
    check_share(bench.need(language), language, every=max(1, len(rows(language)) // 6))


@pytest.mark.exhaustive
@pytest.mark.parametrize("language", ROWS_BY_NAME)
def test_most_solutions_pass_their_own_tests(bench: Bench, language: str) -> None:
    check_share(bench.need(language), language, every=max(1, len(rows(language)) // 20))
