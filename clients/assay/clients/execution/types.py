"""The values that go into an execution client and come out of it, as frozen dataclasses.

A job's result is an `Execution` or a `TestReport`, which describe the program, or a `Fault`: the
program could not be run. Times are in seconds, sizes in bytes; kinds of ends and verdicts are
kebab-case texts. Ids have at most 256 bytes; the client numbers jobs without one.
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
    """One file of a working directory; its path is relative and has no ".."."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Program:
    """A program: its files, its start and its environment.

    Attributes:
        language: as `list_languages` names it.
        source: the main file's text; may be empty when `files` holds the entry point.
        entry_path: the file that starts the program; empty for `source`.
        environment: added to a small fixed one.
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
        cpu_time_s: of all its processes together, as is `memory_bytes`.
        wall_time_s: from its start, without queue and compilation.
        output_bytes: kept of each of stdout and stderr; the rest is drained.
        max_output_bytes: writing more to one of them ends the program.
        disk_bytes: left on its disk.
        processes: processes and threads alive at once.
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
    """One program to run once; `fetch_paths` are files of its working directory to return."""

    program: Program
    id: str = ""
    stdin: bytes = b""
    limits: Limits = field(default_factory=Limits)
    fetch_paths: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """The first bytes of a program's output stream, and the number of all of them."""

    data: bytes = b""
    truncated: bool = False
    total_bytes: int = 0

    @property
    def text(self) -> str:
        """The bytes as text; invalid UTF-8 is replaced."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Execution:
    """One run of a program. CPU time and peak memory are those of all its processes.

    Attributes:
        end: one of END_KINDS.
        exit_code: 0 to 255, when it exited.
        signal: when it was signalled.
        compiling: it ended during compilation; end and resources are the compiler's.
        files: those of `fetch_paths` that exist.
        queue_s: in the server's queue; 0 for the run of one test.
        service_s: of service, compilation included; 0 for the run of one test.
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
    """How an answer is compared with the expected one.

    `kind` is one of COMPARISONS; "default" is tokens for stdout and equality for values. The
    arguments of a checker are three file names: input, the candidate's answer, the expected answer;
    it exits with 0 to accept and 1 to reject.
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
        entry_point: the function under test; empty: names as the candidate has them.
    """

    code: str
    entry_point: str = ""
    name: str = ""
    limits: Limits = field(default_factory=Limits)


TestCase = StdioTest | CallTest | AssertTest


@dataclass(frozen=True, slots=True)
class TestSuite:
    """Tests of one program, in order; at least one. `limits` hold for tests that set none."""

    __test__ = False  # not a class of pytest's

    tests: Sequence[TestCase]
    limits: Limits = field(default_factory=Limits)
    stop_at_first_failure: bool = False


@dataclass(frozen=True, slots=True)
class TestJob:
    """One program to test. A suite that is a message of the contract is sent as it is."""

    __test__ = False

    program: Program
    suite: TestSuite | execution_pb2.TestSuite
    id: str = ""


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """A program's result on one test.

    Attributes:
        name: the test's name, or its number from 1.
        verdict: one of VERDICTS.
        execution: None when the test was not run.
        explanation: one line for people. It may hold what the test expects: never show it to a
            policy.
    """

    __test__ = False

    name: str
    verdict: str
    execution: Execution | None = None
    explanation: str = ""

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.verdict == "passed"


@dataclass(frozen=True, slots=True)
class TestReport:
    """A program's results on its tests, in order; none where it does not compile."""

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
    """One language of a server; its limits are for jobs that set none.

    `test_kinds` are of "stdio", "call", "assertions".
    """

    name: str
    toolchain_version: str
    default_limits: Limits
    test_kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """Languages (by name), isolation layers (strongest first) and limits of a sandbox."""

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
