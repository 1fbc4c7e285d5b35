"""What SandboxFusion's and Piston's endpoints answer where there is no sandbox, or no room."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assay.clients.config import ClientConfig
from assay.clients.execution import AsyncExecutionClient
from assay.clients.retry import RetryPolicy
from assay.reward_server.http import piston, sandbox_fusion
from assay.reward_server.http.config import HttpConfig
from assay.reward_server.http.front import Front
from assay.rpc.errors import CallError, refuse
from assay.rpc.reasons import Reason

NOBODY = "127.0.0.1:1"
TRY_ONCE = ClientConfig(retry=RetryPolicy(max_attempts=1))
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


class Full(Front):
    """A front whose caller's quota is used up for so many calls."""

    def __init__(self, times: int, sandbox: AsyncExecutionClient | None) -> None:
        super().__init__(SimpleNamespace(), SimpleNamespace(), HttpConfig(), sandbox=sandbox)  # type: ignore[arg-type]
        self.times = times

    @contextmanager
    def charged(self, items: int) -> Iterator[Any]:
        self.times -= 1
        if self.times >= 0:
            raise refuse(Reason.QUOTA_EXCEEDED, "full", retry_after_s=0.01)
        yield SimpleNamespace(items=items)


async def ask(front: Front, path: str, *, wait_s: float = 5.0) -> tuple[int, Any]:
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
async def test_without_a_sandbox_the_call_is_refused(path: str) -> None:
    with pytest.raises(CallError, match="--sandbox-target") as caught:
        await ask(Full(0, None), path)
    assert caught.value.reason == Reason.UNREACHABLE


@pytest.mark.parametrize("path", BODIES)
async def test_a_sandbox_that_is_gone_is_no_verdict(path: str) -> None:
    async with AsyncExecutionClient(NOBODY, config=TRY_ONCE) as sandbox:
        status, body = await ask(Full(0, sandbox), path)
    assert status == (503 if path == "/api/v2/execute" else 504)
    assert "UNREACHABLE" in json.dumps(body)
    assert body.get("status", "SandboxError") == "SandboxError"
    assert not {"accepted", "run"} & body.keys()


async def test_a_full_quota_is_waited_for() -> None:
    async with AsyncExecutionClient(NOBODY, config=TRY_ONCE) as sandbox:
        front = Full(3, sandbox)
        _, body = await ask(front, "/run_code")
    assert front.times == -1
    assert "UNREACHABLE" in body["message"]  # it got past the quota


async def test_a_quota_that_stays_full_is_tried_again_by_the_caller() -> None:
    async with AsyncExecutionClient(NOBODY, config=TRY_ONCE) as sandbox:
        status, body = await ask(Full(10**9, sandbox), "/run_code", wait_s=0.05)
    assert (status, body["status"]) == (504, "SandboxError")
    assert "QUOTA_EXCEEDED" in body["message"]
