"""A session of one episode: runs what the policy writes, and says in words what came of it.

What the program does to its session (it exits, dies, meets a limit) is the policy's doing: a text,
and a new session with the files of the old one, a few times; then the budget is spent. What is
done to it from outside (SESSION_LOST, LEASE_EXPIRED, no place in time) is a fault.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.clients.sessions import (
    AsyncSession,
    CellEnd,
    CellResult,
    ProgramEndError,
    SessionFiles,
    SessionLimits,
)
from assay.clients.sessions.calls import in_portions
from assay.environments.environment import BudgetSpent, ToolError, ToolResult
from assay.environments.services import EpisodeSandbox
from assay.kit.errors import CallError
from assay.kit.reasons import Reason

_CODE_BYTES = 1 << 20
_LEAST_CPU_S = 0.5
_PATH_BYTES, _PART_BYTES = 1000, 250
_SAID = {
    CellEnd.EXITED: "the program exited with code {code}",
    CellEnd.DIED: "the process died (signal {signal}, exit code {code})",
    CellEnd.INTERRUPTED: "the run was interrupted",
    CellEnd.WALL_TIME_LIMIT: "stopped: it ran longer than {wall_s:g} seconds",
    CellEnd.CPU_TIME_LIMIT: "stopped: it used more CPU time than it may",
    CellEnd.MEMORY_LIMIT: "stopped: it used more memory than it may",
    CellEnd.OUTPUT_LIMIT: "stopped: it wrote more output than it may",
    CellEnd.SECURITY_VIOLATION: "stopped: it did what is forbidden here",
    CellEnd.PROTOCOL_VIOLATION: "stopped: it disturbed the interpreter's own channel",
    CellEnd.BUDGET_SPENT: "stopped: the budget of CPU time is spent",
}
_AFRESH = "a new session begins with the next call: files are kept, everything else is gone"
OF_FILES = frozenset(
    {Reason.DISK_FULL, Reason.INVALID_PROGRAM, Reason.ITEM_TOO_LARGE, Reason.MESSAGE_TOO_LARGE}
)
"""Refusals that files of the policy's own can bring about."""


@dataclass(frozen=True, slots=True)
class CellBounds:
    """What an episode's programs may take."""

    limits: SessionLimits  # the CPU time is of all sessions together
    wall_s: float  # of one call
    chars: int  # of one answer
    restarts: int  # sessions that the program may end
    wait_s: float  # for a place in the sandbox, and for a call's turn

    def limits_for(self, wall_s: float) -> SessionLimits:
        """Those of a session with one cell of so many seconds."""
        return dataclasses.replace(
            self.limits,
            cpu_time_s=max(wall_s, 1.0) * 2,
            cell_cpu_time_s=wall_s,
            cell_wall_time_s=wall_s,
        )


class EpisodeSession:
    """The session of an episode, and after its end by the program the next one.

    Attributes:
        opened: sessions so far.
    """

    def __init__(self, sandbox: EpisodeSandbox, language: str, bounds: CellBounds) -> None:
        self.opened = 0
        self._sandbox = sandbox
        self._language = language
        self._bounds = bounds
        self._session: AsyncSession | None = None
        self._kept: Mapping[str, bytes | str] = {}
        self._used_s = self._session_s = 0.0

    def put(self, files: Mapping[str, bytes | str]) -> None:
        """What the first session begins with; it is opened when something is run in it."""
        self._kept = files

    async def start_again(self) -> None:
        """Opens the next session where the program ended the last one.

        Raises:
            BudgetSpent: there is none any more.
        """
        await self._open()

    async def run(self, code: str) -> CellResult:
        """Runs a cell.

        Raises:
            ToolError: it was not run; the text says why.
            BudgetSpent: nothing runs any more.
            CallError: a fault.
        """
        if len(code.encode("utf-8", "surrogatepass")) > _CODE_BYTES:
            raise ToolError(f"more than {_CODE_BYTES} bytes; write less at a time")
        if not is_text(code):
            raise ToolError("the text holds half a character (a lone surrogate); write it whole")
        session = await self._open()
        wall_s = self._bounds.wall_s
        try:
            result = await self._sandbox.ask(
                lambda: session.execute(code, wall_s=wall_s, timeout_s=self._bounds.wait_s)
            )
        except ProgramEndError as error:
            await self._end(session)
            raise ToolError(f"this was not run, {error}; {_AFRESH}") from None
        self._session_s = result.usage.session_cpu_time_s
        if result.session_over:
            await self._end(session)
            if result.end is CellEnd.BUDGET_SPENT:
                raise BudgetSpent(result.detail)
        return result

    async def show(self, code: str) -> ToolResult:
        """Runs a cell; what it showed, as text."""
        result = await self.run(code)
        facts: dict[str, Any] = {"end": str(result.end), "seconds": result.usage.wall_time_s}
        if result.exit_code:
            facts["exit_code"] = result.exit_code
        text = shown(result, self._language, self._bounds.wall_s)
        return ToolResult(cut(text, self._bounds.chars), facts=facts)

    async def read(self, path: str) -> bytes | None:
        """A file's content; None where there is none."""
        session = await self._open()
        try:
            return (await self._sandbox.ask(lambda: session.get_files([path]))).get(path)
        except CallError as error:
            raise _refusal(error) from error

    async def write(self, files: Mapping[str, bytes | str]) -> None:
        """Writes files.

        Raises:
            ToolError: a path leads elsewhere, or the disk is full.
        """
        session = await self._open()
        try:
            await self._sandbox.ask(lambda: session.put_files(files))
        except CallError as error:
            raise _refusal(error) from error

    async def files(
        self, most_bytes: int, keep: Callable[[str], bool] | None = None
    ) -> dict[str, bytes] | None:
        """The regular files of the working folder by path, those only that `keep` takes.

        None where they have more than `most_bytes`, or are too many to list.
        """
        keep = keep or is_path
        if self._session is not None:
            return await self._files_of(self._session, most_bytes, keep)
        kept = {path: _bytes(content) for path, content in self._kept.items() if keep(path)}
        return kept if sum(map(len, kept.values())) <= most_bytes else None

    async def modes(self) -> dict[str, int]:
        """The rights of the files of the working folder that anybody may run, by path."""
        session = self._session
        if session is None:
            return {}
        listed = await self._sandbox.ask(session.list_files)
        return {one.path: one.mode for one in listed if one.mode & 0o111 and is_path(one.path)}

    async def close(self) -> None:
        """Frees the session. May be called twice."""
        session, self._session = self._session, None
        if session is not None:
            await self._sandbox.ask(session.close)

    async def _open(self) -> AsyncSession:
        if self._session is not None:
            return self._session
        limits = self._bounds.limits
        if limits.cpu_time_s is not None:
            left_s = limits.cpu_time_s - self._used_s
            if left_s < _LEAST_CPU_S:
                raise BudgetSpent("the CPU time of the episode is spent")
            limits = dataclasses.replace(limits, cpu_time_s=left_s)
        if self.opened > self._bounds.restarts:
            raise BudgetSpent(f"the program has ended {self.opened} sessions")
        session = self._session = await self._sandbox.open(
            self._language, limits=limits, wait_s=self._bounds.wait_s
        )
        self.opened += 1
        self._session_s = 0.0
        try:
            if self._kept:
                await self._sandbox.ask(lambda: session.put_files(self._kept))
        except CallError as error:
            if self.opened == 1 or error.reason not in OF_FILES:
                raise
            self._kept = {}  # the program left what cannot be put back
        return session

    async def _end(self, session: AsyncSession) -> None:
        """The program ended the session: keeps its files for the next one."""
        kept = await self._files_of(session, self._bounds.limits.disk_bytes or 1 << 30, is_path)
        self._kept = kept or {}
        self._used_s += self._session_s
        self._session = None
        await self._sandbox.ask(session.close)

    async def _files_of(
        self, session: AsyncSession, most_bytes: int, keep: Callable[[str], bool]
    ) -> dict[str, bytes] | None:
        async def fetch() -> dict[str, bytes] | None:
            listed = await session.list_files()
            wanted = SessionFiles(tuple(one for one in listed if keep(one.path)))
            if listed.truncated or sum(one.size_bytes for one in wanted) > most_bytes:
                return None
            found: dict[str, bytes] = {}
            try:
                for paths in in_portions(wanted):
                    found.update(await session.get_files(paths))
            except CallError as error:
                if error.reason in OF_FILES:
                    return None  # a process of the policy's makes them larger meanwhile
                raise
            return found

        return await self._sandbox.ask(fetch)


def shown(result: CellResult, language: str, wall_s: float) -> str:
    """What a notebook, or a terminal, would show of a cell."""
    parts = [result.stdout.text, *(one.text for one in result.displays), result.stderr.text]
    if result.stdout.truncated or result.stderr.truncated:
        whole = result.stdout.total_bytes + result.stderr.total_bytes
        parts.append(f"[output cut; it was {whole} bytes]")
    if result.error is not None:
        error = result.error
        parts.append(error.traceback or f"{error.name}: {error.message}")
    if result.value is not None:
        parts.append(result.value.text)
    said = _SAID.get(result.end)
    if said is not None:
        text = said.format(code=result.exit_code, signal=result.signal, wall_s=wall_s)
        parts.append(f"[{text}; {_AFRESH}]" if result.session_over else f"[{text}]")
    elif language == "bash" and result.exit_code:
        parts.append(f"[exit code {result.exit_code}]")
    text = "\n".join(part.rstrip("\n") for part in parts if part.strip("\n"))
    return text or "[no output]"


def cut(text: str, chars: int) -> str:
    """The text's beginning and end, in at most `chars` characters."""
    if len(text) <= chars:
        return text
    note = f"\n... [{len(text) - chars} characters left out] ...\n"
    room = max(0, chars - len(note) - 8)
    head = room * 2 // 3
    return (text[:head] + note + text[len(text) - (room - head) :])[:chars]


def is_text(text: str) -> bool:
    """Whether it can be sent as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_path(path: str) -> bool:
    """Whether a session takes a file under this path again; a program can make others."""
    parts = path.split("/")
    if not is_text(path) or any(
        part in {"", ".", "..", ".assay"} or "\0" in part for part in parts
    ):
        return False
    sizes = [len(part.encode()) for part in parts]
    return max(sizes) <= _PART_BYTES and sum(sizes) + len(sizes) <= _PATH_BYTES


def _bytes(content: bytes | str) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def _refusal(error: CallError) -> Exception:
    """A call about files that the policy's own doing made impossible, as a text for it."""
    if isinstance(error, ProgramEndError) or error.reason in OF_FILES:
        return ToolError(str(error)[:300])
    return error
