"""SandboxFusion's `/run_jupyter`: its JSON to a session and cells, and what came of them. Pure.

As there, a cell that raises does not end the others, and where the whole runs out of time, no cell
has a result. Where the program ends its session, the cells until then have theirs.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2
from assay.compat.cells import ENDS, LATE, bundle_of, raised_by
from assay.compat.fields import Fields
from assay.compat.programs import CPU_SHARE, MIB
from assay.compat.sandbox_fusion.run import SIGKILL, SIGSYS, command_result
from assay.compat.sessions import Cell
from assay.kit.durations import duration, seconds_of

TOTAL_TIMEOUT_S = 45.0


@dataclass(frozen=True, slots=True)
class RunJupyter:
    """A request of `/run_jupyter`. Time-outs are by the clock.

    Attributes:
        cells: what to run.
        files: of the working directory at the start.
        cell_timeout_s: of each cell; None: that of the whole.
        memory_bytes: of the session; 0: the server's default.
        fetched: the caller's names of the files to bring back, by their paths.
    """

    cells: tuple[str, ...]
    files: dict[str, bytes]
    cell_timeout_s: float | None
    total_timeout_s: float
    memory_bytes: int
    fetched: dict[str, str]

    def session(self, most: session_pb2.SessionLimits) -> session_pb2.CreateRequest:
        """The session that it needs."""
        wall_s = min(self.total_timeout_s, self.cell_timeout_s or self.total_timeout_s)
        limits = session_pb2.SessionLimits(
            cell_wall_time=duration(wall_s), memory_bytes=self.memory_bytes
        )
        for limit, name in ((limits.cell_cpu_time, "cell_cpu_time"), (limits.cpu_time, "cpu_time")):
            cpu_s = min(CPU_SHARE * self.total_timeout_s, seconds_of(getattr(most, name)))
            limit.CopyFrom(duration(cpu_s))
        return session_pb2.CreateRequest(
            language="python",
            files=[
                execution_pb2.SourceFile(path=path, content=data)
                for path, data in self.files.items()
            ],
            limits=limits,
        )


@dataclass(slots=True)
class Notebook:
    """How far a request has come.

    Attributes:
        ran: its cells so far.
        late: the whole ran out of time.
        files: what was fetched.
    """

    request: RunJupyter
    ran: list[Cell] = field(default_factory=list)
    late: bool = False
    files: Sequence[session_pb2.SessionFile] = ()

    @property
    def used_s(self) -> float:
        """Time on the clock of the cells so far."""
        return sum(seconds_of(cell.result.usage.wall_time) for cell in self.ran)

    @property
    def left_s(self) -> float:
        """What is left for the others."""
        return self.request.total_timeout_s - self.used_s

    @property
    def allowed_s(self) -> float:
        """What the next cell may take."""
        return min(self.left_s, self.request.cell_timeout_s or self.left_s)

    @property
    def over(self) -> bool:
        """No cell can follow."""
        return self.late or (bool(self.ran) and self.ran[-1].result.session_over)

    def next_cell(self) -> str | None:
        """The code of the next cell; None where there is none, or no time for it."""
        if self.over or len(self.ran) == len(self.request.cells):
            return None
        self.late = self.left_s <= 0
        return None if self.late else self.request.cells[len(self.ran)]

    def add(self, cell: Cell) -> None:
        """What came of the next cell."""
        whole = self.allowed_s >= self.left_s
        self.ran.append(cell)
        self.late = whole and cell.result.end == session_pb2.CELL_END_WALL_TIME_LIMIT


def read_run_jupyter(body: object) -> RunJupyter:
    """Reads a request.

    Raises:
        BadField: a field is missing or wrong.
    """
    fields = Fields(body)
    fields.raw("cells")
    cell_s = fields.number("cell_timeout", 0)
    memory = fields.number("memory_limit_MB", -1)
    if fields.text("kernel", "python3") != "python3":
        raise fields.bad("kernel", "must be python3")
    return RunJupyter(
        fields.texts("cells"),
        fields.files("files"),
        cell_s if cell_s > 0 else None,
        fields.positive("total_timeout", TOTAL_TIMEOUT_S),
        int(memory * MIB) if memory > 0 else 0,
        {fields.own_path("fetch_files", path): path for path in fields.texts("fetch_files")},
    )


def answer_run_jupyter(book: Notebook) -> dict[str, object]:
    """The response for cells that ran, or that ran out of something."""
    driver, message = _driver(book)
    return {
        "status": "Failed" if book.over else "Success",
        "message": message,
        "driver": driver,
        "cells": [] if book.late else [_result(cell) for cell in book.ran],
        "executor_pod_name": None,
        "files": {
            book.request.fetched.get(file.path, file.path): base64.b64encode(file.content).decode()
            for file in book.files
        },
    }


def _result(cell: Cell) -> dict[str, object]:
    """A cell's own part."""
    result = cell.result
    values = [*cell.displays, *([result.value] if result.HasField("value") else [])]
    raised = raised_by(result)
    return {
        "stdout": result.stdout.data.decode("utf-8", "replace"),
        "stderr": result.stderr.data.decode("utf-8", "replace"),
        "display": [bundle_of(value) for value in values],
        "error": [] if raised is None else [raised.fields],
    }


def _driver(book: Notebook) -> tuple[dict[str, object], str]:
    """What the process that ran the cells came to, and `message`."""
    seconds = book.used_s
    cut = [
        f"cell {cell.result.number}: {name} has {output.total_bytes} bytes, of which the first "
        f"{len(output.data)} are kept"
        for cell in book.ran
        for name, output in (("stdout", cell.result.stdout), ("stderr", cell.result.stderr))
        if output.truncated
    ]
    message = "; ".join(cut)
    if not book.over:
        return command_result("Finished", seconds, 0), message
    last = book.ran[-1].result if book.ran else session_pb2.CellResult()
    ended = "wall-time-limit" if book.late else ENDS[last.end]
    message = "; ".join([ended, *cut])
    if book.late or last.end in LATE:
        return command_result("TimeLimitExceeded", seconds, None), message
    match last.end:
        case session_pb2.CELL_END_DIED:
            code = -last.signal if last.signal else last.exit_code
        case session_pb2.CELL_END_SECURITY_VIOLATION:
            code = -SIGSYS
        case _:
            code = -SIGKILL
    return command_result("Finished", seconds, code), message
