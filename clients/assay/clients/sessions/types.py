"""The values of sessions, as frozen dataclasses. Times are in seconds, sizes in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.clients.execution.types import Output


class CellEnd(StrEnum):
    """How a cell ended. All of these are about the program."""

    COMPLETED = "completed"
    RAISED = "raised"
    EXITED = "exited"
    INTERRUPTED = "interrupted"
    WALL_TIME_LIMIT = "wall-time-limit"
    CPU_TIME_LIMIT = "cpu-time-limit"
    MEMORY_LIMIT = "memory-limit"
    OUTPUT_LIMIT = "output-limit"
    DIED = "died"
    SECURITY_VIOLATION = "security-violation"
    BUDGET_SPENT = "budget-spent"
    PROTOCOL_VIOLATION = "protocol-violation"


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """What a session may use. None: the server's default. Above its maximum: refused.

    Attributes:
        cpu_time_s: of its whole life; spent, the session is over.
        cell_cpu_time_s: of one cell, as is `cell_wall_time_s`.
        memory_bytes: of its processes, its files and its checkpoints together.
        disk_bytes: of its files; they count as memory too.
        processes: processes and threads alive at once.
        output_bytes: kept of each stream of a cell; the rest is drained.
        max_output_bytes: writing more to a stream ends the session.
        checkpoints: held at once.
    """

    cpu_time_s: float | None = None
    cell_cpu_time_s: float | None = None
    cell_wall_time_s: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    processes: int | None = None
    output_bytes: int | None = None
    max_output_bytes: int | None = None
    checkpoints: int | None = None


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """What a cell wrote, as it came; `stream` is "stdout" or "stderr".

    A character may lie across two pieces.
    """

    stream: str
    data: bytes

    @property
    def text(self) -> str:
        """The bytes as text; invalid UTF-8 is replaced."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class DisplayValue:
    """A value in one or several forms, by mime type, as in Jupyter. The program's own claim."""

    data: Mapping[str, bytes]

    @property
    def text(self) -> str:
        """Its text/plain form."""
        return self.data.get("text/plain", b"").decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class CellError:
    """What a cell raised, in the program's own words."""

    name: str
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class CellUsage:
    """What a cell used, and what its session holds now.

    Attributes:
        queue_s: before its turn on the machine; it counts towards no limit.
        session_cpu_time_s: of all cells so far.
        memory_bytes: of the session's main process.
        files: files and folders.
    """

    cpu_time_s: float = 0.0
    wall_time_s: float = 0.0
    queue_time_s: float = 0.0
    session_cpu_time_s: float = 0.0
    memory_bytes: int = 0
    disk_bytes: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class CellResult:
    """What came of a cell.

    Attributes:
        session_over: the program ended its session; later cells raise SessionEnded.
        value: the last expression's, unless it is None.
        plain: that value as a Python value, where it is plain data and not large; else None.
        displays: what it showed on the way.
        exit_code: where it exited; of bash the cell's status.
        signal: of the end "died".
        number: in the session, from 1.
        detail: one line for people on why it ended so.
    """

    end: CellEnd
    session_over: bool = False
    stdout: Output = field(default_factory=Output)
    stderr: Output = field(default_factory=Output)
    value: DisplayValue | None = None
    plain: object = None
    displays: tuple[DisplayValue, ...] = ()
    error: CellError | None = None
    exit_code: int = 0
    signal: int = 0
    usage: CellUsage = field(default_factory=CellUsage)
    number: int = 0
    detail: str = ""

    @property
    def ok(self) -> bool:
        """It ran to its end, or exited, with code 0."""
        return self.end in (CellEnd.COMPLETED, CellEnd.EXITED) and self.exit_code == 0


CellEvent = OutputPiece | DisplayValue | CellResult
"""What `stream` yields: the result is the last."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file of a session; its path is relative to the working directory."""

    path: str
    size_bytes: int
    mode: int = 0


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """The files of a session, by path. `truncated`: there are more than a listing holds."""

    files: tuple[SessionFile, ...]
    truncated: bool = False

    def __iter__(self) -> Iterator[SessionFile]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True, slots=True)
class SessionsInfo:
    """What a sandbox says of its sessions.

    Attributes:
        isolation_layers: strongest first.
        copies: checkpoints, rollbacks and forks work; else `no_copies_because` says why.
        capacity: how many sessions fit; `open` are.
        replica: the name of this replica.
    """

    languages: tuple[str, ...]
    isolation_layers: tuple[str, ...]
    copies: bool
    no_copies_because: str
    default_limits: SessionLimits
    max_limits: SessionLimits
    default_lease_s: float
    max_lease_s: float
    capacity: int
    open: int
    replica: str
    version: str
    python_packages: Mapping[str, str] = field(default_factory=dict)
