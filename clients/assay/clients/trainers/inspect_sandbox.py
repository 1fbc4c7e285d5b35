"""A sandbox for Inspect (inspect_ai 0.3): each sample has a bash session of its own.

    Task(dataset=..., solver=..., sandbox="assay")     # ASSAY_SANDBOX_TARGET says where
    Task(..., sandbox=SandboxEnvironmentSpec("assay", AssaySandboxConfig(target="sandbox:50052")))

Documented in docs/trainers/inspect.md. Files and commands are the program's, by its user, in the
session's folder and /tmp. Another user is refused, root too. A session that we lost is an error
of the sample; one that the sample's program ended answers each further command with status 137.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shlex
import time
from typing import Any

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from pydantic import BaseModel, ConfigDict

from assay.clients.sessions import (
    AsyncSession,
    AsyncSessionClient,
    CellResult,
    ProgramEndError,
    SessionLimits,
)

_PIECE_BYTES = 2 << 20
_TIMEOUT = "/usr/bin/timeout"
_NO_TIMER = f"{_TIMEOUT}: warning: timer_create: "  # it has an alarm then
_FOLDER = ".assay"
_TIMED_OUT = frozenset({124, 137})
_KILLED = 137
_NOT_EXECUTABLE = 126
_ERRORS: dict[str, type[OSError]] = {
    "No such file": FileNotFoundError,
    "Not a directory": FileNotFoundError,
    "Permission denied": PermissionError,
    "Is a directory": IsADirectoryError,
}


class AssaySandboxConfig(BaseModel):
    """Where the sandbox is and what a sample may use; None: the server's default.

    Attributes:
        target: "host:port", or replicas. Empty: ASSAY_SANDBOX_TARGET.
        lease_s: how long a session lives between two commands.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str = ""
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    cpu_time_s: float | None = None
    command_time_s: float | None = None
    processes: int | None = None
    lease_s: float | None = None


@sandboxenv(name="assay")
class AssaySandbox(SandboxEnvironment):
    """A bash session; commands that come together wait for one another."""

    def __init__(self, client: AsyncSessionClient, session: AsyncSession, home: str) -> None:
        super().__init__()
        self._client, self._session, self._home = client, session, home
        self._one = asyncio.Lock()
        self._numbers = itertools.count()

    @classmethod
    async def sample_init(
        cls, task_name: str, config: Any, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """Opens the sample's session."""
        del task_name, metadata
        given = config if isinstance(config, AssaySandboxConfig) else AssaySandboxConfig()
        most = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        limits = SessionLimits(
            cpu_time_s=given.cpu_time_s,
            cell_wall_time_s=given.command_time_s,
            memory_bytes=given.memory_bytes,
            disk_bytes=given.disk_bytes,
            processes=given.processes,
            output_bytes=most,
        )
        client = AsyncSessionClient(given.target or os.environ.get("ASSAY_SANDBOX_TARGET", ""))
        try:
            session = await client.create("bash", limits=limits, lease_s=given.lease_s)
            home = (await session.execute(f"mkdir {_FOLDER}; pwd")).stdout.text.strip()
        except BaseException:
            await client.close()
            raise
        return {"default": cls(client, session, home)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: Any,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Ends the sample's session."""
        del task_name, config, interrupted
        for environment in environments.values():
            if isinstance(environment, AssaySandbox):
                await environment._client.close()  # noqa: SLF001  # of this class

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """The configuration as a log holds it."""
        return AssaySandboxConfig(**config)

    async def exec(  # noqa: PLR0917  # their signature
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002  # its name there
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,  # noqa: ASYNC109  # its name there
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """See `SandboxEnvironment.exec`; a command that timed out is not repeated."""
        del timeout_retry, concurrency
        if user is not None:
            raise SandboxUserUnsupportedError(f"a session has one user, and not {user!r}")
        lines = [f"export {name}={shlex.quote(text)}" for name, text in (env or {}).items()]
        if cwd:
            lines.append(f"cd {shlex.quote(cwd)} || exit")
        words = cmd if timeout is None else [_TIMEOUT, "-k", "1", str(timeout), *cmd]
        async with self._one:
            try:
                command = shlex.join(words)
                if input is not None:
                    raw = input.encode() if isinstance(input, str) else input
                    command += f" < {await self._stage(raw)}"
                began = time.monotonic()
                result = await self._run("\n".join([*lines, command]))
            except ProgramEndError as ended:
                return ExecResult(False, _KILLED, "", str(ended))
        is_over = timeout is not None and time.monotonic() - began >= timeout
        if is_over and result.exit_code in _TIMED_OUT:
            raise TimeoutError(f"{cmd[0]} took more than {timeout} s")
        return _answer(result)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """See `SandboxEnvironment.write_file`."""
        raw = contents.encode() if isinstance(contents, str) else contents
        place = shlex.quote(file)
        async with self._one:
            staged = await self._stage(raw)
            result = await self._run(
                f'mkdir -p -- "$(/usr/bin/dirname -- {place})" && cat {staged} > {place}'
            )
            await self._run(f"rm -f {staged}")
        _check(file, result)

    async def read_file(self, file: str, text: bool = True) -> Any:
        """See `SandboxEnvironment.read_file`."""
        name = f"{_FOLDER}/{next(self._numbers)}"
        staged = f"{self._home}/{name}"
        async with self._one:
            found = await self._run(
                f"mkdir -p {_FOLDER}; cat -- {shlex.quote(file)} > {staged} && stat -c %s {staged}"
            )
            content = b""
            if found.exit_code == 0:
                size = int(found.stdout.text)
                if size > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
                    most = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR
                    raise OutputLimitExceededError(most, truncated_output=None)
                content = await self._fetch(name, size)
            await self._run(f"rm -f {staged} {staged}.piece")
        _check(file, found)
        return content.decode() if text else content

    async def _run(self, script: str) -> CellResult:
        """Runs a script in a shell of its own, from the session's folder."""
        return await self._session.execute(f"(cd {self._home}\n{script}\n)")

    async def _stage(self, content: bytes) -> str:
        """Puts bytes of any size into a file of ours; its path."""
        name = f"{_FOLDER}/{next(self._numbers)}"
        whole = f"{self._home}/{name}"
        await self._session.put_files({name: content[:_PIECE_BYTES]})
        for start in range(_PIECE_BYTES, len(content), _PIECE_BYTES):
            piece = content[start : start + _PIECE_BYTES]
            await self._session.put_files({f"{name}.piece": piece})
            await self._run(f"cat {whole}.piece >> {whole}; rm {whole}.piece")
        return whole

    async def _fetch(self, name: str, size: int) -> bytes:
        pieces = []
        for number in range(-(-size // _PIECE_BYTES)):
            place = f"if={name} of={name}.piece bs={_PIECE_BYTES} skip={number}"
            await self._run(f"dd status=none count=1 {place}")
            pieces.append((await self._session.get_files([f"{name}.piece"]))[f"{name}.piece"])
        return b"".join(pieces)


def _answer(result: CellResult) -> ExecResult[str]:
    for output in (result.stdout, result.stderr):
        if output.truncated:
            most = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR
            raise OutputLimitExceededError(most, truncated_output=output.text)
    code = _KILLED if result.session_over else result.exit_code
    stderr = result.stderr.text
    if stderr.startswith(_NO_TIMER):
        stderr = stderr.partition("\n")[2]
    if result.session_over:
        stderr += result.detail
    if code == _NOT_EXECUTABLE and "Permission denied" in stderr:
        raise PermissionError(stderr)
    return ExecResult(code == 0, code, result.stdout.text, stderr)


def _check(file: str, result: CellResult) -> None:
    if result.exit_code == 0 and not result.session_over:
        return
    text = result.stderr.text or result.detail
    kind = next((error for sign, error in _ERRORS.items() if sign in text), OSError)
    raise kind(0, text, file)
