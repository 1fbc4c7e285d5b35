"""What came of a cell, for people and for programs."""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO, Protocol, TextIO

from rich.text import Text

from assay.cli.ends import LIMIT_CODE, SIGNAL_BASE, signal_name
from assay.clients.sessions import (
    CellEnd,
    CellEvent,
    CellResult,
    CellUsage,
    DisplayValue,
    OutputPiece,
    Session,
)
from assay.kit.console import make_console
from assay.kit.errors import AssayError, CallError

_GOES_ON = (CellEnd.COMPLETED, CellEnd.EXITED, CellEnd.RAISED)


def exit_code(result: CellResult) -> int:
    """The exit code of a cell: its own, 1 for an exception, 128 + a signal, 124 for a limit."""
    if result.end is CellEnd.RAISED:
        return 1
    if result.end is CellEnd.DIED and result.signal:
        return SIGNAL_BASE + result.signal
    return result.exit_code if result.end in (*_GOES_ON, CellEnd.DIED) else LIMIT_CODE


def reason(result: CellResult) -> str:
    """One line on an end that was not the cell's own; else empty."""
    if result.end in _GOES_ON:
        return f"exit code {result.exit_code}" if result.exit_code else ""
    said = result.end.replace("-", " ")
    if result.signal:
        said += f" of signal {result.signal} ({signal_name(result.signal)})"
    elif result.end is CellEnd.DIED:
        said += f" with exit code {result.exit_code}"
    detail = f": {' '.join(result.detail.split())}" if result.detail else ""
    return f"{said}{detail}; the session is over" * result.session_over or f"{said}{detail}"


def used(usage: CellUsage) -> str:
    """Time, memory and files in one line."""
    files = "1 file" if usage.files == 1 else f"{usage.files} files"
    return (
        f"{seconds(usage.wall_time_s)} · CPU {seconds(usage.cpu_time_s)} of "
        f"{seconds(usage.session_cpu_time_s)} · {size(usage.memory_bytes)} · "
        f"{files}, {size(usage.disk_bytes)}"
    )


def seconds(value: float) -> str:
    """A time in three figures."""
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def size(count: int) -> str:
    """A number of bytes in three figures."""
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1000:
            return f"{_figures(amount)} {unit}"
        amount /= 1024
    return f"{_figures(amount)} GiB"


def _figures(amount: float) -> str:
    return f"{amount:.3g}" if amount < 99 else f"{amount:.0f}"


class Shower(Protocol):
    """Shows cells."""

    def event(self, event: CellEvent) -> None:
        """What a cell wrote or showed, as it comes."""

    def result(self, session: Session, result: CellResult) -> None:
        """Its end."""

    def failure(self, error: AssayError) -> None:
        """A call that failed."""

    def note(self, text: str) -> None:
        """A line of ours."""


class Plain:
    """Output as it comes, then the value or the traceback; with `details` what was used."""

    def __init__(self, *, details: bool) -> None:
        self._details = details
        self._dim = make_console(stderr=True, highlight=False)
        self._open_line: dict[str, bool] = {}

    def event(self, event: CellEvent) -> None:
        """See `Shower`."""
        if isinstance(event, OutputPiece):
            _write(sys.stderr if event.stream == "stderr" else sys.stdout, event.data)
            self._open_line[event.stream] = not event.data.endswith(b"\n")
        elif isinstance(event, DisplayValue):
            self._line(sys.stdout, event.text)

    def result(self, session: Session, result: CellResult) -> None:
        """See `Shower`."""
        if self._details:
            self._end_lines()
        if result.value is not None:
            self._line(sys.stdout, result.value.text)
        if result.error is not None:
            trace = result.error.traceback or f"{result.error.name}: {result.error.message}"
            self._line(sys.stderr, trace.rstrip("\n"))
        for name, stream in (("stdout", result.stdout), ("stderr", result.stderr)):
            if stream.truncated:
                self.note(f"of {stream.total_bytes} bytes of {name} the first ones were kept")
        if why := reason(result):
            self.note(why)
        if self._details:
            self._dim.print(Text(used(result.usage), "dim"), soft_wrap=True)

    def failure(self, error: AssayError) -> None:
        """See `Shower`."""
        self.note(_failed(error))

    def note(self, text: str) -> None:
        """See `Shower`."""
        self._end_lines()
        self._line(sys.stderr, f"assay session: {text}")

    def _end_lines(self) -> None:
        if self._details and any(self._open_line.values()):
            self._line(sys.stdout, "")
        self._open_line.clear()

    def _line(self, stream: TextIO, text: str) -> None:
        _write(stream, f"{text}\n".encode("utf-8", "replace"))


class Json:
    """One JSON object for each cell, and for each call that failed."""

    def event(self, event: CellEvent) -> None:
        """See `Shower`; all is in the result."""

    def result(self, session: Session, result: CellResult) -> None:
        """See `Shower`."""
        self._print({"session": session.id, **as_json(result)})

    def failure(self, error: AssayError) -> None:
        """See `Shower`."""
        reason = error.reason if isinstance(error, CallError) else type(error).__name__
        self._print({"fault" if is_fault(error) else "error": reason, "message": str(error)})

    def note(self, text: str) -> None:
        """See `Shower`."""
        self._print({"note": text})

    def _print(self, facts: Mapping[str, Any]) -> None:
        _write(
            sys.stdout, (json.dumps(facts, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        )


def as_json(result: CellResult) -> dict[str, Any]:
    """A result as JSON's values. Streams are texts; forms that are none are in base64."""
    facts = {
        "number": result.number,
        "end": str(result.end),
        "ok": result.ok,
        "session_over": result.session_over,
        "stdout": result.stdout.text,
        "stderr": result.stderr.text,
        "value": _forms(result.value),
        "plain": result.plain,
        "displays": [_forms(one) for one in result.displays],
        "error": None if result.error is None else dataclasses.asdict(result.error),
        "exit_code": result.exit_code,
        "signal": result.signal,
        "usage": dataclasses.asdict(result.usage),
        "detail": result.detail,
    }
    try:
        json.dumps(facts, allow_nan=False)
    except (TypeError, ValueError):
        facts["plain"] = None  # a set, bytes or NaN: JSON has none
    return facts


def _forms(value: DisplayValue | None) -> dict[str, str] | None:
    if value is None:
        return None
    forms = {}
    for kind, data in value.data.items():
        try:
            forms[kind] = data.decode()
        except UnicodeDecodeError:
            forms[kind] = base64.b64encode(data).decode()
    return forms


def is_fault(error: AssayError) -> bool:
    """Whether a failure is ours, and no doing of the program or the user."""
    return isinstance(error, CallError) and error.code.name not in {
        "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "ABORTED"
    }  # fmt: skip


def _failed(error: AssayError) -> str:
    name = f"fault {error.reason}: " if isinstance(error, CallError) and is_fault(error) else ""
    return name + " ".join(str(error).split())


def _write(stream: TextIO, data: bytes) -> None:
    buffer: BinaryIO | None = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(data.decode("utf-8", "replace"))
    else:
        stream.flush()
        buffer.write(data)
    stream.flush()
