"""Hostile programs and what is expected of each: ours here, and those in ../shared/abuse where
they are present.

A program never passes. Everything else that a manifest says about it is a list of sensible ends;
`words_of` turns a report of ours, which is finer, into the manifest's words.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path

from assay.clients.execution import (
    AssertTest,
    CallTest,
    Execution,
    Limits,
    Program,
    SourceFile,
    StdioTest,
    TestJob,
    TestReport,
    TestSuite,
)

OURS = Path(__file__).parent
SHARED = OURS.parents[2] / "shared" / "abuse"
STDIN = b"2 3\n"
_EXTENSIONS = {"java": "Main.java"}
_PLAIN_CALLS = (((2, 3), 5), ((-7, 7), 0), ((10**12, 1), 10**12 + 1), ((4, 4), 8))
_UNIT_TESTS = """
import unittest

class TestAdd(unittest.TestCase):
    def test_small(self):
        self.assertEqual({entry}(2, 3), 5)

    def test_negative(self):
        self.assertEqual({entry}(-7, 7), 0)

    def test_large(self):
        self.assertTrue({entry}(10**12, 1) == 10**12 + 1)

    def test_all(self):
        self.assertListEqual([{entry}(i, i) for i in range(5)], [0, 2, 4, 6, 8])
"""


@dataclass(frozen=True, slots=True)
class Hostile:
    """One hostile program."""

    id: str
    path: Path
    language: str
    mode: str
    wall_limit_s: float
    status_in: frozenset[str]
    forbid_output: tuple[str, ...]
    tests: str = ""
    entry: str = ""
    calls: bool = True
    stdin: bytes = STDIN
    slow: bool = False

    @property
    def name(self) -> str:
        """The program's id, with where it comes from."""
        return f"{'ours' if self.path.is_relative_to(OURS) else 'shared'}-{self.id}"

    @property
    def content(self) -> bytes:
        """The program's bytes, as they lie on disk."""
        return self.path.read_bytes()

    @property
    def program(self) -> Program:
        """The program as a file, so that bytes which are no text stay what they are."""
        name = _EXTENSIONS.get(self.language, f"main{self.path.suffix}")
        return Program(self.language, files=(SourceFile(name, self.content),), entry_path=name)

    def jobs(self) -> list[TestJob]:
        """The program under each kind of test that fits it."""
        limits = Limits(wall_time_s=self.wall_limit_s)
        if self.mode == "stdio":
            secret = f"token-{uuid.uuid4().hex}\n".encode()
            suites: dict[str, tuple[object, ...]] = {"stdio": (StdioTest(self.stdin, secret),)}
        else:
            suites = {"assertions": (AssertTest(self.tests, self.entry),)}
            if "map(" not in self.tests:
                suites["unittest"] = (AssertTest(_UNIT_TESTS.format(entry=self.entry)),)
                suites["calls"] = tuple(
                    CallTest(self.entry, arguments, expected)
                    for arguments, expected in _PLAIN_CALLS
                )
            if not self.calls:
                suites.pop("calls", None)
        return [
            TestJob(self.program, TestSuite(tests, limits), id=f"{self.id}/{kind}")  # type: ignore[arg-type]  # of one kind each
            for kind, tests in suites.items()
        ]


def load(folder: Path) -> list[Hostile]:
    """The programs of one manifest; none where the folder is absent."""
    file = folder / "manifest.json"
    if not file.is_file():
        return []
    items = json.loads(file.read_text())["items"]
    return [_hostile(folder, item) for item in items]


def _hostile(folder: Path, item: dict[str, object]) -> Hostile:
    expected = item["expected"]
    assert isinstance(expected, dict)
    words = list(expected["status_in"])
    compiled = item["category"] in {"compile", "runtime"} or item["language"] in {
        "go",
        "java",
        "rust",
    }
    slow = item.get("slow", words[0] == "time_limit" or compiled)
    return Hostile(
        id=str(item["id"]),
        path=folder / str(item["file"]),
        language=str(item["language"]),
        mode=str(item["mode"]),
        wall_limit_s=float(str(item["wall_limit_s"])),
        status_in=frozenset(words),
        forbid_output=tuple(expected["forbid_output"]),
        tests=str(item.get("tests", "")),
        entry=str(item.get("entry", "")),
        calls=bool(item.get("calls", True)),
        stdin=str(item.get("stdin", STDIN.decode())).encode(),
        slow=bool(slow),
    )


def words_of(report: TestReport) -> frozenset[str]:
    """What came of a program, in the manifests' words; several fit where theirs are coarser."""
    words: set[str] = set()
    if report.compile_failed:
        words.add("compile_error")
    for outcome in report.outcomes:
        words |= _words(outcome.verdict, outcome.execution, compiling=report.compile_failed)
    return frozenset(words - {"passed"}) if not report.all_passed else frozenset({"passed"})


def _words(verdict: str, execution: Execution | None, *, compiling: bool) -> set[str]:
    end = execution.end if execution else ""
    by_end = {
        "cpu-time-limit": {"time_limit"},
        "wall-time-limit": {"time_limit"},
        "memory-limit": {"memory_limit", "killed"},
        "output-limit": {"output_limit"},
        "process-limit": {"runtime_error", "killed"},
        "security-violation": {"runtime_error", "killed"},
        "signalled": {"runtime_error", "killed"},
    }
    by_verdict = {
        "passed": {"passed"},
        "wrong-answer": {"failed"},
        "runtime-error": {"runtime_error"},
        "security-violation": {"killed"},
    }
    words = by_verdict.get(verdict, set()) | by_end.get(end, set())
    return words | {f"compile_{word}" for word in words} if compiling else words


def texts_of(report: TestReport) -> list[tuple[str, str]]:
    """Everything that a report shows of a program, by where it stands."""
    texts = [("compile output", report.compile_output.text)]
    for outcome in report.outcomes:
        texts.append((f"explanation of {outcome.name}", outcome.explanation))
        if outcome.execution is not None:
            texts.append((f"stdout of {outcome.name}", outcome.execution.stdout.text))
            texts.append((f"stderr of {outcome.name}", outcome.execution.stderr.text))
    return texts


def forbidden(hostile: Hostile, report: TestReport, also: tuple[str, ...] = ()) -> list[str]:
    """Texts that show that an attack worked.

    A traceback or a compiler that quotes the program's own line is no such text.
    """
    own = {line.strip() for line in hostile.content.decode("utf-8", "replace").splitlines()}
    found = []
    for where, text in texts_of(report):
        for line in text.splitlines():
            quoted = line.strip().partition("|")[2].strip() or line.strip()
            if quoted in own or line.strip() in own:
                continue
            hits = [sign for sign in (*hostile.forbid_output, *also) if sign in line]
            if hits:
                found.append(f"{where}: {line[:200]!r}")
    return found
