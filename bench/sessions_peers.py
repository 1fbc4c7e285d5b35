"""Others who keep state between cells, or seem to: how each is set up, opened, asked and ended.

Nothing of them is part of this project. What is not there is reported as not run.

Jupyter kernel   `python3.11 -m venv KERNELS`, with its pip: jupyter_client ipykernel. The bench
                 finds it by ASSAY_BENCH_JUPYTER=KERNELS. No walls.
docker exec      a Docker engine that DOCKER_HOST or the usual socket leads to, with an image that
                 has Python: python:3.11-slim-bookworm, or what ASSAY_BENCH_IMAGE names. A container
                 for each session; each cell is `docker exec python3 -c` of all cells so far, for
                 nothing stays but files.
SandboxFusion    as `bench.sandbox_peer` sets it up, and jupyter_client, ipykernel and pydantic in
                 its sandbox-runtime. `/run_jupyter` starts a kernel for each call, so a session is
                 a replay of all cells so far. Isolation none, its fastest.
replay           our own `ExecutionService`: every call runs all cells so far, as a program.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from assay.clients.execution import Execution, ExecutionClient, ExecutionJob, Program
from bench.sandbox_peer import Peer, PeerClient
from bench.sandbox_peer import home as fusion_home
from bench.sessions_ours import Calls, Live

KERNELS = "ASSAY_BENCH_JUPYTER"
IMAGE = "ASSAY_BENCH_IMAGE"


class NotHere(Exception):
    """A peer is not set up; the text says what is missing."""


class Contestant(Protocol):
    """Somebody with a session that is opened, asked and ended."""

    def open(self) -> None:
        """A new session, ready for its first cell."""

    def cell(self, code: str) -> str:
        """Runs a cell after all that ran before in this session; what it printed."""

    def close(self) -> None:
        """Ends the session."""


class Ours:
    """A session, by the bare calls."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def open(self) -> None:
        self._live: Live = self._calls.create()

    def cell(self, code: str) -> str:
        return self._live.run(code).stdout.data.decode()

    def close(self) -> None:
        self._live.close()


class Library:
    """A session, by the client library."""

    def __init__(self, stack: ExitStack, target: str) -> None:
        try:
            from assay.clients.sessions import SessionClient  # noqa: PLC0415  # may be absent
        except ImportError as error:
            raise NotHere(str(error)) from error
        self._client = stack.enter_context(SessionClient(target))

    def open(self) -> None:
        self._session = self._client.create()

    def cell(self, code: str) -> str:
        return str(self._session.execute(code).stdout.text)

    def close(self) -> None:
        self._session.close()


class Kernel:
    """A Jupyter kernel, through a driver in an environment of its own."""

    def __init__(self, stack: ExitStack) -> None:
        folder = os.environ.get(KERNELS, "")
        python = Path(folder, "bin", "python")
        if not folder or not python.is_file():
            raise NotHere(f"{KERNELS} names no environment with jupyter_client and ipykernel")
        driver = Path(__file__).with_name("sessions_kernel.py")
        self._process = subprocess.Popen(
            [str(python), str(driver)],
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        stack.callback(self._end)

    def open(self) -> None:
        self._ask("open")

    def cell(self, code: str) -> str:
        return self._ask("run", code)

    def close(self) -> None:
        self._ask("close")

    def _ask(self, do: str, code: str = "") -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, "code": code}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, str] = json.loads(self._process.stdout.readline())
        return answer["out"]

    def _end(self) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
        self._process.wait(10)


class _Replay(ABC):
    """Runs all cells so far at each cell, and gives what the last one adds."""

    def __init__(self) -> None:
        self._cells: list[str] = []
        self._printed = ""

    def open(self) -> None:
        self._cells, self._printed = [], ""

    def cell(self, code: str) -> str:
        self._cells.append(code)
        before, self._printed = self._printed, self._run("\n".join(self._cells))
        return self._printed.removeprefix(before)

    @abstractmethod
    def _run(self, source: str) -> str: ...


class Docker(_Replay):
    """A container for each session, cells by `docker exec`."""

    def __init__(self) -> None:
        super().__init__()
        self._image = os.environ.get(IMAGE, "python:3.11-slim-bookworm")
        if shutil.which("docker") is None:
            raise NotHere("no docker command")
        found = subprocess.run(
            ["docker", "image", "inspect", self._image], capture_output=True, text=True, check=False
        )
        if found.returncode:
            raise NotHere(f"docker: {found.stderr.strip()}")

    def open(self) -> None:
        super().open()
        self._name = f"bench-{uuid.uuid4().hex[:12]}"
        self._docker("run", "-d", "--network", "none", "--name", self._name, self._image,
                     "sleep", "infinity")  # fmt: skip

    def _run(self, source: str) -> str:
        return self._docker("exec", self._name, "python3", "-c", source)

    def close(self) -> None:
        self._docker("rm", "-f", self._name)

    @staticmethod
    def _docker(*words: str) -> str:
        command = ["docker", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Fusion:
    """SandboxFusion's Jupyter mode."""

    def __init__(self, stack: ExitStack) -> None:
        folder = fusion_home()
        if folder is None:
            raise NotHere("ASSAY_BENCH_PEER names no SandboxFusion")
        self._client = PeerClient(stack.enter_context(Peer(folder, "none")).port)
        stack.callback(self._client.close)
        try:
            self._client.run_cells(["x = 0"])
        except RuntimeError as error:
            raise NotHere(f"its Jupyter mode does not work: {str(error)[:200]}") from error

    def open(self) -> None:
        self._cells: list[str] = []

    def cell(self, code: str) -> str:
        self._cells.append(code)
        return self._client.run_cells(self._cells)[-1]

    def close(self) -> None:
        self._cells = []


class Replay(_Replay):
    """Our one-shot runs."""

    def __init__(self, client: ExecutionClient) -> None:
        super().__init__()
        self._client = client

    def _run(self, source: str) -> str:
        [result] = self._client.execute([ExecutionJob(Program("python", source))])
        if not isinstance(result, Execution) or not result.ok:
            raise RuntimeError(f"the run ended so: {result}")
        return result.stdout.text

    def close(self) -> None:
        """Nothing is kept."""
