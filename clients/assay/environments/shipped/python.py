"""`python`: the policy writes Python into a session that remembers, and then answers.

Tool results follow from the row and the calls before, but for what a program asks of the clock or
of the operating system's randomness; `random` and numpy's generator begin alike in each session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from assay.clients.faults import make_fault
from assay.clients.sessions import SessionLimits
from assay.environments.cells import CellBounds, EpisodeSession
from assay.environments.environment import (
    Environment,
    EpisodeFault,
    Proof,
    Row,
    ToolResult,
    tool,
)
from assay.environments.services import EpisodeSandbox, open_sandbox
from assay.environments.shipped.workspaces import files_of
from assay.environments.types import ToolCall
from assay.kit.errors import ConfigError
from assay.kit.reasons import Reason


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """What the programs of an episode run in, and may take.

    Attributes:
        sandbox: its address; empty: one is started for the run.
        files: of the working folder, by path; a row's `files` come on top.
        memory_mb: of a session, its files included.
        cpu_s: CPU time of an episode.
        cell_s: time of one call.
        result_chars: of an answer; its middle is left out.
        restarts: sessions that a program may end.
        wait_s: for a place in the sandbox, and a call's turn; then a fault.
        verifier: of the last answer; empty: the run's. A row's goes before.
    """

    sandbox: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    memory_mb: int = 512
    cpu_s: float = 120.0
    cell_s: float = 10.0
    result_chars: int = 4000
    restarts: int = 3
    wait_s: float = 600.0
    verifier: str = ""

    def bounds(self) -> CellBounds:
        """As an `EpisodeSession` takes them."""
        limits = SessionLimits(
            cpu_time_s=self.cpu_s,
            cell_cpu_time_s=min(self.cell_s, self.cpu_s),
            cell_wall_time_s=self.cell_s,
            memory_bytes=self.memory_mb * 2**20,
            disk_bytes=self.memory_mb * 2**20 // 4,
        )
        return CellBounds(limits, self.cell_s, self.result_chars, self.restarts, self.wait_s)


@dataclass(frozen=True, slots=True)
class PythonSettings(ProgramSettings):
    """Of `python`.

    Attributes:
        packages: that the sandbox must have.
        setup: code run first in each session; a row's follows it.
    """

    packages: Sequence[str] = ()
    setup: str = ""


class ProgramEnvironment(Environment):
    """An environment whose episodes hold a session."""

    language = "python"
    repeatable = True
    state_read_by: ClassVar[Literal["nobody", "tools", "all"]] = "tools"
    settings: Any
    shared: EpisodeSandbox
    session: EpisodeSession | None = None

    @classmethod
    @contextmanager
    def open(cls, settings: Any) -> Iterator[EpisodeSandbox]:
        """The sandbox, for the run."""
        with open_sandbox(settings.sandbox, getattr(settings, "packages", ())) as sandbox:
            yield sandbox

    async def reset(self, row: Row) -> Any:
        """The row's prompt; the session begins with its files."""
        session = EpisodeSession(self.shared, self.language, self.settings.bounds())
        self.session = session
        session.put(self.files(row))
        return str(row["prompt"])

    def files(self, row: Row) -> Mapping[str, bytes | str]:
        """What the working folder holds at the start, by path."""
        try:
            return {**self.settings.files, **files_of(row)}
        except ConfigError as error:
            raise EpisodeFault(make_fault(Reason.MALFORMED_ROW, str(error))) from error

    async def reward(self) -> Any:
        """The verifier's result on the last answer; a call of a tool is none."""
        last = self.last
        answer = last.answer if last.calls else last.answer or last.text
        answer = answer.encode("utf-8", "replace").decode()  # half a character cannot be sent
        verifier = self.row.get("verifier") or self.settings.verifier
        return await self.judged(answer, **({"verifier": str(verifier)} if verifier else {}))

    async def close(self) -> None:
        """Ends the session."""
        if self.session is not None:
            await self.session.close()


class PythonEnvironment(ProgramEnvironment):
    """A Python interpreter that remembers; the last answer is judged."""

    name = "python"
    Settings = PythonSettings
    _prepared = 0

    @tool
    async def python(self, code: str) -> ToolResult:
        """Runs Python code and shows its output and the value of the last expression.

        Variables, imports and files stay for the next call.

        Args:
            code: the code to run.
        """
        session = self.session
        assert session is not None  # noqa: S101  # made by reset
        await session.start_again()
        if self._prepared and self._prepared != session.opened:
            await session.run(self._setup(self.row))  # of the first session; see reset
            self._prepared = session.opened
        return await session.show(code)

    async def reset(self, row: Row) -> Any:
        """Opens the session and runs the set-up code; where that fails, the row is a fault."""
        given = await super().reset(row)
        assert self.session is not None  # noqa: S101  # made by the line above
        code = self._setup(row)
        if code:
            self._prepared = 1
            result = await self.session.run(code)
            if not result.ok or result.session_over:
                why = result.error.message if result.error else result.end
                text = f"the set-up code of a session failed: {why}"
                raise EpisodeFault(make_fault(Reason.ENVIRONMENT_FAILED, text[:500]))
        return given

    def _setup(self, row: Row) -> str:
        return "\n".join(filter(None, (self.settings.setup, str(row.get("setup") or ""))))

    @classmethod
    def proofs(cls, settings: Any) -> Sequence[Proof]:
        """State is kept, a wrong answer earns nothing, and an end of the session is survived."""
        row = {"prompt": "2 ** 61 - 1?", "reference": str(2**61 - 1), "verifier": "exact"}
        del settings
        return (
            Proof(row, (_run("x = 2 ** 61"), _run("print(x - 1)"), str(2**61 - 1)), 1.0),
            Proof(row, (_run("1 / 0"), "0"), 0.0),
            Proof(row, (_run("import os; os._exit(1)"), _run("2 ** 61 - 1"), str(2**61 - 1)), 1.0),
        )


def _run(code: str) -> ToolCall:
    return ToolCall("python", {"code": code})
