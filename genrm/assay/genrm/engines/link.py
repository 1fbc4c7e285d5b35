"""The engine's side of its worker: one process and a socket, no policy."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from typing import Any

from assay.genrm.engines.worker import frames
from assay.rpc.log_format import worker_flags

_STOP_TIMEOUT_S = 5.0
_OUR_VARIABLES = "ASSAY_"  # some hold secrets, and a worker needs none of them


class LinkError(Exception):
    """The worker did not come up, or is gone."""


class WorkerLink:
    """One worker process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    @property
    def pid(self) -> int | None:
        """Process id, for logs and tests."""
        return self._process.pid if self._process else None

    async def start(self, settings: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Starts the process and waits until it has loaded the model.

        Returns:
            What it says of the model, or {"failed": why}.

        Raises:
            LinkError: it ended, or did not answer in time.
        """
        ours, theirs = socket.socketpair()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_OUR_VARIABLES)}
        command = [sys.executable, "-P", "-m", "assay.genrm.engines.worker"]
        command += ["--fd", str(theirs.fileno()), *worker_flags()]
        try:
            # A plain Popen execs at once (vfork), so the threads of gRPC do not matter. A session
            # of its own: what a terminal signals to the service's group is not for the worker.
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own module, and returns at once
                command,
                stdin=subprocess.DEVNULL,
                stdout=2,
                env=environment,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise LinkError(f"its process cannot be started: {error}") from error
        finally:
            theirs.close()
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        self.send({"settings": settings})
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self.receive()
        except TimeoutError as error:
            raise LinkError(f"its process did not load it in {timeout_s:g} s") from error
        except LinkError as error:
            raise LinkError(await self._how_it_ended()) from error
        if "failed" in answer:
            return answer
        ready: dict[str, Any] = answer["ready"]
        return ready

    def send(self, body: dict[str, Any]) -> None:
        """Sends a message; a broken connection shows when receiving."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(frames.pack(body))

    async def receive(self) -> dict[str, Any]:
        """The next message.

        Raises:
            LinkError: the worker is gone.
        """
        if self._reader is None:
            raise LinkError("the worker was not started")
        try:
            (size,) = frames.HEADER.unpack(await self._reader.readexactly(frames.HEADER.size))
            body: dict[str, Any] = json.loads(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, OSError) as error:
            raise LinkError("the worker is gone") from error
        return body

    async def close(self) -> None:
        """Ends the process: it goes when its socket closes, or is killed."""
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
        if self._process is not None:
            try:
                await asyncio.to_thread(self._process.wait, _STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                await asyncio.to_thread(self._process.wait)

    async def _how_it_ended(self) -> str:
        process = self._process
        if process is None:
            return "its process was not started"
        try:
            status = await asyncio.to_thread(process.wait, _STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return "its process closed the connection"
        what = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"its process {what} while loading it"
