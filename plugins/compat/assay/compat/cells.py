"""What a session's cell did, in the shapes of Jupyter's messages. Pure.

A value's forms, and an exception's words, are the program's own claim.
"""

from __future__ import annotations

import base64
import codecs
import json
from functools import reduce
from typing import NamedTuple

from assay.api.session.v1 import session_pb2

Json = dict[str, object]

ENDS = {
    number: name.removeprefix("CELL_END_").lower().replace("_", "-")
    for name, number in session_pb2.CellEnd.items()
}
"""How a cell ended, kebab-case."""

LATE = frozenset({session_pb2.CELL_END_WALL_TIME_LIMIT, session_pb2.CELL_END_CPU_TIME_LIMIT})
"""Ends by a limit on time."""

_STREAMS = {
    session_pb2.OUTPUT_STREAM_STDOUT: "stdout",
    session_pb2.OUTPUT_STREAM_STDERR: "stderr",
}
_DEPTH = 64  # of what an answer and its writing put around a value
_TEXTS = frozenset({"image/svg+xml", "application/javascript", "application/xml"})


class CellFailure(NamedTuple):
    """An exception, as Jupyter's `error` has it: `ename`, `evalue` and `traceback`."""

    name: str
    message: str
    traceback: tuple[str, ...]

    @property
    def fields(self) -> Json:
        """The content of an `error`."""
        lines = list(self.traceback)
        return {"ename": self.name, "evalue": self.message, "traceback": lines}


class Decoders:
    """Text of the two streams, of which a character may lie across two pieces."""

    def __init__(self) -> None:
        make = codecs.getincrementaldecoder("utf-8")
        self._of = {name: make("replace") for name in _STREAMS.values()}

    def read(self, output: session_pb2.OutputChunk) -> tuple[str, str]:
        """The stream's name and the text of a piece."""
        name = _STREAMS[output.stream]
        return name, self._of[name].decode(output.data)


def bundle_of(value: session_pb2.DisplayValue) -> Json:
    """The forms of a value: texts as texts, JSON as JSON, the rest in base64."""
    return {mime: _form(mime, data) for mime, data in sorted(value.data.items())}


def _form(mime: str, data: bytes) -> object:
    if mime.startswith("text/") or mime in _TEXTS:
        return data.decode("utf-8", "replace")
    if mime == "application/json" or mime.endswith("+json"):
        try:
            found = json.loads(data)
            json.dumps(reduce(lambda inner, _: [inner], range(_DEPTH), found), allow_nan=False)
        except (ValueError, RecursionError):
            return data.decode("utf-8", "replace")
        return found
    return base64.b64encode(data).decode()


def text_of(value: session_pb2.DisplayValue) -> str:
    """Its plain text."""
    return value.data["text/plain"].decode("utf-8", "replace")


def raised_by(result: session_pb2.CellResult) -> CellFailure | None:
    """What a cell ended with instead of a value; None where it ran to its end.

    An end that is no exception gets the name that Python has for it, or that of the end.
    """
    error = result.error
    lines = tuple(error.traceback.splitlines(keepends=True))
    match result.end:
        case session_pb2.CELL_END_COMPLETED:
            return None
        case session_pb2.CELL_END_RAISED:
            return CellFailure(error.name, error.message, lines)
        case session_pb2.CELL_END_EXITED:
            name, message = "SystemExit", str(result.exit_code)
        case session_pb2.CELL_END_INTERRUPTED:
            name, message = "KeyboardInterrupt", error.message
        case session_pb2.CELL_END_WALL_TIME_LIMIT:
            name, message = "TimeoutError", "the cell ran into its time-out"
        case session_pb2.CELL_END_CPU_TIME_LIMIT:
            name, message = "TimeoutError", "the cell used up its CPU time"
        case end:
            name, message = "SessionEnded", result.detail or ENDS[end]
    said = f"{name}: {message}" if message else name
    return CellFailure(name, message, (*lines, f"{said}\n"))
