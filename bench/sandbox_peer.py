"""SandboxFusion, the peer: where it lies, how it is started, and a client for it.

How it was set up here (nothing of it is part of this project):

1. Clone github.com/bytedance/SandboxFusion (469de08) to PEER/peer. Make PEER/conda with
   `condabin/`, an empty folder, and `bin/activate`, one line: `export
   PATH="PEER/conda/envs/$1/bin:$PATH"`. Its Python runner looks for a conda installation and
   sources that file; this stands in for conda, and costs it nothing while it serves (the answer
   is cached).
2. `python3.11 -m venv PEER/conda/envs/sandbox`, and with its pip: pydantic>=2.4,<2.7
   fastapi>=0.103.1,<0.104 uvicorn[standard]==0.25.0 structlog>=23.1,<24 psutil>=5.9.8,<6
   aiofiles>=23.2.1,<24 aiohttp>=3.9.5,<4 tenacity>=8.4.2,<9
   databases[aiomysql,aiosqlite]>=0.9,<0.10 transformers>=4.44,<5 numpy<2 (its own pyproject
   without the development group).
3. `python3.11 -m venv PEER/conda/envs/sandbox-runtime`, with numpy<2: the interpreter of its
   programs. For its Jupyter mode also jupyter_client, ipykernel and pydantic.
4. `mkdir -p PEER/peer/docs/build`; copy sandbox/configs/local.yaml to local_lite.yaml with
   `isolation: lite` instead of `none`.
5. For lite: Debian's sudo, cgroup-tools, iproute2, iptables, procps, and root.
6. Lite keeps network namespaces, NAT rules and control groups for its next run, and leaves them
   when it is stopped: `ip netns delete`, `iptables -t nat -D`, `rmdir /sys/fs/cgroup/*/sandbox_*`.

The bench finds it by ASSAY_BENCH_PEER=PEER and starts both modes itself, each on a free port.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

VARIABLE = "ASSAY_BENCH_PEER"
_CONFIGS = {"none": "local", "lite": "local_lite"}
_START_S = 120.0


class PeerClient:
    """One connection to a SandboxFusion, kept open, as its own client keeps it."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def run(self, source: str) -> str:
        """Runs a Python program and returns its output.

        Raises:
            RuntimeError: it did not end well.
        """
        asked = {"code": source, "language": "python", "run_timeout": 60}
        answer = self._post("/run_code", asked)
        if answer["status"] != "Success":
            raise RuntimeError(f"the peer answered {answer}")
        return str(answer["run_result"]["stdout"])

    def run_cells(self, cells: Sequence[str]) -> list[str]:
        """Runs cells in a new Jupyter kernel and returns the output of each.

        Raises:
            RuntimeError: they did not end well.
        """
        answer = self._post("/run_jupyter", {"cells": list(cells), "total_timeout": 60})
        if answer["status"] != "Success":
            raise RuntimeError(f"the peer answered {answer}")
        return [str(cell["stdout"]) for cell in answer["cells"]]

    def _post(self, path: str, asked: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps(asked)
        headers = {"content-type": "application/json"}
        for last in (False, True):
            try:
                self._connection.request("POST", path, body, headers)
                answer: dict[str, Any] = json.loads(self._connection.getresponse().read())
            except (ConnectionError, http.client.HTTPException):
                self._connection.close()  # it closes connections that were idle for five seconds
                if last:
                    raise
            else:
                return answer
        raise AssertionError("the loop returns or raises")

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


class Peer:
    """A running SandboxFusion."""

    def __init__(self, home: Path, isolation: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        # A bash whose stdin is a socket reads ~/.bashrc: nobody's start-up files are measured.
        environment = {**os.environ, "SANDBOX_CONFIG": _CONFIGS[isolation], "HOME": str(home)}
        python = home / "conda" / "envs" / "sandbox" / "bin" / "python"
        command = [str(python), "-m", "uvicorn", "sandbox.server.server:app", "--host", "127.0.0.1"]
        self._process = subprocess.Popen(
            [*command, "--port", str(self.port), "--log-level", "warning"],
            cwd=home / "peer",
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def __enter__(self) -> Peer:
        ends_s = time.monotonic() + _START_S
        while True:
            client = PeerClient(self.port)
            try:
                if client.run("print(1)") == "1\n":
                    return self
            except OSError:
                if time.monotonic() > ends_s or self._process.poll() is not None:
                    self.__exit__(None, None, None)
                    raise
                time.sleep(0.2)
            finally:
                client.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def home() -> Path | None:
    """Where the peer was set up; None where it was not."""
    folder = os.environ.get(VARIABLE, "")
    return Path(folder) if folder and Path(folder, "peer").is_dir() else None
