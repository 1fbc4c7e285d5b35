"""E2B: its API of sandboxes, its code interpreter and its daemon, over sessions.

The real `e2b_code_interpreter` is pointed here by E2B_API_URL and E2B_SANDBOX_URL, both this
server's address. A template is a name and no more; a sandbox is alive until its time-out has passed
without a call. What we lost is a 500, or a stream that breaks off, never an empty result; what the
program ended is a 410.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assay.compat.cells import Decoders, Json
from assay.compat.e2b import code, envd, wire
from assay.compat.e2b.boxes import (
    PYTHON,
    Context,
    E2bSandbox,
    E2bSandboxes,
    cell_s,
    context_of,
    new_id,
    text_map,
    usual_limits,
)
from assay.compat.e2b.envd import BOX_HEADER, CALL_S, Endpoint, answer, failure, soon
from assay.compat.fields import BadField, Fields
from assay.compat.programs import MIB
from assay.compat.sessions import LocalSessions
from assay.kit.calls import tenant_var
from assay.kit.errors import CallError
from assay.kit.http import operations as op
from assay.kit.http.codec import read_json
from assay.kit.http.config import MAX_TIMEOUT_S
from assay.kit.http.faces import Face
from assay.kit.http.front import OFFERED
from assay.kit.http.problems import http_status
from assay.kit.http.streams import Stream
from assay.kit.reasons import Reason
from assay.sandbox.http import SandboxFront

LEASE_S = 300.0
"""A sandbox's time-out where its caller says none."""

_STATUSES: dict[str, int] = {
    **dict.fromkeys(envd.GONE, 404),
    Reason.CANNOT_FORK: 409,
    Reason.NO_SESSIONS: 501,
}
_LINES = "application/x-ndjson"


def routes(front: SandboxFront) -> list[Route]:
    """The routes of the format."""
    boxes = E2bSandboxes(LocalSessions(front))
    return [*_api(boxes), *_interpreter(boxes), *envd.routes(boxes)]


def _api(boxes: E2bSandboxes) -> list[Route]:
    async def create(request: Request) -> Response:
        body = Fields(await read_json(request))
        most = await boxes.sessions.max_limits(soon())
        box = E2bSandbox(
            new_id(),
            tenant_var.get(),
            body.text("templateID", "base"),
            _texts(body, "metadata"),
            _texts(body, "envVars"),
            body.positive("timeout", LEASE_S),
            usual_limits(most),
        )
        return answer(_sandbox(await boxes.create(box, soon()), request), 201)

    async def listed(request: Request) -> Response:
        del request
        return answer([_detail(box) for box in boxes.mine()])

    async def one(request: Request) -> Response:
        return answer(_detail(await boxes.touch(request.path_params["box"], soon())))

    async def kill(request: Request) -> Response:
        await boxes.kill(request.path_params["box"])
        return Response(status_code=204)

    async def set_timeout(request: Request) -> Response:
        seconds = Fields(await read_json(request)).positive("timeout")
        await boxes.touch(request.path_params["box"], soon(), lease_s=seconds)
        return Response(status_code=204)

    async def connect(request: Request) -> Response:
        body = Fields(await read_json(request))
        box = await boxes.touch(request.path_params["box"], soon())
        if body.seconds("timeout", box.lease_s) > box.lease_s:
            await boxes.touch(box.id, soon(), lease_s=body.positive("timeout"))
        return answer(_sandbox(box, request))

    async def fork(request: Request) -> Response:
        body = Fields(await read_json(request))
        box = await boxes.touch(request.path_params["box"], soon())
        count = int(body.positive("count", 1))
        copies = await boxes.fork(box, count, body.seconds("timeout", LEASE_S), soon())
        return answer([{"sandbox": _sandbox(copy, request)} for copy in copies], 201)

    calls: list[tuple[str, Endpoint, str]] = [
        ("/sandboxes", create, "POST"),
        ("/v2/sandboxes", create, "POST"),
        ("/sandboxes", listed, "GET"),
        ("/v2/sandboxes", listed, "GET"),
        ("/sandboxes/{box}", one, "GET"),
        ("/sandboxes/{box}", kill, "DELETE"),
        ("/sandboxes/{box}/timeout", set_timeout, "POST"),
        ("/sandboxes/{box}/connect", connect, "POST"),
        ("/v2/sandboxes/{box}/connect", connect, "POST"),
        ("/sandboxes/{box}/fork", fork, "POST"),
    ]
    return [Route(path, _managed(call), methods=[method]) for path, call, method in calls]


def _interpreter(boxes: E2bSandboxes) -> list[Route]:
    async def here(request: Request) -> E2bSandbox:
        return await boxes.touch(request.headers.get(BOX_HEADER, ""), soon())

    async def execute(request: Request) -> Response:
        body = Fields(await read_json(request))
        text = body.text("code")
        variables = _texts(body, "env_vars")
        box = await here(request)
        if body.has("context_id"):
            context = context_of(box, body.text("context_id"))
        else:
            language = body.text("language") if body.has("language") else PYTHON
            context = await boxes.default(box, language.lower(), soon())
        lines = _cell(boxes, box, context, text, variables)
        # Before its first line nothing has been said: what fails then has a status of its own.
        return Stream(_after(await anext(lines), lines), _LINES)

    async def create(request: Request) -> Response:
        body = Fields(await read_json(request))
        language = body.text("language").lower() if body.has("language") else PYTHON
        folder = wire.relative(body.text("cwd")) if body.has("cwd") else ""
        box = await here(request)
        return answer(_context(await boxes.open(box, language, folder.strip("."), soon())), 201)

    async def listed(request: Request) -> Response:
        return answer([_context(context) for context in (await here(request)).contexts.values()])

    async def remove(request: Request) -> Response:
        await boxes.remove(await here(request), request.path_params["context"])
        return Response(status_code=204)

    async def restart(request: Request) -> Response:
        box = await here(request)
        context = context_of(box, request.path_params["context"])
        await boxes.restart(box, context, soon())
        return answer(_context(context))

    calls: list[tuple[str, Endpoint, str]] = [
        ("/execute", execute, "POST"),
        ("/contexts", create, "POST"),
        ("/contexts", listed, "GET"),
        ("/contexts/{context}", remove, "DELETE"),
        ("/contexts/{context}/restart", restart, "POST"),
    ]
    return [
        Route(path, envd.in_words_of_daemon(call), methods=[method]) for path, call, method in calls
    ]


async def _cell(
    boxes: E2bSandboxes, box: E2bSandbox, context: Context, text: str, variables: dict[str, str]
) -> AsyncGenerator[bytes, None]:
    """The lines of a cell; one at a time in a context."""
    decoders = Decoders()
    async with context.turn:
        await _set(boxes, context, dict(variables))
        context.runs += 1
        due_s = soon(min(MAX_TIMEOUT_S, cell_s(box) + CALL_S))
        over = False
        async with aclosing(boxes.sessions.events(context.session_id, text, due_s)) as events:
            async for event in events:
                over = over or event.result.session_over
                for line in wire.cell_lines(event, decoders, context.runs):
                    yield line
        if not over:
            await _set(boxes, context, {name: box.environment.get(name) for name in variables})


async def _set(boxes: E2bSandboxes, context: Context, variables: dict[str, str | None]) -> None:
    if variables:
        script = code.set_environment(variables, context.language)
        await boxes.sessions.run(context.session_id, script, soon())


async def _after(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest):
        yield first
        async for line in rest:
            yield line


def _managed(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with failures in the words of the API of sandboxes."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except BadField as error:
            return failure(400, str(error))
        except CallError as error:
            status = _STATUSES.get(error.reason) or http_status(error)
            return failure(status, f"{error.reason}: {error}")

    return answered


def _texts(body: Fields, name: str) -> dict[str, str]:
    """A map of texts; empty where it is absent or null."""
    if not body.has(name):
        return {}
    inner = body.inner(name)
    return text_map({key: inner.text(key) for key in inner.names()})


def _sandbox(box: E2bSandbox, request: Request) -> Json:
    """A sandbox, as the API hands it over; its tokens are that of the call."""
    offered = str(request.scope["state"].get(OFFERED) or "").removeprefix("Bearer ")
    tokens = {"envdAccessToken": offered, "trafficAccessToken": offered} if offered else {}
    return {
        "templateID": box.template,
        "sandboxID": box.id,
        "clientID": "assay",
        "envdVersion": wire.ENVD,
        "domain": None,
        **tokens,
    }


def _detail(box: E2bSandbox) -> Json:
    return {
        "templateID": box.template,
        "sandboxID": box.id,
        "clientID": "assay",
        "envdVersion": wire.ENVD,
        "startedAt": wire.moment(box.started_s),
        "endAt": wire.moment(time.time() + box.left_s),
        "cpuCount": 1,
        "memoryMB": box.limits.memory_bytes // MIB,
        "diskSizeMB": box.limits.disk_bytes // MIB,
        "metadata": box.metadata,
        "state": "running",
    }


def _context(context: Context) -> Json:
    folder = wire.absolute(context.folder or ".")
    return {"id": context.id, "language": context.language, "cwd": folder}


_SERVED = (
    ("/sandboxes", "post", "Opens a sandbox."),
    ("/sandboxes", "get", "Lists the caller's sandboxes."),
    ("/v2/sandboxes", "post", "Opens a sandbox."),
    ("/v2/sandboxes", "get", "Lists the caller's sandboxes."),
    ("/sandboxes/{box}", "get", "Describes a sandbox."),
    ("/sandboxes/{box}", "delete", "Ends a sandbox."),
    ("/sandboxes/{box}/timeout", "post", "Sets how long a sandbox lives without a call."),
    ("/sandboxes/{box}/connect", "post", "Finds a sandbox again."),
    ("/v2/sandboxes/{box}/connect", "post", "Finds a sandbox again."),
    ("/sandboxes/{box}/fork", "post", "Copies a sandbox, its default interpreter with its state."),
    ("/execute", "post", "Runs code in a context of the sandbox that the header names."),
    ("/contexts", "post", "Opens a context."),
    ("/contexts", "get", "Lists the contexts."),
    ("/contexts/{context}", "delete", "Ends a context."),
    ("/contexts/{context}/restart", "post", "Begins a context anew; its files stay."),
    ("/health", "get", "Whether the sandbox is there."),
    ("/files", "get", "Reads a file."),
    ("/files", "post", "Writes files."),
    ("/filesystem.Filesystem/{method}", "post", "Looks at or changes files, by Connect."),
    ("/process.Process/{method}", "post", "Runs a command, by Connect."),
)

FACE = Face("E2B", routes, op.foreign_paths("E2B", _SERVED))
