"""One session in the host: its living branch, its checkpoints, what it has used.

Belongs to the host's event loop. The service sends one call at a time about a session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import marshal
import math
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2 as pb
from assay.kit.durations import fill_duration, seconds_of
from assay.kit.reasons import Reason
from assay.sandbox.domain import SandboxFault
from assay.sandbox.harness.protocol import TAG_BYTES, HarnessFrame
from assay.sandbox.sessions import files
from assay.sandbox.sessions.family import USERS, CopyRefused, SessionFamily
from assay.sandbox.sessions.held import ASLEEP, LIVE, FamilyLost, HeldBranch, Listener
from assay.sandbox.sessions.running import Emit, RunningCell
from assay.sandbox.sessions.settings import Allowance

_REPLY_S = 60.0
_COPIES_AT_ONCE = 16
_GONE_S = 0.02
_BEGIN_S = 0.1  # what a family takes to begin

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class HeldCheckpoint:
    """A branch that sleeps, and one that was copied from it ahead of the next rollback.

    Attributes:
        number: of the session's last cell before it.
    """

    branch: HeldBranch
    number: int
    spare: asyncio.Task[HeldBranch] | None = None


class HeldSession:
    """A session.

    Args:
        free: called once when the session needs its family no more.
    """

    def __init__(
        self,
        family: SessionFamily,
        branch: HeldBranch,
        limits: Allowance,
        free: Callable[[SessionFamily], None],
    ) -> None:
        self.family = family
        self.limits = limits
        self.language = "python"
        self._branch = branch
        self._free = free
        self._number = 0
        self._used_s = 0.0  # CPU time of the branches before this one
        self._checkpoints: dict[str, HeldCheckpoint] = {}
        self._made = 0  # checkpoints so far
        self._over: tuple[pb.CellEnd.ValueType, str] | None = None
        self._cell: RunningCell | None = None
        self._closed = False
        family.members += 1
        family.on_lost.add(self._lose)

    async def begin(self, request: pb.CreateRequest) -> None:
        """Makes the first branch the session's: its limits, files, environment, language.

        Raises:
            SandboxFault: SESSION_LOST or DISK_FULL.
        """
        limits, family = self.limits, self.family
        self.language = request.language
        _set_group(family, limits, 1)
        if limits.disk_bytes != family.disk_bytes:
            await family.ask("resize", self._branch.user, limits.disk_bytes)
        lowered = {
            "RLIMIT_CPU": math.ceil(limits.cpu_s) + 2,
            "RLIMIT_FSIZE": limits.disk_bytes,
        }
        if family.own_users:
            lowered["RLIMIT_NPROC"] = limits.processes
        if family.group is None:
            lowered["RLIMIT_DATA"] = limits.memory_bytes
        told = (request.language, dict(request.environment), lowered)
        await self._ask(b"B", b"b", told)
        if request.files:
            await self._write(request.files)

    async def execute(self, request: pb.ExecuteRequest, emit: Emit) -> pb.CellResult:
        """Runs a cell.

        Raises:
            SandboxFault: SESSION_ENDED or SESSION_LOST.
        """
        self.look()
        self._check_alive()
        limits = self.limits.lowered(
            wall_s=seconds_of(request.wall_time), cpu_s=seconds_of(request.cpu_time)
        )
        self._number += 1
        self._cell = RunningCell(
            self._branch,
            limits,
            self._number,
            emit,
            session_cpu_s=self._used_s + self._branch.cpu_s_as_seen(),
            spent=self._is_spent,
            killed=self._killed,
        )
        try:
            result = await self._cell.run(request.code)
        finally:
            self._cell = None
        if result.session_over:
            self._over = (result.end, result.detail)
        return result

    def look(self) -> None:
        """Ends a session of which something has spent the CPU time between cells."""
        if self._cell is None and self._over is None and self._is_spent():
            self._over = (pb.CELL_END_BUDGET_SPENT, f"more than {self.limits.cpu_s:g} s")
            self._branch.signal(signal.SIGKILL)

    def _is_spent(self) -> bool:
        # Of a family that was forked nobody can say whose a left-over process was.
        return self.family.forks == 0 and self.family.cpu_s() > self.limits.cpu_s + _BEGIN_S

    def interrupt(self) -> None:
        """Interrupts the cell that runs."""
        if self._cell is not None:
            self._cell.interrupt(pb.CELL_END_INTERRUPTED, "its caller gave it up")

    async def put(self, request: pb.PutFilesRequest) -> None:
        """Writes files as the program's user.

        Raises:
            SandboxFault: DISK_FULL, INVALID_PROGRAM, SESSION_ENDED or SESSION_LOST.
        """
        self._check_alive()
        await self._write(request.files)

    def get(self, request: pb.GetFilesRequest) -> pb.GetFilesResponse:
        """Reads or lists files, without the program's help.

        Raises:
            SandboxFault: MESSAGE_TOO_LARGE or SESSION_LOST.
        """
        self._check_there()
        if self._branch.folder < 0:
            self._fail_ended()
        if request.paths:
            return files.read(self._branch.folder, request.paths)
        return files.listing(self._branch.folder)

    async def checkpoint(self) -> pb.CheckpointResponse:
        """Keeps the state.

        Raises:
            SandboxFault: CANNOT_FORK, TOO_MANY_COPIES, SESSION_ENDED or SESSION_LOST.
        """
        started_s = time.monotonic()
        self._check_alive()
        if len(self._checkpoints) >= self.limits.checkpoints:
            raise SandboxFault(
                Reason.TOO_MANY_COPIES,
                f"the session has {len(self._checkpoints)} checkpoints, the most that it may hold: "
                "drop one",
            )
        [branch] = await self._copy(self._branch, 1, runs=False)
        branch.weigh(ASLEEP)
        self._made += 1
        name = str(self._made)
        self._checkpoints[name] = HeldCheckpoint(branch, self._number)
        self._prepare(self._checkpoints[name])
        response = pb.CheckpointResponse(checkpoint_id=name)
        fill_duration(response.took, time.monotonic() - started_s)
        return response

    async def rollback(self, request: pb.RollbackRequest) -> pb.RollbackResponse:
        """Puts a checkpoint in the living branch's place.

        Raises:
            SandboxFault: UNKNOWN_CHECKPOINT, CHECKPOINT_LOST, or SESSION_LOST.
        """
        started_s = time.monotonic()
        self._check_there()
        checkpoint = self._checkpoint(request.checkpoint_id)
        waiting = checkpoint.spare or self._prepare(checkpoint)
        checkpoint.spare = None
        old = self._branch
        used_s = self._used_s + old.cpu_s()
        try:
            branch = await waiting
            asyncio.get_running_loop().call_soon(self._end, old)
        except CopyRefused:  # perhaps for memory that the living branch holds
            branch = await self._replace(old, checkpoint)
        except FamilyLost:
            self._check_there()
            raise
        self._branch, self._used_s = branch, used_s
        self._number = checkpoint.number
        self._over = None
        branch.weigh(LIVE)
        self._prepare(checkpoint)
        response = pb.RollbackResponse()
        fill_duration(response.took, time.monotonic() - started_s)
        return response

    async def _replace(self, old: HeldBranch, checkpoint: HeldCheckpoint) -> HeldBranch:
        """Ends the living branch before the checkpoint is copied."""
        self._over = (pb.CELL_END_MEMORY_LIMIT, "there was no room to roll it back")
        self.family.branches.pop(old.user, None)
        old.close()
        await self.family.ask("kill", old.user)
        try:
            return await self._copy_ahead(checkpoint.branch)
        except CopyRefused as error:
            raise SandboxFault(
                Reason.CHECKPOINT_LOST, f"the checkpoint cannot be copied: {error}"
            ) from error

    async def fork(self, request: pb.ForkRequest, count: int) -> list[HeldSession]:
        """Copies the session, or a checkpoint of it.

        Raises:
            SandboxFault: as `checkpoint`, and UNKNOWN_CHECKPOINT or CHECKPOINT_LOST.
        """
        number = self._number
        if request.checkpoint_id:
            self._check_there()
            checkpoint = self._checkpoint(request.checkpoint_id)
            source, number = checkpoint.branch, checkpoint.number
        else:
            self._check_alive()
            source = self._branch
        _set_group(self.family, self.limits, self.family.members + count)
        made: list[HeldSession] = []
        self.family.forks += count
        try:
            while len(made) < count:
                some = min(_COPIES_AT_ONCE, count - len(made))
                for branch in await self._copy(source, some, runs=True):
                    branch.weigh(LIVE)
                    copy = HeldSession(self.family, branch, self.limits, self._free)
                    copy.language, copy._number = self.language, number
                    made.append(copy)
            if request.reseed:
                for place, copy in enumerate(made, start=1):
                    await copy._ask(b"S", b"s", place)  # noqa: SLF001  # of this class
        except BaseException:
            for copy in made:
                copy.close()
            _set_group(self.family, self.limits, self.family.members)
            raise
        return made

    def drop(self, names: list[str]) -> None:
        """Frees checkpoints."""
        for name in names:
            checkpoint = self._checkpoints.pop(name, None)
            if checkpoint is not None:
                self._end_checkpoint(checkpoint)

    def close(self) -> None:
        """Ends it."""
        if self._closed:
            return
        self._closed = True
        if self._cell is not None:
            self._cell.give_up(self._lost("it was closed"))
        self.family.on_lost.discard(self._lose)
        self.family.members -= 1
        if self.family.members <= 0:
            self._free(self.family)
            return
        self.drop(list(self._checkpoints))
        self._end(self._branch)
        _set_group(self.family, self.limits, self.family.members)

    def _end(self, branch: HeldBranch) -> None:
        if not self.family.lost:
            self.family.end(branch)

    def _end_checkpoint(self, checkpoint: HeldCheckpoint) -> None:
        self._end(checkpoint.branch)
        spare = checkpoint.spare
        if spare is not None:
            spare.add_done_callback(self._end_spare)

    def _end_spare(self, spare: asyncio.Task[HeldBranch]) -> None:
        if not spare.cancelled() and spare.exception() is None:
            self._end(spare.result())

    def _prepare(self, checkpoint: HeldCheckpoint) -> asyncio.Task[HeldBranch]:
        """Copies a checkpoint ahead of the next rollback to it."""
        checkpoint.spare = asyncio.create_task(self._copy_ahead(checkpoint.branch))
        checkpoint.spare.add_done_callback(_look_at)
        return checkpoint.spare

    async def _copy_ahead(self, source: HeldBranch) -> HeldBranch:
        self._check_room(source)
        [branch] = await self.family.copy(source.user, 1, runs=True)
        return branch

    def _check_room(self, source: HeldBranch) -> None:
        """Before the keeper copies files: it is the one whom a lack of memory would hit."""
        size_bytes = source.disk()[0]
        if not self.family.has_room(size_bytes):
            text = f"files of {size_bytes} bytes, for which the session's memory has no room"
            raise CopyRefused([text])

    async def _copy(self, source: HeldBranch, count: int, *, runs: bool) -> list[HeldBranch]:
        if not self.family.own_users:
            raise SandboxFault(
                Reason.CANNOT_FORK,
                "sessions cannot be copied where the service is not root: it has no users to give",
            )
        if len(self.family.branches) + count > USERS:
            raise SandboxFault(
                Reason.TOO_MANY_COPIES,
                f"the session's family has {len(self.family.branches)} branches, and may have "
                f"{USERS}: drop checkpoints or close forks",
            )
        try:
            self._check_room(source)
            return await self.family.copy(source.user, count, runs=runs)
        except CopyRefused as refusal:
            await asyncio.sleep(_GONE_S)  # the word that it has ended may be on its way
            self._check_there()
            if source.gone is not None:
                if source is self._branch:
                    self._check_alive()
                self._check_sleeper(source)
            raise SandboxFault(
                Reason.CANNOT_FORK,
                f"the session holds what no copy can: {refusal}",
                holds="\n".join(refusal.holds),
            ) from refusal
        except FamilyLost:
            self._check_there()
            raise

    def _checkpoint(self, name: str) -> HeldCheckpoint:
        checkpoint = self._checkpoints.get(name)
        if checkpoint is None:
            raise SandboxFault(
                Reason.UNKNOWN_CHECKPOINT, f"the session has no checkpoint {name[:40]!r}"
            )
        self._check_sleeper(checkpoint.branch)
        return checkpoint

    def _check_sleeper(self, branch: HeldBranch) -> None:
        if branch.gone is None:
            return
        for_memory = branch.gone.for_memory
        how = "ended by the session's memory limit" if for_memory else "killed from outside"
        raise SandboxFault(
            Reason.CHECKPOINT_LOST,
            f"the checkpoint's process was {how}",
            cause="memory-limit" if for_memory else "killed-from-outside",
        )

    async def _write(self, given: Iterable[execution_pb2.SourceFile]) -> None:
        request = [(file.path, file.content, 0o644) for file in given]
        problem = (await self._ask(b"P", b"p", request)).decode("utf-8", "replace")[:1000]
        kind, _, text = problem.partition(":")
        if kind == "full":
            raise SandboxFault(Reason.DISK_FULL, f"the session's disk has no room for {text}")
        if kind:
            raise SandboxFault(Reason.INVALID_PROGRAM, f"a file cannot be written: {text}")

    async def _ask(self, kind: bytes, answer: bytes, request: Any) -> bytes:
        """A request that the branch answers at once."""
        waiting = _Reply(self._branch, answer)
        try:
            self._branch.send(kind, waiting.tag, marshal.dumps(request))
            async with asyncio.timeout(_REPLY_S):
                return await waiting.content
        except TimeoutError:
            self._branch.signal(signal.SIGKILL)
            self._over = (pb.CELL_END_PROTOCOL_VIOLATION, "it did not answer")
            self._fail_ended()
        except _Ended:
            self._check_alive()
            raise
        finally:
            waiting.close()

    def _check_there(self) -> None:
        if self.family.lost:
            raise self._lost(self.family.why_lost)

    def _check_alive(self) -> None:
        self._check_there()
        if self._over is None and self._branch.gone is not None:
            self._over = self._killed() or self._died()
        if self._over is not None:
            self._fail_ended()

    def _fail_ended(self) -> NoReturn:
        assert self._over is not None  # noqa: S101  # the callers looked
        end, detail = self._over
        word = pb.CellEnd.Name(end).removeprefix("CELL_END_").lower().replace("_", "-")
        raise SandboxFault(
            Reason.SESSION_ENDED,
            f"the program ended its session earlier: {word} {detail}".rstrip(),
            end=word,
        )

    def _died(self) -> tuple[pb.CellEnd.ValueType, str]:
        gone = self._branch.gone
        assert gone is not None  # noqa: S101  # `_check_alive` looked
        code = os.waitstatus_to_exitcode(gone.status)
        return pb.CELL_END_DIED, f"signal {-code}" if code < 0 else f"exit code {code}"

    def _killed(self) -> tuple[pb.CellEnd.ValueType, str] | None:
        """Why the branch was killed, where not by us; None for its own doing.

        Raises:
            SandboxFault: SESSION_LOST: somebody else killed it.
        """
        gone = self._branch.gone
        assert gone is not None  # noqa: S101  # asked once it has ended
        if self._branch.unruly:
            return pb.CELL_END_PROTOCOL_VIOLATION, self._branch.unruly
        if not os.WIFSIGNALED(gone.status):
            return None
        number = os.WTERMSIG(gone.status)
        if number == signal.SIGSYS:
            return pb.CELL_END_SECURITY_VIOLATION, "a forbidden system call"
        if number == signal.SIGXCPU or self._used_s + gone.cpu_s > self.limits.cpu_s:
            return pb.CELL_END_BUDGET_SPENT, f"more than {self.limits.cpu_s:g} s of CPU time"
        if number != signal.SIGKILL or gone.over:
            return None
        if gone.for_memory:
            branch = self._branch
            used_bytes = gone.peak_bytes - branch.base_bytes + branch.disk()[0]
            if gone.others_computed and used_bytes < self.limits.memory_bytes:
                raise self._lost("its relatives used the memory of the family up")
            return pb.CELL_END_MEMORY_LIMIT, "the kernel ended it for lack of memory"
        # The program cannot send it to itself (`zygote.consent`).
        raise self._lost("its process was killed from outside, perhaps for the machine's memory")

    def _lost(self, cause: str) -> SandboxFault:
        return SandboxFault(Reason.SESSION_LOST, f"the session was lost: {cause}", cause=cause)

    def _lose(self) -> None:
        if self._cell is not None:
            self._cell.give_up(self._lost(self.family.why_lost))
        self._free(self.family)


class _Ended(Exception):
    """The branch ended before it answered."""


class _Reply(Listener):
    """Waits for one frame."""

    def __init__(self, branch: HeldBranch, kind: bytes) -> None:
        self.tag = os.urandom(TAG_BYTES)
        self.content: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._kind = kind
        self._branch = branch
        branch.listener = self

    def heard(self, message: HarnessFrame) -> bool:
        expected = message.tag == self.tag and message.kind == self._kind
        if expected and not self.content.done():
            self.content.set_result(message.content)
        return expected

    def ended(self) -> None:
        if not self.content.done():
            self.content.set_exception(_Ended())

    def close(self) -> None:
        self._branch.listener = Listener()


def _set_group(family: SessionFamily, limits: Allowance, members: int) -> None:
    copies = 2 * limits.checkpoints + 1
    family.limit(limits.memory_bytes * members, (limits.processes + copies) * members)


def _look_at(task: asyncio.Task[HeldBranch]) -> None:
    if not task.cancelled():
        with contextlib.suppress(BaseException):
            task.result()
