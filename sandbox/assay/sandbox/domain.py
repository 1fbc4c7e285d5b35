"""The words of the sandbox as plain values: what is run, what it may use, how it ended.

Nothing here knows gRPC, processes or the clock. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assay.kit.faults import Unjudgeable

PYTHON_PACKAGES = ("numpy", "pytest")
"""Distributions that Python programs may import where they are installed and nobody says more."""

ENDED_BY_US = "the sandbox ended it"
"""The detail of a run that was killed without a reason that is told: no end of somebody else's."""

MIB = 2**20


class EndKind(enum.Enum):
    """How a program ended. All of these are about the program, none about us."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    CPU_TIME_LIMIT = "cpu-time-limit"
    WALL_TIME_LIMIT = "wall-time-limit"
    MEMORY_LIMIT = "memory-limit"
    OUTPUT_LIMIT = "output-limit"
    PROCESS_LIMIT = "process-limit"
    COMPILE_ERROR = "compile-error"
    SECURITY_VIOLATION = "security-violation"


class RunMode(enum.Enum):
    """What the child of the zygote becomes."""

    PYTHON = "python"  # the pre-warmed interpreter runs the file argv[0] as a script
    CANDIDATE = "candidate"  # it loads argv[0] and answers calls over the channel
    TESTER = "tester"  # it runs test code that calls a candidate over the channel
    EXEC = "exec"  # it executes argv


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may use.

    Attributes:
        cpu_s: CPU time of all its processes together.
        wall_s: time on the clock, from the moment that the child takes the job.
        memory_bytes: memory of all its processes together.
        output_bytes: bytes kept of each of stdout and stderr; more is drained and dropped.
        max_output_bytes: bytes it may write to each in all; more ends it (OUTPUT_LIMIT).
        disk_bytes: bytes it may leave in its folder.
        processes: processes and threads alive at once.
        compile_wall_s: time on the clock for compilation.
    """

    cpu_s: float = 10.0
    wall_s: float = 10.0
    memory_bytes: int = 512 * MIB
    output_bytes: int = 1 * MIB
    max_output_bytes: int = 64 * MIB
    disk_bytes: int = 64 * MIB
    processes: int = 64
    compile_wall_s: float = 30.0

    def with_(self, **changes: float) -> RunLimits:
        """A copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class BoxFile:
    """A file of the program's folder: relative path without "..", content, mode bits."""

    path: str
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run of one program in a box.

    Attributes:
        mode: what the child becomes.
        argv: the command; for the Python modes argv[0] is the script's path in the folder.
        files: written into the folder (the working directory) before the start.
        stdin: what it reads.
        environment: added to the fixed small one.
        limits: what it may use.
        executable: an open file descriptor (a memfd) to execute instead of argv[0], EXEC only.
            Borrowed: the box never closes it.
        channel: it gets a private socket for frames (the CANDIDATE and TESTER modes always do).
        fetch_paths: files of the folder to bring back.
        fetch_bytes: most bytes of all fetched files together.
    """

    mode: RunMode
    argv: tuple[str, ...]
    files: tuple[BoxFile, ...] = ()
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: RunLimits = RunLimits()
    executable: int | None = None
    fetch_paths: tuple[str, ...] = ()
    fetch_bytes: int = 64 * MIB

    @property
    def channel(self) -> bool:
        """Whether the run has a private socket for frames."""
        return self.mode in {RunMode.CANDIDATE, RunMode.TESTER}


@dataclass(frozen=True, slots=True)
class CapturedOutput:
    """What a stream of a program held: the first bytes, and how many there were in all."""

    data: bytes = b""
    total_bytes: int = 0

    @property
    def truncated(self) -> bool:
        """There was more than was kept."""
        return self.total_bytes > len(self.data)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """How a run ended and what it left.

    Attributes:
        end: how it ended.
        exit_code: 0 to 255 when it exited, else 0.
        signal: the signal's number when it was signalled, else 0.
        stdout: what it wrote.
        stderr: what it wrote.
        cpu_s: CPU time of all its processes.
        wall_s: time on the clock.
        peak_memory_bytes: of all its processes together where a cgroup counts it, else of the
            largest.
        files: the fetched files that exist.
        detail: one line for people on why it ended so, where that is not plain; may be empty.
    """

    end: EndKind
    exit_code: int = 0
    signal: int = 0
    stdout: CapturedOutput = CapturedOutput()
    stderr: CapturedOutput = CapturedOutput()
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_memory_bytes: int = 0
    files: tuple[BoxFile, ...] = ()
    detail: str = ""

    @property
    def ok(self) -> bool:
        """It exited by itself with code 0."""
        return self.end is EndKind.EXITED and self.exit_code == 0


@dataclass(frozen=True, slots=True)
class SubmittedProgram:
    """A program as a caller sends it.

    Attributes:
        language: its name in the table of languages.
        source: the main file's text; may be empty when `files` holds the entry point.
        files: further files.
        entry_path: which of the files starts it; empty for the source.
        arguments: its command-line arguments.
        environment: what it sees, besides the fixed small environment.
    """

    language: str
    source: str
    files: tuple[BoxFile, ...] = ()
    entry_path: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The texts that may import something: the source, the entry point, every .py file."""
        files = (
            file.content.decode(errors="replace")
            for file in self.files
            if file.path.endswith(".py") or file.path == self.entry_path
        )
        return "\n".join((self.source, *files)) if self.files else self.source


class SandboxFault(Unjudgeable):
    """We could not run or judge the program. Says nothing about the program.

    Args:
        reason: a reason of assay.kit.reasons, e.g. UNKNOWN_LANGUAGE, INVALID_TEST, WORKER_DIED.
        message: what happened and what to do, for people.
        facts: the fault's metadata.
    """

    def __init__(self, reason: str, message: str, **facts: str) -> None:
        super().__init__(reason, message, facts)
