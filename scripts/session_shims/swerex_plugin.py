"""SWE-ReX's own tests, tests/test_execution.py: its `RemoteRuntime` is bash sessions of ours.

A pytest plugin for an interpreter that has swe-rex and what its tests import.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path
from typing import Any

import swerex.runtime.remote
from swerex.exceptions import (
    BashIncorrectSyntaxError,
    CommandTimeoutError,
    NonZeroExitCodeError,
    SessionDoesNotExistError,
)
from swerex.runtime import abstract as rex

from assay.clients.sessions import CellEnd, CellEvent, CellResult, OutputPiece
from session_shims.workspace import Workspace


class Sessions(rex.AbstractRuntime):
    """A session for each of theirs, and one for commands and files."""

    def __init__(self, *, host: str = "", **_: Any) -> None:
        self._host = host
        self._open: dict[str, Workspace] = {}

    async def is_alive(self, *, timeout: float | None = None) -> rex.IsAliveResponse:
        del timeout
        place = self._host.removeprefix("http://") or os.environ["ASSAY_PEERS_TARGET"]
        name, _, port = place.partition(":")
        try:
            _, writer = await asyncio.open_connection(name, int(port or 80))
            writer.close()
        except OSError as error:
            return rex.IsAliveResponse(is_alive=False, message=str(error))
        return rex.IsAliveResponse(is_alive=True)

    async def create_session(self, request: Any) -> rex.CreateBashSessionResponse:
        self._open[request.session] = await asyncio.to_thread(Workspace)
        return rex.CreateBashSessionResponse()

    async def run_in_session(self, action: Any) -> rex.BashObservation:
        space = self._session(action.session)
        if isinstance(action, rex.BashInterruptAction):  # a cell that is over needs none
            return rex.BashObservation(exit_code=0)
        seen: list[bytes] = []

        def watch(event: CellEvent) -> None:
            if isinstance(event, OutputPiece):
                seen.append(event.data)

        result = await asyncio.to_thread(
            space.run, action.command, wall_s=action.timeout, watch=watch
        )
        output = b"".join(seen).decode(errors="replace")
        _check_time(result, action.command)
        error = result.stderr.data.decode(errors="replace")
        if result.exit_code == 2 and ("syntax error" in error or "unexpected end" in error):
            raise BashIncorrectSyntaxError(
                error, extra_info={"bash_stdout": output, "bash_stderr": error}
            )
        if action.check == "raise" and result.exit_code:
            raise NonZeroExitCodeError(f"{action.command!r}: {result.exit_code}: {output}")
        return rex.BashObservation(output=output, exit_code=result.exit_code)

    async def close_session(self, request: Any) -> rex.CloseBashSessionResponse:
        await asyncio.to_thread(self._session(request.session).close)
        del self._open[request.session]
        return rex.CloseBashSessionResponse()

    async def execute(self, command: rex.Command) -> rex.CommandResponse:
        words = command.command
        line = words if isinstance(words, str) else shlex.join(words)
        if command.merge_output_streams:
            line = f"{{ {line}\n}} 2>&1"
        space = await self._own()
        result = await asyncio.to_thread(space.command, line, wall_s=command.timeout)
        _check_time(result, line)
        if command.check and result.exit_code:
            raise NonZeroExitCodeError(line)
        return rex.CommandResponse(
            stdout=result.stdout.data.decode(),
            stderr=result.stderr.data.decode(),
            exit_code=result.exit_code,
        )

    async def read_file(self, request: Any) -> rex.ReadFileResponse:
        result, content = await asyncio.to_thread((await self._own()).read, request.path)
        if result.exit_code:
            raise FileNotFoundError(result.stderr.data.decode())
        text = content.decode(request.encoding or "utf-8", request.errors or "strict")
        return rex.ReadFileResponse(content=text)

    async def write_file(self, request: Any) -> rex.WriteFileResponse:
        await self._write(request.path, request.content.encode())
        return rex.WriteFileResponse()

    async def upload(self, request: Any) -> rex.UploadResponse:
        source = Path(request.source_path)
        files = sorted(source.rglob("*")) if source.is_dir() else [source]
        for file in filter(Path.is_file, files):
            target = Path(request.target_path, file.relative_to(source))
            await self._write(str(target), file.read_bytes())
        return rex.UploadResponse()

    async def close(self) -> rex.CloseResponse:
        for space in self._open.values():
            await asyncio.to_thread(space.close)
        self._open.clear()
        return rex.CloseResponse()

    def _session(self, name: str) -> Workspace:
        if name not in self._open:
            raise SessionDoesNotExistError(name)
        return self._open[name]

    async def _own(self) -> Workspace:
        if "" not in self._open:
            self._open[""] = await asyncio.to_thread(Workspace)
        return self._open[""]

    async def _write(self, path: str, content: bytes) -> None:
        result = await asyncio.to_thread((await self._own()).write, path, content)
        if result.exit_code:
            raise OSError(result.stderr.data.decode())


def _check_time(result: CellResult, command: str) -> None:
    if result.end == CellEnd.WALL_TIME_LIMIT:
        raise CommandTimeoutError(command)


swerex.runtime.remote.RemoteRuntime = Sessions
