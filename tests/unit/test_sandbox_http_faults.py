"""What SandboxFusion's and Piston's endpoints answer where nothing can be run, or no room is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assay.compat.piston import face as piston
from assay.compat.sandbox_fusion import face as sandbox_fusion
from assay.kit.errors import refuse
from assay.kit.http.config import HttpConfig
from assay.kit.reasons import Reason
from assay.sandbox.http import SandboxFront

SUBMISSION = {
    "dataset": "x",
    "id": 1,
    "completion": "```python\ndef f(): return 1\n```",
    "config": {
        "dataset_type": "MBPPDataset",
        "provided_data": {"test_list": ["assert f() == 1"]},
    },
}
BODIES: dict[str, dict[str, Any]] = {
    "/run_code": {"code": "print(1)", "language": "python"},
    "/submit": SUBMISSION,
    "/api/v2/execute": {"language": "python", "version": "*", "files": [{"content": "1"}]},
}


class Refusing:
    """A runner that takes no call.

    Attributes:
        asked: how many it was sent.
    """

    def __init__(self) -> None:
        self.asked = 0

    async def _refuse(self, _: object, *, timeout_s: float) -> Any:
        del timeout_s
        self.asked += 1
        raise refuse(Reason.STARTING, "not yet")

    execute = run_tests = list_languages = stream_run_tests = _refuse


class Full(SandboxFront):
    """A front whose caller's quota is used up for so many calls."""

    def __init__(self, times: int, runner: Any = None) -> None:
        self.refusing = Refusing()
        super().__init__(runner or self.refusing, cast("Any", SimpleNamespace()), HttpConfig())
        self.times = times

    @contextmanager
    def charged(self, items: int) -> Iterator[Any]:
        self.times -= 1
        if self.times >= 0:
            raise refuse(Reason.QUOTA_EXCEEDED, "full", retry_after_s=0.01)
        yield SimpleNamespace(items=items)


async def ask(front: SandboxFront, path: str, *, wait_s: float = 5.0) -> tuple[int, Any]:
    """Calls an endpoint without a server around it."""
    routes: list[Route] = [*sandbox_fusion.routes(front), *piston.routes(front)]
    endpoint: Any = next(route.endpoint for route in routes if route.path == path)
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"x-timeout-s", b"%g" % wait_s)],
    }

    async def receive() -> dict[str, Any]:
        body = json.dumps(BODIES[path]).encode()
        return {"type": "http.request", "body": body, "more_body": False}

    response: Response = await endpoint(Request(scope, receive))
    return response.status_code, json.loads(bytes(response.body))


@pytest.mark.parametrize("path", BODIES)
async def test_a_runner_that_takes_no_call_is_no_verdict(path: str) -> None:
    front = Full(0)
    status, body = await ask(front, path, wait_s=0.5)
    assert status == (503 if path == "/api/v2/execute" else 504)
    assert "STARTING" in json.dumps(body)
    assert body.get("status", "SandboxError") == "SandboxError"
    assert not {"accepted", "run"} & body.keys()
    assert front.refusing.asked > 1, "it was tried again within the deadline"


async def test_a_full_quota_is_waited_for() -> None:
    front = Full(3)
    _, body = await ask(front, "/run_code", wait_s=0.5)
    assert front.times == -1
    assert "STARTING" in body["message"]  # it got past the quota


async def test_a_quota_that_stays_full_is_tried_again_by_the_caller() -> None:
    front = Full(10**9)
    status, body = await ask(front, "/run_code", wait_s=0.05)
    assert (status, body["status"]) == (504, "SandboxError")
    assert "QUOTA_EXCEEDED" in body["message"]
    assert front.refusing.asked == 0
