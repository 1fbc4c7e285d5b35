"""Calls of tools from other processes to the episodes of this one, on a loopback address.

Who knows an episode's address, which nobody can guess, may call its tools, and nothing else.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from assay.clients.trainers.common.faults import FaultError
from assay.environments.faces.common import EpisodeHandle

BROKEN = "error: the environment broke; the episode is over and earns nothing"
"""What a tool answers after a fault."""
_MOST_BYTES = 8 << 20
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def sendable(text: str) -> str:
    """The text without half surrogate pairs, which a policy can write and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


@contextmanager
def relayed(handle: EpisodeHandle) -> Iterator[str]:
    """The address of an episode's tools, for as long as the block runs."""
    server = _server()
    key = secrets.token_urlsafe(24)
    server.handles[key] = handle
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/{key}"
    finally:
        del server.handles[key]


def call_relayed(address: str, name: str, arguments: Mapping[str, Any], timeout_s: float) -> str:
    """Calls a tool of another process's episode; its text.

    Raises:
        RuntimeError: the other process is gone, or its episode is.
    """
    body = json.dumps({"name": name, "arguments": dict(arguments)}).encode()
    request = urllib.request.Request(address, data=body, method="POST")  # noqa: S310  # http
    try:
        with _direct.open(request, timeout=timeout_s) as answer:
            return str(json.load(answer)["text"])
    except (OSError, ValueError) as error:
        raise RuntimeError(f"the episode cannot be reached: {error}") from error


class _Relay(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _RelayHandler)
        self.pid = os.getpid()
        self.handles: dict[str, EpisodeHandle] = {}
        threading.Thread(target=self.serve_forever, name="assay-relay", daemon=True).start()


class _RelayHandler(BaseHTTPRequestHandler):
    server: _Relay
    timeout = 60.0

    def do_POST(self) -> None:
        handle = self.server.handles.get(self.path[1:])
        length = self.headers.get("Content-Length", "")
        if handle is None or not length.isdecimal() or int(length) > _MOST_BYTES:
            self.send_error(404)
            return
        try:
            given = json.loads(self.rfile.read(int(length)))
            text = sendable(handle.call_tool(str(given["name"]), given["arguments"]))
        except FaultError:
            text = BROKEN
        except (ValueError, KeyError, TypeError):
            self.send_error(400)
            return
        body = json.dumps({"text": text}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name there
        """Says nothing: a path is a secret."""


_lock = threading.Lock()
_servers: list[_Relay] = []


def _server() -> _Relay:
    """This process's relay; a forked child has one of its own."""
    with _lock:
        if not _servers or _servers[-1].pid != os.getpid():
            _servers.append(_Relay())
        return _servers[-1]
