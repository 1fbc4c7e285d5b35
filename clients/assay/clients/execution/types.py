"""What goes into an execution client and what comes out: small frozen values, nothing of the wire.

A job is a program to run (`ExecutionJob`) or to hold against tests (`TestJob`). What comes back is
an `Execution` or a `TestReport`, which say something about the program, or a `Fault`, which says
only that we could not run it.

Times are in seconds, sizes in bytes. Kinds of ends and verdicts are kebab-case texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.api.execution.v1 import execution_pb2
from assay.clients.types import Fault

Plain = object
"""A tree of None, bool, int, float, str, bytes, list, tuple, set, frozenset and dict."""

END_KINDS = (
    "exited",
    "signalled",
    "cpu-time-limit",
    "wall-time-limit",
    "memory-limit",
    "output-limit",
    "process-limit",
    "compile-error",
    "security-violation",
)
VERDICTS = (
    "passed",
    "wrong-answer",
    "runtime-error",
    "limit-exceeded",
    "security-violation",
    "not-run",
)
COMPARISONS = ("default", "exact", "tokens", "numeric", "unordered", "checker")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a working directory: relative path without "..", and what is in it."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Program:
    """A program: its files, how it starts and what it sees.

    Attributes:
        language: its name, as `list_languages` gives it.
        source: the main file's text; may be empty when `files` holds the entry point.
        files: further files of the working directory.
        entry_path: which of the files starts the program; empty for `source`.
        arguments: its command-line arguments, without its own name.
        environment: added to a small fixed environment.
    """

    language: str
    source: str = ""
    files: Sequence[SourceFile] = ()
    entry_path: str = ""
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. None: the language's default. Above the server's maximum: a fault.

    Attributes:
        cpu_time_s: CPU time of all its processes together.
        wall_time_s: time on the clock, from its start; never the queue, never compilation.
        memory_bytes: memory of all its processes together.
        output_bytes: bytes kept of each of stdout and stderr; what is beyond is drained.
        max_output_bytes: bytes it may write to each in all; more ends it.
        disk_bytes: bytes it may leave on its disk.
        processes: processes and threads alive at once.
        compile_wall_time_s: time on the clock for compilation.
    """

    cpu_time_s: float | None = None
    wall_time_s: float | None = None
    memory_bytes: int | None = None
    output_bytes: int | None = None
    max_output_bytes: int | None = None
    disk_bytes: int | None = None
    processes: int | None = None
    compile_wall_time_s: float | None = None


@dataclass(frozen=True, slots=True)
class ExecutionJob:
    """One program to run once.

    Attributes:
        program: what to run.
        id: the caller's name for it, at most 256 bytes. Empty: the client numbers it.
        stdin: what it reads.
        limits: what it may use.
        fetch_paths: files of its working directory to bring back.
    """

    program: Program
    id: str = ""
    stdin: bytes = b""
    limits: Limits = field(default_factory=Limits)
    fetch_paths: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """What a stream of a program held: its first bytes, and how many there were in all."""

    data: bytes = b""
    truncated: bool = False
    total_bytes: int = 0

    @property
    def text(self) -> str:
        """The bytes as text; what is not UTF-8 is replaced."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Execution:
    """One run of a program.

    Attributes:
        end: how it ended, one of END_KINDS.
        exit_code: 0 to 255, when it exited.
        signal: the signal's number, when it was signalled.
        stdout: what it wrote.
        stderr: what it wrote.
        compile_output: what the compiler wrote, for a compiled language.
        compiling: it ended while it was compiled, and was never started: the end and what was used
            are the compiler's.
        files: files that were asked for and exist.
        cpu_time_s: CPU time of all its processes.
        wall_time_s: time on the clock.
        peak_memory_bytes: of all its processes.
        isolation_level: how it was isolated, e.g. "namespaces".
        queue_s: seconds that the job waited at the server; 0 for the run of one test.
        service_s: seconds that the server spent on it, compilation included; 0 for that of a test.
    """

    end: str
    exit_code: int = 0
    signal: int = 0
    stdout: Output = Output()
    stderr: Output = Output()
    compile_output: Output = Output()
    files: tuple[SourceFile, ...] = ()
    cpu_time_s: float = 0.0
    wall_time_s: float = 0.0
    peak_memory_bytes: int = 0
    isolation_level: str = ""
    queue_s: float = 0.0
    service_s: float = 0.0
    compiling: bool = False

    @property
    def ok(self) -> bool:
        """It exited by itself with code 0."""
        return self.end == "exited" and self.exit_code == 0


ExecutionResult = Execution | Fault


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an answer is held against the expected one.

    Attributes:
        kind: one of COMPARISONS; "default" is tokens for stdout and equality for values.
        absolute_tolerance: for numbers, the greatest absolute difference.
        relative_tolerance: for numbers, the greatest relative difference.
        checker: the program that decides, for "checker". It gets the names of three files: input,
            the candidate's answer, the expected answer; it exits with 0 to accept and 1 to reject.
    """

    kind: str = "default"
    absolute_tolerance: float = 0.0
    relative_tolerance: float = 0.0
    checker: Program | None = None


@dataclass(frozen=True, slots=True)
class StdioTest:
    """Feeds stdin and compares stdout."""

    stdin: bytes
    expected_stdout: bytes
    name: str = ""
    comparison: Comparison = Comparison()
    arguments: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class CallTest:
    """Calls a function, or "Class.method" of a fresh instance, and compares what it returns."""

    function: str
    arguments: Sequence[Plain] = ()
    expected: Plain = None
    name: str = ""
    keyword_arguments: Mapping[str, Plain] = field(default_factory=dict)
    comparison: Comparison = Comparison()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class AssertTest:
    """Runs test code, in a process of its own that calls the candidate's.

    Attributes:
        code: assertions, a check function, or a unit-test file.
        entry_point: the name of the function under test; empty: names as the candidate has them.
        name: for reports.
        limits: of this test.
    """

    code: str
    entry_point: str = ""
    name: str = ""
    limits: Limits = field(default_factory=Limits)


TestCase = StdioTest | CallTest | AssertTest


@dataclass(frozen=True, slots=True)
class TestSuite:
    """Tests of one program, in order.

    Attributes:
        tests: at least one.
        limits: of each test, where it states none.
        stop_at_first_failure: later tests are then not run.
    """

    __test__ = False  # not a class of pytest's

    tests: Sequence[TestCase]
    limits: Limits = field(default_factory=Limits)
    stop_at_first_failure: bool = False


@dataclass(frozen=True, slots=True)
class TestJob:
    """One program to hold against tests.

    Attributes:
        program: the candidate.
        suite: what to hold it against; the contract's own message is passed on as it is.
        id: the caller's name for it, at most 256 bytes. Empty: the client numbers it.
    """

    __test__ = False

    program: Program
    suite: TestSuite | execution_pb2.TestSuite
    id: str = ""


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """How a program did on one test.

    Attributes:
        name: the test's name, or its number from 1.
        verdict: one of VERDICTS.
        execution: the run behind it; None when it was not run.
        explanation: what differs, in one line for people. It may hold what the test expects: never
            show it to a policy.
    """

    __test__ = False

    name: str
    verdict: str
    execution: Execution | None = None
    explanation: str = ""

    @property
    def passed(self) -> bool:
        """The answer is right."""
        return self.verdict == "passed"


@dataclass(frozen=True, slots=True)
class TestReport:
    """How a program did on its tests, in their order.

    Attributes:
        outcomes: one for each test.
        compile_output: what the compiler wrote.
        compile_failed: the program does not compile; no test was run.
        queue_s: seconds that the job waited at the server.
        service_s: seconds that the server spent on it.
    """

    __test__ = False

    outcomes: tuple[TestOutcome, ...]
    compile_output: Output = Output()
    compile_failed: bool = False
    queue_s: float = 0.0
    service_s: float = 0.0

    @property
    def passed_count(self) -> int:
        """How many tests passed."""
        return sum(outcome.passed for outcome in self.outcomes)

    @property
    def all_passed(self) -> bool:
        """Every test passed, and there is one."""
        return bool(self.outcomes) and self.passed_count == len(self.outcomes)

    @property
    def first_failure(self) -> TestOutcome | None:
        """The first test that did not pass; None when all did."""
        return next((outcome for outcome in self.outcomes if not outcome.passed), None)


TestResult = TestReport | Fault


@dataclass(frozen=True, slots=True)
class LanguageInfo:
    """One language that a server runs.

    Attributes:
        name: by which a program asks for it.
        toolchain_version: as the toolchain says itself.
        default_limits: in force where a job states none.
        test_kinds: which kinds of tests it serves: "stdio", "call", "assertions".
    """

    name: str
    toolchain_version: str
    default_limits: Limits
    test_kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """What a sandbox runs.

    Attributes:
        languages: sorted by name.
        isolation_layers: how programs are isolated, strongest layer first.
        max_limits: the greatest limits that a job may ask for.
        max_items: most jobs of one call.
        max_message_bytes: most bytes of one message.
        max_item_bytes: most bytes of one job.
        version: the server's.
    """

    languages: tuple[LanguageInfo, ...]
    isolation_layers: tuple[str, ...]
    max_limits: Limits
    max_items: int
    max_message_bytes: int
    max_item_bytes: int
    version: str

    def find(self, name: str) -> LanguageInfo | None:
        """The language of this name; None when it is not served."""
        return next((info for info in self.languages if info.name == name), None)
