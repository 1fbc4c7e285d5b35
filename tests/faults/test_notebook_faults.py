"""SandboxFusion's notebooks where a session is lost, or none is kept: a fault, never a result."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest

import sandbox_http_support
import sandbox_service
from process_tree import descendants
from sandbox_http_support import post

CELLS = ["x = 1\nprint(x)", "import time\ntime.sleep(30)", "print(x)"]


@pytest.mark.slow
def test_a_session_that_is_lost_on_the_way_is_a_sandbox_error() -> None:
    with sandbox_service.running("--http-port", "0") as (_, process):
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]

        def kill() -> None:
            for pid in descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

        late = threading.Timer(2.0, kill)
        late.start()
        found = post(address, "/run_jupyter", {"cells": CELLS})
        late.join()
    assert (found.status, found.body["status"]) == (200, "SandboxError")
    assert found.body["message"].startswith("SESSION_LOST")
    assert not found.body.get("cells")


def test_a_sandbox_without_sessions_is_a_sandbox_error() -> None:
    with sandbox_http_support.sandbox("--no-sessions") as address:
        found = post(address, "/run_jupyter", {"cells": CELLS[:1]})
        assert (found.status, found.body["status"]) == (200, "SandboxError")
        assert found.body["message"].startswith("NO_SESSIONS")
        ran = post(address, "/run_code", {"language": "python", "code": "print(1)"})
        assert ran.body["status"] == "Success"
