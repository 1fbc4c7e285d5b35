"""The sandbox's domain as plain values: what is run, its limits, how it ended.

Times are in seconds, sizes in bytes. No gRPC, processes or clock here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assay.kit.faults import Unjudgeable

PYTHON_PACKAGES = ("numpy", "pytest")
"""Distributions that Python programs may import by default, where installed."""

ENDED_BY_US = "the sandbox ended it"
"""The `detail` of a run that the sandbox killed without another reason."""

MIB = 2**20


class EndKind(enum.Enum):
    """How a program ended. Each is about the program, none about the sandbox."""

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
    """What the zygote's child becomes."""

    PYTHON = "python"  # the pre-warmed interpreter runs the file argv[0] as a script
    CANDIDATE = "candidate"  # it loads argv[0] and answers calls over the channel
    TESTER = "tester"  # it runs test code that calls a candidate over the channel
    EXEC = "exec"  # it executes argv


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may use.

    Attributes:
        cpu_s: CPU time of all its processes together.
        wall_s: wall time from the job's arrival in the child.
        memory_bytes: of all its processes together.
        output_bytes: kept of each of stdout and stderr; the rest is drained and dropped.
        max_output_bytes: written to each in all; more ends it (OUTPUT_LIMIT).
        disk_bytes: left in its folder.
        processes: processes and threads alive at once.
        compile_wall_s: wall time of the compilation.
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
        argv: the command; for the Python modes argv[0] is the script's path in the folder.
        files: written into the folder (the working directory) before the start.
        environment: added to the fixed small one.
        executable: an open file descriptor (a memfd) to execute instead of argv[0], EXEC only.
            Borrowed: the box never closes it.
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
        """Whether the run has a private socket for frames: CANDIDATE and TESTER do."""
        return self.mode in {RunMode.CANDIDATE, RunMode.TESTER}


@dataclass(frozen=True, slots=True)
class CapturedOutput:
    """The first bytes of a program's stream, and how many there were in all."""

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
        exit_code: 0 to 255 when it exited, else 0.
        signal: the signal's number when it was signalled, else 0.
        cpu_s: CPU time of all its processes.
        peak_memory_bytes: of all its processes together where a cgroup counts it, else of the
            largest.
        files: the fetched files that exist.
        detail: one line for people on why it ended so; may be empty.
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
        entry_path: which of the files starts it; empty for the source.
        environment: added to the fixed small one.
    """

    language: str
    source: str
    files: tuple[BoxFile, ...] = ()
    entry_path: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All text that may import something: source, entry point, every .py file."""
        files = (
            file.content.decode(errors="replace")
            for file in self.files
            if file.path.endswith(".py") or file.path == self.entry_path
        )
        return "\n".join((self.source, *files)) if self.files else self.source


class SandboxFault(Unjudgeable):
    """The program could not be run or judged, which says nothing about it.

    Args:
        reason: of assay.kit.reasons, e.g. UNKNOWN_LANGUAGE, INVALID_TEST, WORKER_DIED.
        message: what happened and what to do, for people.
        facts: the fault's metadata.
    """

    def __init__(self, reason: str, message: str, **facts: str) -> None:
        super().__init__(reason, message, facts)
