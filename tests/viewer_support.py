"""A viewer on a free port, and requests to it as a browser or an attacker sends them."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from assay.viewer.app import Pages
from assay.viewer.serve import ViewerServer


@contextmanager
def serving(api: Any, **settings: Any) -> Iterator[tuple[ViewerServer, int]]:
    """The server in a thread, and its port."""
    ends: list[ViewerServer] = []
    pages = Pages(api, lambda: any(server.stopping for server in ends))
    server = ViewerServer(pages, port=0, **settings)
    ends.append(server)
    port = int(server.address.rstrip("/").rpartition(":")[2])
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server, port
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


def ask(
    port: int, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    """Status, body and headers of one request; `_` in a header's name is "-"."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in named, skip_accept_encoding=True)
        for name, value in named.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        with connection.getresponse() as answer:
            return answer.status, answer.read(), answer.headers
    finally:
        connection.close()
