"""inspect_ai's own checks of a sandbox provider, `inspect_ai.util._sandbox.self_check`.

Collected by pytest in an interpreter that has inspect_ai.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
)
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

from assay.clients.sessions import CellResult, SessionLimits
from session_shims.workspace import Workspace

_LIMITS = SessionLimits(
    memory_bytes=1 << 30, disk_bytes=256 << 20, output_bytes=10 << 20, max_output_bytes=64 << 20
)
_ERRORS = {
    "No such file": FileNotFoundError,
    "Not a directory": FileNotFoundError,
    "Permission denied": PermissionError,
    "Is a directory": IsADirectoryError,
}


class Sessions(SandboxEnvironment):
    """A bash session."""

    def __init__(self, space: Workspace) -> None:
        super().__init__()
        self._space = space

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        del timeout_retry, concurrency
        if user is not None:
            raise SandboxUserUnsupportedError(f"a session has one user, not {user}")
        return await asyncio.to_thread(self._exec, cmd, input, cwd, env or {}, timeout)

    def _exec(
        self,
        command: list[str],
        given: str | bytes | None,
        cwd: str | None,
        env: dict[str, str],
        timeout: int | None,
    ) -> ExecResult[str]:
        words = list(command)
        if timeout is not None:
            words = ["/usr/bin/timeout", "-k", "1", str(timeout), *words]
        line = " ".join(map(shlex.quote, words))
        if given is not None:
            raw = given.encode() if isinstance(given, str) else given
            line += f" < {self._space.stage(raw)}"
        settings = "".join(f"export {name}={shlex.quote(text)}\n" for name, text in env.items())
        folder = f"cd {shlex.quote(cwd)}\n" if cwd else ""
        began = time.monotonic()
        result = self._space.command(f"{settings}{folder}{line}")
        over = timeout is not None and time.monotonic() - began >= timeout
        if over and result.exit_code in {124, 137}:
            raise TimeoutError(line)
        text = result.stderr.data.decode(errors="replace")
        if result.exit_code == 126 and "Permission denied" in text:
            raise PermissionError(text)
        stdout = result.stdout.data.decode(errors="replace")
        return ExecResult(result.exit_code == 0, result.exit_code, stdout, text)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        raw = contents.encode() if isinstance(contents, str) else contents
        _check(file, await asyncio.to_thread(self._space.write, file, raw))

    async def read_file(self, file: str, text: bool = True) -> Any:
        result, content = await asyncio.to_thread(self._space.read, file)
        _check(file, result)
        if len(content) > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
            limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR
            raise OutputLimitExceededError(limit, truncated_output=None)
        return content.decode() if text else content

    @classmethod
    async def sample_cleanup(cls, *_: Any) -> None:
        """Nothing outlives the fixture."""


def _check(file: str, result: CellResult) -> None:
    if result.exit_code == 0:
        return
    text = result.stderr.data.decode(errors="replace")
    for sign, error in _ERRORS.items():
        if sign in text:
            raise error(0, text, file)
    raise RuntimeError(text)


@pytest_asyncio.fixture
async def sandbox_env() -> AsyncIterator[SandboxEnvironment]:
    """One session a check."""
    space = await asyncio.to_thread(Workspace, limits=_LIMITS)
    yield Sessions(space)
    await asyncio.to_thread(space.close)
