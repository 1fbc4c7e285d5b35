"""E2B's daemon in a sandbox: /health, /files, and the parts of its Connect services that we serve.

Commands and what changes files run as cells of the default Python context, in its turn. Not served:
what outlives its call or talks to a running command (background commands' kill, stdin, terminals),
and watching folders.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2
from assay.compat.cells import ENDS, Json
from assay.compat.e2b import code, wire
from assay.compat.e2b.boxes import PYTHON, Context, E2bSandboxes
from assay.compat.fields import BadField, Fields
from assay.kit.errors import CallError
from assay.kit.http.codec import JSON, read_json, write
from assay.kit.http.config import MAX_TIMEOUT_S
from assay.kit.http.problems import http_status
from assay.kit.http.streams import Stream
from assay.kit.reasons import Reason

Endpoint = Callable[[Request], Awaitable[Response]]

BOX_HEADER = "e2b-sandbox-id"
CALL_S = 60.0
GONE = frozenset({Reason.SESSION_NOT_FOUND, Reason.LEASE_EXPIRED})
"""The sandbox is not there any more, which is no fault of ours."""

_STATUSES: dict[str, int] = {
    **dict.fromkeys(GONE, 502),
    Reason.SESSION_ENDED: 410,
    Reason.NO_SESSIONS: 501,
}
_STREAM = "application/connect+json"
_CODES = {400: "invalid_argument", 401: "unauthenticated", 404: "not_found", 409: "aborted",
          429: "resource_exhausted", 501: "unimplemented", 502: "unavailable",
          503: "unavailable", 504: "deadline_exceeded"}  # fmt: skip
_CHANGES = {
    "Stat": code.STAT,
    "ListDir": code.LIST,
    "MakeDir": code.MAKE,
    "Move": code.MOVE,
    "Remove": code.REMOVE,
}
_PATH_ERRORS = {
    "FileNotFoundError": "not_found",
    "NotADirectoryError": "not_found",
    "ZeroDivisionError": "not_found",
    "FileExistsError": "already_exists",
}


def soon(seconds: float = CALL_S) -> float:
    """A deadline, by the clock of the loop."""
    return asyncio.get_running_loop().time() + seconds


def routes(boxes: E2bSandboxes) -> list[Route]:
    """The daemon's routes."""
    return [*_plain(boxes), *_connect(boxes)]


async def _here(boxes: E2bSandboxes, request: Request) -> Context:
    """The default Python context of the sandbox that the call is for."""
    box = await boxes.touch(request.headers.get(BOX_HEADER, ""), soon())
    return box.defaults[PYTHON]


def _plain(boxes: E2bSandboxes) -> list[Route]:
    async def health(request: Request) -> Response:
        await _here(boxes, request)
        return Response(status_code=204)

    async def download(request: Request) -> Response:
        path = wire.relative(request.query_params.get("path", ""))
        context = await _here(boxes, request)
        async with context.turn:
            found = await boxes.sessions.get(context.session_id, [path], soon())
        if not found:
            raise _PathError(f"{path} does not exist")
        return Response(found[0].content, media_type="application/octet-stream")

    async def upload(request: Request) -> Response:
        kind = request.headers.get("content-type", "")
        files = wire.uploads(await request.body(), kind, request.query_params.get("path", ""))
        context = await _here(boxes, request)
        sent = session_pb2.PutFilesRequest(
            session_id=context.session_id,
            files=[
                execution_pb2.SourceFile(path=name, content=data) for name, data in files.items()
            ],
        )
        async with context.turn:
            await boxes.sessions.put(sent, soon())
        return answer([wire.entry_of(name) for name in files])

    return [
        Route("/health", in_words_of_daemon(health)),
        Route("/files", in_words_of_daemon(download), methods=["GET"]),
        Route("/files", in_words_of_daemon(upload), methods=["POST"]),
    ]


def _connect(boxes: E2bSandboxes) -> list[Route]:
    async def files(request: Request) -> Response:
        method = request.path_params["method"]
        if method not in _CHANGES:
            return _connect_error(501, f"{method[:40]} is not served")
        body = Fields(await read_json(request))
        depth = max(1, int(body.number("depth", 1)))
        script = code.call(_CHANGES[method], depth, **_paths(body))
        context = await _here(boxes, request)
        async with context.turn:
            cell = await boxes.sessions.run(context.session_id, script, soon())
        return answer(_found(cell.result))

    async def process(request: Request) -> Response:
        if request.path_params["method"] != "Start":
            return _connect_error(501, "only Start is served")
        wanted = Fields(wire.opened(await request.body())).inner("process")
        script = _command(wanted)
        context = await _here(boxes, request)
        return Stream(_events(boxes, context, script), _STREAM)

    return [
        Route("/filesystem.Filesystem/{method}", _connected(files), methods=["POST"]),
        Route("/process.Process/{method}", _connected(process), methods=["POST"]),
    ]


def _paths(body: Fields) -> dict[str, str]:
    """The paths that a change of files is about."""
    if body.has("source"):
        return {"path": _path(body, "source"), "target": _path(body, "destination")}
    return {"path": _path(body, "path")}


def _found(result: session_pb2.CellResult) -> Json:
    """What a change of files answers, with the peer's paths."""
    if result.end != session_pb2.CELL_END_COMPLETED:
        words = f"{result.error.name}: {result.error.message}"
        if result.error.name in _PATH_ERRORS:
            raise _PathError(words, _PATH_ERRORS[result.error.name])
        raise BadField(("path",), words if result.error.name else ENDS[result.end])
    found = json.loads(result.plain_value.string_value)
    if not isinstance(found, dict):
        raise BadField((), "the interpreter answers with something else")
    entries = found.get("entries")
    for entry in [found.get("entry"), *(entries if isinstance(entries, list) else [])]:
        if isinstance(entry, dict):
            entry["path"] = wire.absolute(str(entry.get("path")))
            entry["name"] = entry["path"].rpartition("/")[2]
    return found


def _command(wanted: Fields) -> str:
    """The cell of a command."""
    folder = _path(wanted, "cwd") if wanted.has("cwd") else "."
    variables = wanted.inner("envs", {})
    environment = {name: variables.text(name) for name in variables.names()}
    return code.command([wanted.text("cmd"), *wanted.texts("args")], folder, environment)


async def _events(
    boxes: E2bSandboxes, context: Context, script: str
) -> AsyncGenerator[bytes, None]:
    """The events of a command; where it could not be run, the stream ends with an error."""
    yield wire.envelope({"event": {"start": {"pid": 1}}})
    try:
        running = boxes.sessions.events(context.session_id, script, soon(MAX_TIMEOUT_S))
        async with context.turn, aclosing(running) as events:
            async for event in events:
                match event.WhichOneof("event"):
                    case "output":
                        yield wire.envelope({"event": {"data": _written(event.output)}})
                    case "result":
                        yield wire.envelope({"event": {"end": _ended(event.result)}})
    except CallError as error:
        said = {"code": _CODES.get(_status(error), "internal"), "message": _said(error)}
        yield wire.envelope({"error": said}, last=True)
        return
    yield wire.envelope({}, last=True)


def _written(output: session_pb2.OutputChunk) -> Json:
    error = output.stream == session_pb2.OUTPUT_STREAM_STDERR
    return wire.piece("stderr" if error else "stdout", output.data)


def _ended(result: session_pb2.CellResult) -> Json:
    """How a command ended; what killed it with its interpreter is an error of its own."""
    if result.end == session_pb2.CELL_END_COMPLETED:
        status = result.plain_value.int_value
        if status >= 0:
            return {"exitCode": status, "exited": True, "status": f"exit status {status}"}
        return {"exitCode": 128 - status, "exited": False, "status": f"signal {-status}"}
    words = ENDS[result.end]
    if result.HasField("error"):
        words = f"{result.error.name}: {result.error.message}"
    return {"exitCode": 1, "exited": False, "status": words, "error": words}


class _PathError(Exception):
    """A path is not as it must be.

    Attributes:
        code: Connect's word for it.
    """

    def __init__(self, text: str, code: str = "not_found") -> None:
        super().__init__(text)
        self.code = code


def _path(fields: Fields, name: str) -> str:
    return wire.relative(fields.text(name))


def in_words_of_daemon(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with failures as the daemon's, and its proxy's, bodies have them."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except _PathError as error:
            return failure(404, str(error))
        except BadField as error:
            return failure(400, str(error))
        except CallError as error:
            return failure(_status(error), _said(error))

    return answered


def _connected(endpoint: Endpoint) -> Endpoint:
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except _PathError as error:
            return answer({"code": error.code, "message": str(error)}, 404)
        except (BadField, ValueError) as error:
            return _connect_error(400, str(error))
        except CallError as error:
            return _connect_error(_status(error), _said(error))

    return answered


def _status(error: CallError) -> int:
    """A status in the words of the proxy before the daemon; 410 where the program ended it."""
    return _STATUSES.get(error.reason) or http_status(error)


def _said(error: CallError) -> str:
    gone = "The sandbox was not found: " if error.reason in GONE else ""
    return f"{gone}{error.reason}: {error}"


def failure(status: int, message: str) -> Response:
    """A failure, as the peer's services have it."""
    return answer({"code": status, "message": message}, status)


def _connect_error(status: int, message: str) -> Response:
    return answer({"code": _CODES.get(status, "internal"), "message": message}, status)


def answer(body: object, status: int = 200) -> Response:
    """JSON."""
    return Response(write(body), status, media_type=JSON)
