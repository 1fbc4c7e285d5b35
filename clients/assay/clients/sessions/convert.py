"""Conversion of `assay.clients.sessions.types` to and from session.proto. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2
from assay.clients.core.messages import Shape
from assay.clients.execution.types import Output
from assay.clients.sessions import types
from assay.kit.errors import ConfigError, refuse
from assay.kit.plain import from_plain
from assay.kit.reasons import Reason

_LIMITS = Shape(types.SessionLimits, session_pb2.SessionLimits, unset_is_none=True)
_OUTPUT = Shape(Output, execution_pb2.CapturedOutput)
_ERROR = Shape(types.CellError, session_pb2.CellError)
_USAGE = Shape(types.CellUsage, session_pb2.CellUsage)
_FILE = Shape(types.SessionFile, session_pb2.SessionFile)
_INFO = Shape(
    types.SessionsInfo,
    session_pb2.DescribeSessionsResponse,
    names={"version": "server_version"},
    within={"default_limits": _LIMITS, "max_limits": _LIMITS},
    elsewhere=frozenset({"python_packages"}),
)
_ENDS = {
    number: types.CellEnd(name.removeprefix("CELL_END_").lower().replace("_", "-"))
    for name, number in session_pb2.CellEnd.items()
    if number
}
_STREAMS = {
    session_pb2.OUTPUT_STREAM_STDOUT: "stdout",
    session_pb2.OUTPUT_STREAM_STDERR: "stderr",
}


def limits_to_proto(limits: types.SessionLimits) -> session_pb2.SessionLimits:
    """Writes limits; None stays unset.

    Raises:
        ConfigError: a limit is 0 or less, or beyond the range of the wire.
    """
    for one in dataclasses.fields(limits):
        value = getattr(limits, one.name)
        if value is not None and not 0 < value < 2**53:
            raise ConfigError(f"SessionLimits.{one.name} is {value}; pass a positive number")
    message: session_pb2.SessionLimits = _LIMITS.write(limits)
    return message


def limits_from_proto(message: session_pb2.SessionLimits) -> types.SessionLimits:
    """Reads limits."""
    return _LIMITS.read(message)


def files_to_proto(files: Mapping[str, bytes | str]) -> Iterable[execution_pb2.SourceFile]:
    """Writes files; texts as UTF-8."""
    for path, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        yield execution_pb2.SourceFile(path=path, content=data)


def files_from_proto(message: session_pb2.GetFilesResponse) -> types.SessionFiles:
    """Reads a listing."""
    return types.SessionFiles(tuple(map(_FILE.read, message.files)), message.truncated)


def info_from_proto(message: session_pb2.DescribeSessionsResponse) -> types.SessionsInfo:
    """Reads a description."""
    return _INFO.read(message, python_packages=dict(message.python_packages))


def display_from_proto(message: session_pb2.DisplayValue) -> types.DisplayValue:
    """Reads a value's forms."""
    return types.DisplayValue(dict(message.data))


def piece_from_proto(message: session_pb2.OutputChunk) -> types.OutputPiece:
    """Reads a piece of output."""
    return types.OutputPiece(_STREAMS.get(message.stream, "stdout"), message.data)


def result_from_proto(
    message: session_pb2.CellResult, displays: Iterable[types.DisplayValue] = ()
) -> types.CellResult:
    """Reads a cell's result.

    Raises:
        ServerError: MISSING_RESULT: it ended in a way that this client does not know.
    """
    end = _ENDS.get(message.end)
    if end is None:
        raise refuse(
            Reason.MISSING_RESULT,
            f"the server sent {message.end} as the end of a cell, which this client does not know",
        )
    return types.CellResult(
        end=end,
        session_over=message.session_over,
        stdout=_OUTPUT.read(message.stdout),
        stderr=_OUTPUT.read(message.stderr),
        value=display_from_proto(message.value) if message.HasField("value") else None,
        plain=_plain(message),
        displays=tuple(displays),
        error=_ERROR.read(message.error) if message.HasField("error") else None,
        exit_code=message.exit_code,
        signal=message.signal,
        usage=_USAGE.read(message.usage),
        number=message.number,
        detail=message.detail,
    )


def _plain(message: session_pb2.CellResult) -> object:
    if not message.HasField("plain_value"):
        return None
    try:
        return from_plain(message.plain_value)
    except ValueError:
        return None  # the program's own claim, which holds nothing
