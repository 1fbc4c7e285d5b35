"""A sandbox that speaks HTTP, started as a user does, for tests."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sandbox_service


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, and the JSON."""

    status: int
    body: Any


def post(address: str, path: str, body: object, *, method: str = "POST", **headers: str) -> Answer:
    """One call, on a connection of its own."""
    connection = http.client.HTTPConnection(address, timeout=60)
    found = {"content-type": "application/json"}
    found |= {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, json.dumps(body), found)
        response = connection.getresponse()
        return Answer(response.status, json.loads(response.read()))
    finally:
        connection.close()


def get(address: str, path: str) -> Answer:
    """Asks for something."""
    return post(address, path, None, method="GET")


@contextlib.contextmanager
def sandbox(*flags: str, **environment: str) -> Iterator[str]:
    """A sandbox with HTTP for the length of the context; gives its HTTP address."""
    with sandbox_service.running("--http-port", "0", *flags, **environment) as (_, process):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("assay sandbox http on "), line
        yield line.split()[-1]
