"""A sandbox and a reward server with its HTTP facade, started as a user does, for tests."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


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
def reward_server(*flags: str) -> Iterator[str]:
    """A reward server with the facade for the length of the context; gives its HTTP address."""
    command = [sys.executable, "-m", "assay.reward_server", "--port", "0", "--http-port", "0"]
    with subprocess.Popen(
        [*command, "--workers", "1", "--log-level", "ERROR", *flags],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("assay reward_server http on "):
                    yield line.split()[-1]
                    break
            else:
                raise AssertionError("the reward server did not start")
        finally:
            process.kill()
            process.communicate()
