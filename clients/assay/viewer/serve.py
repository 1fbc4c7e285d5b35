"""The viewer on its own: who may ask, and its server, for `assay view`.

Covered: on loopback it answers to 127.0.0.1 and localhost alone, so that no site reaches it by a
name that it points here; a page of another site is refused by Origin and by Sec-Fetch-Site;
elsewhere it asks every request for the operator's token, as the password of Basic or as a bearer
token.

Not covered: other users of this machine, who reach loopback too; a network that listens, where no
certificate is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from assay.kit.access import is_loopback
from assay.kit.errors import CallError, ConfigError, StartupError
from assay.kit.http.listener import listen
from assay.kit.http.middleware import offered_token
from assay.kit.tokens import Doorman
from assay.viewer.app import Pages, problem

PORT = 8050
_METHODS = ("GET", "HEAD", "POST")
_MOST_AT_ONCE = 256
_LAST_BYTES_S = 1
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="assay", charset="UTF-8"'}


class Guard:
    """The viewer's application: checks a request, then has it answered until its caller goes.

    Args:
        pages: answer.
        names: hosts by which it may be asked for, with their ports; empty for any.
        door: knows the operator's token; one without a token asks for none.
    """

    def __init__(self, pages: Pages, names: frozenset[str], door: Doorman) -> None:
        self._pages = pages
        self._names = names
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            raise ValueError(f"there is nothing here that speaks {scope['type']}")
        answering = asyncio.create_task(self._answer(scope, receive, send))
        if scope["method"] == "POST":  # its body is read by the answer
            await answering
            return
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            answering.cancel() if not answering.done() else None
        with contextlib.suppress(asyncio.CancelledError, CallError):
            await answering

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        refused = self._refusal(request.headers, scope)
        below = scope["path"].removeprefix("/")
        if refused is None and below == "logout":  # a browser forgets a password that is refused
            refused = problem(401, "you are out", _CHALLENGE)
        response = refused or await self._pages.answer(request, below)
        await response(scope, receive, _headless(send) if scope["method"] == "HEAD" else send)

    def _refusal(self, headers: Headers, scope: Scope) -> Any:
        host, origin = headers.get("host", ""), headers.get("origin")
        if scope["method"] not in _METHODS:
            return problem(405, "the viewer is read, and takes notes")
        if self._names and host.lower() not in self._names:
            return problem(403, "ask for 127.0.0.1 or localhost: another name may be a site's")
        if origin is not None and _place(origin) != host.lower():
            return problem(403, "pages of other sites may not call the viewer")
        foreign = headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
        if foreign and headers.get("sec-fetch-mode") != "navigate":
            return problem(403, "pages of other sites may not call the viewer")
        if self._door.asks and not self._door.is_operator(offered_token(headers)):
            return problem(401, "the operator's token is asked for, as password", _CHALLENGE)
        return None


class ViewerServer:
    """Serves the viewer.

    Args:
        bind, port: where; None for 8050, or any free one where that is taken.
        token: of the operator; needed where `bind` is no loopback.
        certificate, key: files of TLS; None for plain HTTP.

    Attributes:
        address: its URL.

    Raises:
        ConfigError: the port cannot be bound, or a network would be served without a token.
    """

    def __init__(
        self,
        pages: Pages,
        bind: str = "127.0.0.1",
        port: int | None = None,
        *,
        token: str | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        local = is_loopback(bind)
        if not local and token is None:
            raise ConfigError(
                f"--bind {bind} is not loopback, and everybody in reach could read: give "
                "--token-file, whose token the browser then asks for"
            )
        if (certificate is None) != (key is None):
            raise ConfigError("--tls-cert and --tls-key go together")
        self._pages = pages
        self._socket = _bound(bind, port)
        number = self._socket.getsockname()[1]
        scheme = "http" if certificate is None else "https"
        shown = f"[{bind}]" if ":" in bind else bind
        self.address = f"{scheme}://{shown}:{number}/"
        hosts = ("127.0.0.1", "localhost", "[::1]", shown) if local else ()
        ports = (f":{number}", *([""] if number in (80, 443) else []))
        names = frozenset(f"{host}{port}".lower() for host in hosts for port in ports)
        self._server = uvicorn.Server(
            uvicorn.Config(
                Guard(pages, names, Doorman(None if local else token)),
                http="h11",
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=_MOST_AT_ONCE,
                timeout_graceful_shutdown=_LAST_BYTES_S,
                ssl_certfile=certificate,
                ssl_keyfile=key,
            )
        )
        # what a caller breaks off is no defect of ours
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

    def run(self) -> None:
        """Serves until `stop`, or until the process is interrupted."""
        try:
            self._server.run([self._socket])
        finally:
            self._pages.close()
            self._socket.close()

    def stop(self) -> None:
        """Ends `run`, from any thread."""
        self._server.should_exit = True

    @property
    def stopping(self) -> bool:
        """Whether `stop` was asked for: streams end."""
        return bool(self._server.should_exit)


def _bound(bind: str, port: int | None) -> socket.socket:
    try:
        return listen(bind, PORT if port is None else port)
    except StartupError as error:
        if port is None:
            return listen(bind, 0)
        raise ConfigError(
            f"--port {port} of {bind} cannot be used; choose another, or 0"
        ) from error


def _place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _headless(send: Send) -> Send:
    async def without(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return without
