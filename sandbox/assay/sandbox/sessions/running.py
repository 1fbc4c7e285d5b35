"""A cell in progress, from its code to its result. Belongs to the host's event loop.

Covered: output is read whatever its size, and never blocks the program for long; what the program
says is hostile data, and what breaks the protocol ends the session as its own doing; time counts
from the cell's first moment to its last.
Not covered: CPU time of processes that outlive the cell, until they end.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import signal
import time
from collections.abc import Callable, Mapping

from assay.api.session.v1 import session_pb2 as pb
from assay.kit.durations import fill_duration
from assay.kit.plain import to_plain
from assay.sandbox.domain import SandboxFault
from assay.sandbox.harness.codec import decode
from assay.sandbox.harness.protocol import TAG_BYTES, HarnessFrame
from assay.sandbox.harness.references import CodecError
from assay.sandbox.sessions.held import HeldBranch, Listener
from assay.sandbox.sessions.settings import Allowance

_TICK_S = 0.1
_GRACE_S = 2.0  # from an interrupt until the cell is killed
_AGAIN_S = 0.5  # until it is interrupted again: the first may have come before the cell began
_EXIT_S = 1.0  # from a closed channel until its process must have ended
# More than an outcome needs takes us long to read, and others would wait.
_FRAME_BYTES, _PLAIN_BYTES, _FRAME_PARTS = 4 * 2**20, 20 * 2**10, 1_000
_SHOWN_BYTES = 8 * 2**20
_ENDS = {
    "completed": pb.CELL_END_COMPLETED,
    "raised": pb.CELL_END_RAISED,
    "exited": pb.CELL_END_EXITED,
    "interrupted": pb.CELL_END_INTERRUPTED,
}

Emit = Callable[[pb.ExecuteResponse], None]


class RunningCell(Listener):
    """Runs one cell in a branch.

    Args:
        session_cpu_s: CPU seconds of the session before this cell.
        spent: whether all processes of the session together have used its CPU time up.
        killed: why the branch was killed, None where it ended by itself; asked once it has
            ended. Raises SandboxFault where that was not the program's doing.
    """

    def __init__(
        self,
        branch: HeldBranch,
        limits: Allowance,
        number: int,
        emit: Emit,
        *,
        session_cpu_s: float,
        spent: Callable[[], bool],
        killed: Callable[[], tuple[pb.CellEnd.ValueType, str] | None],
    ) -> None:
        self._branch = branch
        self._limits = limits
        self._number = number
        self._emit = emit
        self._killed = killed
        self._session_cpu_s = session_cpu_s
        self._spent = spent
        self._tag = os.urandom(TAG_BYTES)
        self._kept = {1: bytearray(), 2: bytearray()}
        self._total = {1: 0, 2: 0}
        self._shown_bytes = 0
        self._asked: pb.CellEnd.ValueType | None = None
        self._detail = ""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._kill_at_s = self._again_at_s = 0.0
        self._is_killed = False  # what it says now comes too late
        self._result: asyncio.Future[pb.CellResult] = self._loop.create_future()

    async def run(self, code: str) -> pb.CellResult:
        """Runs it to its end."""
        branch = self._branch
        branch.drain()  # what a thread wrote between the cells belongs to no cell
        branch.listener = self
        branch.computes = True
        self._started_s = time.monotonic()
        self._cpu_before_s = branch.cpu_s_as_seen()
        branch.send(b"X", self._tag, marshal.dumps((self._number, code)))
        self._timer = self._loop.call_later(min(_TICK_S, self._limits.cell_wall_s), self._look)
        try:
            return await self._result
        finally:
            self._timer.cancel()
            branch.listener = Listener()
            branch.computes = False

    def interrupt(self, end: pb.CellEnd.ValueType, detail: str = "") -> None:
        """Interrupts it; it is killed where it does not heed that."""
        if self._asked is None and not self._result.done():
            self._asked, self._detail = end, detail
            self._branch.signal(signal.SIGINT)
            self._again(_AGAIN_S)
            self._kill_at_s = time.monotonic() + _GRACE_S
            self._again_at_s = time.monotonic() + _AGAIN_S

    def kill(self, end: pb.CellEnd.ValueType, detail: str) -> None:
        """Kills the session for what the cell did."""
        if not self._result.done():
            self._asked, self._detail = end, detail
            self._is_killed = True
            self._branch.signal(signal.SIGKILL)

    def heard(self, message: HarnessFrame) -> bool:
        """See `Listener`."""
        if message.tag != self._tag or self._result.done() or self._is_killed:
            return False
        try:
            _check_size(message.content)
            if message.kind == b"R":
                self._finish(message.content)
            elif message.kind == b"V":
                self._show(decode(message.content))
            else:
                raise CodecError("no frame of a cell")
        except CodecError as error:
            self.kill(pb.CELL_END_PROTOCOL_VIOLATION, f"its answer cannot be read: {error}")
        return True

    def wrote(self, stream: int, data: bytes) -> bool:
        """See `Listener`; what comes after the result belongs to no cell."""
        if self._result.done():
            return False
        self._total[stream] += len(data)
        kept = self._kept[stream]
        piece = data[: self._limits.output_bytes - len(kept)]
        if piece:
            kept += piece
            chunk = pb.OutputChunk(
                stream=pb.OUTPUT_STREAM_STDOUT if stream == 1 else pb.OUTPUT_STREAM_STDERR,
                data=piece,
            )
            self._emit(pb.ExecuteResponse(output=chunk))
        if self._total[stream] > self._limits.max_output_bytes:
            self.kill(pb.CELL_END_OUTPUT_LIMIT, f"{self._total[stream]} bytes written")
        return True

    def broke(self) -> None:
        """See `Listener`: unless its process has ended, the program did that."""
        self._loop.call_later(_EXIT_S, self._must_have_ended)

    def _must_have_ended(self) -> None:
        if self._branch.gone is None:
            self.kill(
                pb.CELL_END_PROTOCOL_VIOLATION, "its line to us is closed, or holds no frames"
            )

    def ended(self) -> None:
        """See `Listener`: the session is over."""
        gone = self._branch.gone
        if gone is None or self._result.done():
            return
        known = None if self._asked is None else (self._asked, self._detail)
        try:
            end, detail = known or self._killed() or (pb.CELL_END_DIED, "")
        except SandboxFault as fault:
            self._result.set_exception(fault)
            return
        result = self._new_result(end)
        result.session_over = True
        result.detail = detail
        if end == pb.CELL_END_DIED:
            if os.WIFSIGNALED(gone.status):
                result.signal = os.WTERMSIG(gone.status)
            else:
                result.exit_code = os.WEXITSTATUS(gone.status)
        self._result.set_result(result)

    def give_up(self, error: BaseException) -> None:
        """The session is lost."""
        if not self._result.done():
            self._result.set_exception(error)

    def _look(self) -> None:
        """Looks at the limits that the kernel does not enforce."""
        if self._result.done():
            return
        now_s = time.monotonic()
        cpu_s = self._branch.cpu_s() - self._cpu_before_s
        if self._kill_at_s and now_s >= self._kill_at_s:
            self._is_killed = True
            self._branch.signal(signal.SIGKILL)
            return
        if self._kill_at_s and now_s >= self._again_at_s:
            self._branch.signal(signal.SIGINT)
            self._again_at_s += _AGAIN_S
        if self._session_cpu_s + cpu_s > self._limits.cpu_s or self._spent():
            self.kill(pb.CELL_END_BUDGET_SPENT, f"more than {self._limits.cpu_s:g} s of CPU time")
            return
        own_bytes = self._branch.memory_bytes_as_seen - self._branch.base_bytes
        if own_bytes > self._limits.memory_bytes:
            # The kernel counts its family together.
            self.kill(pb.CELL_END_MEMORY_LIMIT, f"more than {self._limits.memory_bytes} bytes")
            return
        if self._asked is None:
            if now_s - self._started_s >= self._limits.cell_wall_s:
                text = f"more than {self._limits.cell_wall_s:g} s"
                self.interrupt(pb.CELL_END_WALL_TIME_LIMIT, text)
                return
            if cpu_s >= self._limits.cell_cpu_s:
                text = f"more than {self._limits.cell_cpu_s:g} s of CPU time"
                self.interrupt(pb.CELL_END_CPU_TIME_LIMIT, text)
                return
        left_s = min(_TICK_S, self._started_s + self._limits.cell_wall_s - now_s)
        if self._kill_at_s:
            left_s = min(_AGAIN_S, self._kill_at_s - now_s)
        self._again(max(0.001, left_s))

    def _again(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._look)

    def _show(self, bundle: object) -> None:
        value = _bundle(bundle)
        self._shown_bytes += value.ByteSize()
        if self._shown_bytes > _SHOWN_BYTES:
            self.kill(pb.CELL_END_OUTPUT_LIMIT, f"more than {_SHOWN_BYTES} bytes shown")
            return
        self._emit(pb.ExecuteResponse(display=value))

    def _finish(self, content: bytes) -> None:
        self._branch.drain()
        if self._result.done() or self._is_killed:
            return
        result = self._new_result(pb.CELL_END_COMPLETED)
        if content:
            _fill(result, decode(content))
        if self._asked is not None:
            result.end, result.detail = self._asked, self._detail
        self._result.set_result(result)

    def _new_result(self, end: pb.CellEnd.ValueType) -> pb.CellResult:
        wall_s = time.monotonic() - self._started_s
        result = pb.CellResult(end=end, number=self._number)
        for stream, output in ((1, result.stdout), (2, result.stderr)):
            output.data = bytes(self._kept[stream])
            output.total_bytes = self._total[stream]
            output.truncated = output.total_bytes > len(output.data)
        usage = result.usage
        cpu_s = max(0.0, self._branch.cpu_s() - self._cpu_before_s)
        fill_duration(usage.cpu_time, cpu_s)
        fill_duration(usage.wall_time, wall_s)
        fill_duration(usage.session_cpu_time, self._session_cpu_s + cpu_s)
        usage.memory_bytes = self._branch.memory_bytes_as_seen
        usage.disk_bytes, usage.files = self._branch.disk()
        return result


def _check_size(content: bytes) -> None:
    parts = sum(map(content.count, (b",", b"[", b"{")))
    if len(content) > _FRAME_BYTES or parts > _FRAME_PARTS:
        raise CodecError(f"{len(content)} bytes, {parts} parts")


def _fill(result: pb.CellResult, outcome: object) -> None:
    """Writes what the program says came of its cell.

    Raises:
        CodecError: it is none of an outcome.
    """
    if not isinstance(outcome, list) or len(outcome) != 5:
        raise CodecError("no outcome of a cell")
    end, code, value, plain, error = outcome
    if end not in _ENDS or type(code) is not int or not 0 <= code <= 255:
        raise CodecError("no end of a cell")
    result.end, result.exit_code = _ENDS[end], code
    if value is not None:
        result.value.CopyFrom(_bundle(value))
    if plain:
        if not isinstance(plain, bytes) or len(plain) > _PLAIN_BYTES:
            raise CodecError("no plain value")
        try:
            result.plain_value.CopyFrom(to_plain(decode(plain)))
        except (TypeError, ValueError):  # data that the contract has no word for
            result.ClearField("plain_value")
    if error:
        if not isinstance(error, list) or len(error) != 3:
            raise CodecError("no error of a cell")
        if not all(isinstance(part, bytes) for part in error):
            raise CodecError("no error of a cell")
        name, message, traceback = (part.decode("utf-8", "replace") for part in error)
        result.error.CopyFrom(pb.CellError(name=name, message=message, traceback=traceback))


def _bundle(value: object) -> pb.DisplayValue:
    if not isinstance(value, Mapping) or "text/plain" not in value:
        raise CodecError("no value that can be shown")
    data: dict[str, bytes] = {}
    for kind, content in value.items():
        if not isinstance(kind, str) or not isinstance(content, bytes) or len(kind) > 200:
            raise CodecError("no value that can be shown")
        data[_text(kind)] = content
    return pb.DisplayValue(data=data)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise CodecError("no text")
    return value.encode("utf-8", "replace").decode()
