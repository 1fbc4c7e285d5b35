"""Jupyter's kernels: /api/kernels and their channels, over sessions.

What `jupyter_kernel_client` and the like ask of a Jupyter Server or a kernel gateway: kernels, not
contents, terminals or sessions of notebooks. Not served: `input()`, comms, completion and
inspection (empty replies), the subprotocol v1. A kernel that we lost says so by an error with the
reason, and is dead.
"""

from __future__ import annotations

import asyncio
import contextlib

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from assay.compat.cells import Json
from assay.compat.fields import BadField, Fields
from assay.compat.jupyter import wire
from assay.compat.jupyter.kernels import Kernel, Kernels, Outbox, Send
from assay.compat.sandbox import Endpoint
from assay.compat.sessions import LocalSessions
from assay.kit.http import operations as op
from assay.kit.http.codec import JSON, malformed, parse_json, write
from assay.kit.http.faces import Face, FaceRoute
from assay.sandbox.http import SandboxFront

_TRY_AGAIN = 1013  # of RFC 6455's codes


def routes(front: SandboxFront) -> list[FaceRoute]:
    """The routes of the format."""
    kernels = Kernels(LocalSessions(front))

    async def here(request: Request) -> Kernel:
        return await kernels.find(request.path_params["kernel"])

    async def about(_: Request) -> Response:
        return _json({"version": "2.0.0"})

    async def specs(_: Request) -> Response:
        return _json(wire.specs())

    async def listed(_: Request) -> Response:
        return _json([kernel.model for kernel in kernels.mine()])

    async def start(request: Request) -> Response:
        body = await request.body()
        fields = Fields(parse_json(body) if body else {})
        name = fields.text("name") if fields.has("name") else "python3"
        return _json((await kernels.start(name)).model, 201)

    async def one(request: Request) -> Response:
        return _json((await here(request)).model)

    async def end(request: Request) -> Response:
        await kernels.end(await here(request))
        return Response(status_code=204)

    async def interrupt(request: Request) -> Response:
        kernels.interrupt(await here(request))
        return Response(status_code=204)

    async def restart(request: Request) -> Response:
        kernel = await here(request)
        await kernels.restart(kernel)
        return _json(kernel.model)

    async def channels(socket: WebSocket) -> None:
        await _converse(kernels, await kernels.find(socket.path_params["kernel"]), socket)

    return [
        Route("/api", about),
        Route("/api/kernelspecs", specs),
        Route("/api/kernels", listed, methods=["GET"]),
        Route("/api/kernels", _reading(start), methods=["POST"]),
        Route("/api/kernels/{kernel}", one, methods=["GET"]),
        Route("/api/kernels/{kernel}", end, methods=["DELETE"]),
        Route("/api/kernels/{kernel}/interrupt", interrupt, methods=["POST"]),
        Route("/api/kernels/{kernel}/restart", restart, methods=["POST"]),
        WebSocketRoute("/api/kernels/{kernel}/channels", channels),
    ]


async def _converse(kernels: Kernels, kernel: Kernel, socket: WebSocket) -> None:
    """Hands messages to and fro until the caller goes; its cells go on."""
    await socket.accept()
    line = Outbox()
    kernel.listeners.append(line.tell)
    beside = [
        asyncio.create_task(kernels.keep(kernel)),
        asyncio.create_task(_send(socket, line)),
    ]
    try:
        while True:
            await _answer(kernels, kernel, await _next(socket), line.tell)
    except WebSocketDisconnect:
        return
    finally:
        kernel.listeners.remove(line.tell)
        for task in beside:
            task.cancel()


async def _send(socket: WebSocket, line: Outbox) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while not line.broken:
            await socket.send_text(await line.next())
        await socket.close(_TRY_AGAIN)


async def _next(socket: WebSocket) -> wire.KernelMessage:
    """The next message of the caller.

    Raises:
        CallError: it is none.
    """
    received = await socket.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received.get("code", 1000))
    try:
        return wire.read_message(received.get("text") or "")
    except BadField as error:
        raise malformed(str(error)) from error


async def _answer(
    kernels: Kernels, kernel: Kernel, asked: wire.KernelMessage, answer: Send
) -> None:
    """Does what a message asks; what we do not know has no reply, as in the protocol."""

    def reply(kind: str, content: Json) -> None:
        answer(wire.message(asked.channel, kind, content, asked.header, kernel.id))

    match asked.kind:
        case "execute_request":
            kernels.run(kernel, asked, answer)
            return
        case "kernel_info_request":
            kernel.publish("status", {"execution_state": "busy"}, asked.header)
            reply("kernel_info_reply", wire.kernel_info(kernel.name))
            kernel.publish("status", {"execution_state": "idle"}, asked.header)
        case "interrupt_request":
            kernels.interrupt(kernel)
            reply("interrupt_reply", {"status": "ok"})
        case "shutdown_request":
            again = asked.content.get("restart") is True
            await (kernels.restart(kernel) if again else kernels.end(kernel))
            reply("shutdown_reply", {"status": "ok", "restart": again})
        case kind:
            content = wire.empty_reply(asked)
            if content is not None:
                reply(kind.replace("_request", "_reply"), content)


def _reading(endpoint: Endpoint) -> Endpoint:
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except BadField as error:
            raise malformed(str(error)) from error

    return answered


def _json(body: object, status: int = 200) -> Response:
    return Response(write(body), status, media_type=JSON)


_SERVED = (
    ("/api", "get", "The version of the API."),
    ("/api/kernelspecs", "get", "The kernels that there are."),
    ("/api/kernels", "get", "Lists the caller's kernels."),
    ("/api/kernels", "post", "Starts a kernel."),
    ("/api/kernels/{kernel}", "get", "Describes a kernel."),
    ("/api/kernels/{kernel}", "delete", "Ends a kernel."),
    ("/api/kernels/{kernel}/interrupt", "post", "Interrupts the cell that runs."),
    ("/api/kernels/{kernel}/restart", "post", "Begins a kernel anew; its files stay."),
    ("/api/kernels/{kernel}/channels", "get", "A WebSocket with the messages of the kernel."),
)

FACE = Face("Jupyter", routes, op.foreign_paths("Jupyter", _SERVED))
