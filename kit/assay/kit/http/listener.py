"""uvicorn beside the gRPC server: the same event loop, TLS files, tokens and drain."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Generator, Sequence
from importlib.util import find_spec
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from assay.kit.access import Access, certified_tenant, check_door
from assay.kit.errors import StartupError
from assay.kit.http.config import HttpConfig
from assay.kit.http.middleware import CERTIFIED
from assay.kit.serving import Admission, address_of, check_port
from assay.kit.tls import LiveTls

_KEEP_ALIVE_S = 75
_LAST_BYTES_S = 2
_BACKLOG = 2048
_MOST_OF_A_MESSAGE = 2**24
_log = logging.getLogger(__name__)


class _Protocol(H11Protocol):
    """Gives the application the tenant of a connection's certificate, as state["certified"]."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        found = transport.get_extra_info("peercert") or {}
        self.app_state = {**self.app_state, CERTIFIED: certified_tenant(_facts(found))}


class _Uvicorn(uvicorn.Server):
    """Without uvicorn's signal handlers: the process has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class HttpListener:
    """Serves an ASGI application beside gRPC; an `assay.kit.serving.Beside`.

    `closers` are called when it has closed.

    Attributes:
        address: as "127.0.0.1:8080"; empty until it is open.
    """

    def __init__(
        self,
        make_app: Callable[[Admission], ASGIApp],
        config: HttpConfig,
        access: Access,
        closers: Sequence[Callable[[], None]] = (),
    ) -> None:
        self._closers = closers
        self._make_app = make_app
        self._config = config
        self._access = access
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.address = ""

    async def open(self, admission: Admission) -> None:
        """Binds and answers.

        Raises:
            StartupError: the port cannot be bound, or two faces claim a path.
            ConfigError: a network would be served without tokens.
        """
        host, port = self._config.bind, self._config.port or 0
        tls = admission.tls
        files = None if tls is None else tls.files
        await asyncio.to_thread(check_door, self._access, host, admission.door, files)
        await asyncio.to_thread(check_port, host, port)
        app = self._make_app(admission)
        listening = await asyncio.to_thread(listen, host, port)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        self._server = _Uvicorn(_settings(app, tls))
        if tls is not None and tls.files.client_ca_file is not None:
            tls.changed.append(self._renew)
        self._serving = asyncio.create_task(self._server.serve([listening]))
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
                raise StartupError("the HTTP server ended as it began: look at the log")
            await asyncio.sleep(0.005)
        self.address = address_of(host, listening.getsockname()[1])
        _log.info("HTTP on %s", self.address)

    def _renew(self) -> None:
        """Ends connections after the answer that they wait for: clients show certificates again."""
        if self._server is not None:
            for connection in list(self._server.server_state.connections):
                connection.shutdown()

    async def close(self) -> None:
        """Frees the port; running answers have two seconds."""
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving
            for close in self._closers:
                await asyncio.to_thread(close)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        StartupError: the port cannot be bound.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        # With the protocol named, unlike socket.create_server: else asyncio leaves Nagle's
        # algorithm on, and an answer of two writes waits 40 ms for the caller's acknowledgement.
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
        except OSError:
            listening.close()
            raise
        return listening
    except OSError as error:
        raise StartupError(
            f"cannot listen on {address_of(host, port)} for HTTP: {error.strerror}; "
            "choose another --http-port (0 takes a free one) or --http-bind"
        ) from error


def _facts(certificate: dict[str, Any]) -> dict[str, list[bytes]]:
    """A certificate of ssl, as gRPC's auth context has it."""
    names = [pair for one in certificate.get("subject", ()) for pair in one]
    return {
        "x509_common_name": [value.encode() for name, value in names if name == "commonName"],
        "x509_subject_alternative_name": [
            value.encode() for _, value in certificate.get("subjectAltName", ())
        ],
    }


def _settings(app: ASGIApp, tls: LiveTls | None) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="wsproto" if find_spec("wsproto") else "none",
        ws_max_size=_MOST_OF_A_MESSAGE,
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_LAST_BYTES_S,
    )
    if tls is not None:
        config.load()
        config.ssl = tls.context()
    return config
