"""E2B's message shapes: what a cell does as its lines of JSON, files, commands, Connect. Pure.

As `e2b` 2.63 and `e2b-code-interpreter` 2.11 read them.
"""

from __future__ import annotations

import base64
import json
import posixpath
import struct
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath

from assay.api.session.v1 import session_pb2
from assay.compat.cells import Decoders, Json, bundle_of, raised_by
from assay.compat.fields import BadField
from assay.kit.http.codec import write

HOME = "/home/user"
"""The working directory, in the peer's words."""
_ALSO_HOME = ("/box", "/mnt", "/sandbox/run/box")
ENVD = "0.5.2"
"""What of the peer's daemon is served: uploads are forms."""

_FORMS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
}
_LAST = 2  # the flag of a stream's last envelope
_HEAD = struct.Struct("!BI")


def cell_lines(
    event: session_pb2.ExecuteResponse, decoders: Decoders, count: int
) -> Iterator[bytes]:
    """The lines of `/execute` for an event of a cell; `count` is its number in the context."""
    match event.WhichOneof("event"):
        case "output":
            name, text = decoders.read(event.output)
            if text:
                yield _line(name, text=text, timestamp=time.time_ns())
        case "display":
            yield _line("result", **result_of(event.display), is_main_result=False)
        case "result":
            if event.result.HasField("value"):
                yield _line("result", **result_of(event.result.value), is_main_result=True)
            if (raised := raised_by(event.result)) is not None:
                traceback = "".join(raised.traceback)
                yield _line("error", name=raised.name, value=raised.message, traceback=traceback)
            yield _line("number_of_executions", execution_count=count)


def result_of(value: session_pb2.DisplayValue) -> Json:
    """A value's forms by the peer's names; the text of a string has no quotes, as there."""
    found: Json = {}
    extra: Json = {}
    for mime, form in bundle_of(value).items():
        (found if mime in _FORMS else extra)[_FORMS.get(mime, mime)] = form
    text = found.get("text")
    if isinstance(text, str) and len(text) > 1 and text[0] == text[-1] == "'":
        found["text"] = text[1:-1]
    return {**found, "extra": extra}


def _line(kind: str, **fields: object) -> bytes:
    return write({"type": kind, **fields}) + b"\n"


def relative(path: str) -> str:
    """A path in the working directory; "." is itself.

    Raises:
        BadField: it lies elsewhere.
    """
    plain = PurePosixPath(posixpath.normpath(posixpath.join(HOME, path)))
    for home in (HOME, *_ALSO_HOME):
        if plain.is_relative_to(home):
            return str(plain.relative_to(home))
    raise BadField(("path",), f"must be relative, or below {HOME}")


def absolute(path: str) -> str:
    """The peer's name of a path in the working directory."""
    return posixpath.normpath(posixpath.join(HOME, path))


def entry_of(path: str, kind: str = "file") -> Json:
    """A written file."""
    return {"name": posixpath.basename(path), "type": kind, "path": absolute(path)}


def uploads(body: bytes, content_type: str, path: str) -> dict[str, bytes]:
    """The files of an upload, a form or the bytes themselves, by path.

    Raises:
        BadField: it is neither, or no path is named.
    """
    kind, _, rest = content_type.partition(";")
    if kind.strip().lower() == "application/octet-stream":
        return {relative(path): body}
    boundary = rest.partition("boundary=")[2].split(";")[0].strip().strip('"')
    if kind.strip().lower() != "multipart/form-data" or not boundary:
        raise BadField(("content-type",), "must be multipart/form-data or octet-stream")
    parts = (b"\r\n" + body).split(f"\r\n--{boundary}".encode())[1:-1]
    found = {}
    for part in parts:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = path if len(parts) == 1 and path else _file_name(head)
        found[relative(name)] = content
    return found


def _file_name(head: bytes) -> str:
    text = head.decode("utf-8", "replace").partition('filename="')[2].partition('"')[0]
    if not text:
        raise BadField(("file",), "has no name")
    return text.replace("%22", '"')


def envelope(message: object, *, last: bool = False) -> bytes:
    """A message of a stream of Connect."""
    data = write(message)
    return _HEAD.pack(_LAST if last else 0, len(data)) + data


def opened(body: bytes) -> object:
    """The one message of a stream's request.

    Raises:
        BadField: it is none.
    """
    try:
        _, size = _HEAD.unpack_from(body)
        return json.loads(body[_HEAD.size : _HEAD.size + size])
    except (struct.error, ValueError, RecursionError):
        raise BadField((), "must be an envelope of Connect with JSON") from None


def piece(stream: str, data: bytes) -> Json:
    """Output of a command."""
    return {stream: base64.b64encode(data).decode()}


def moment(seconds: float) -> str:
    """Seconds of the epoch, as the API writes a time."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
