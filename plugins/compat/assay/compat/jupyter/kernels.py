"""Kernels as they are kept here: each a session, and whoever listens to it.

A kernel lives while somebody is connected to it, and its lease longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from assay.api.session.v1 import session_pb2
from assay.compat.cells import CellFailure, Decoders, Json, raised_by
from assay.compat.jupyter import wire
from assay.compat.sessions import LocalSessions
from assay.kit.calls import tenant_var
from assay.kit.durations import seconds_of
from assay.kit.errors import CallError, refuse
from assay.kit.http.config import MAX_TIMEOUT_S
from assay.kit.reasons import Reason

CALL_S = 60.0
Send = Callable[[str], None]

_GRACE_S = 60.0
_MOST_UNSENT_CHARS = 2**26
_MOST_WAITING = 64


def soon(seconds: float = CALL_S) -> float:
    """A deadline, by the clock of the loop."""
    return asyncio.get_running_loop().time() + seconds


class Outbox:
    """What is on its way to a caller.

    Attributes:
        broken: the caller did not keep up, and what came since is lost.
    """

    def __init__(self) -> None:
        self._unsent: asyncio.Queue[str] = asyncio.Queue()
        self._chars = 0
        self.broken = False

    def tell(self, text: str) -> None:
        """Sends a message, soon."""
        self.broken = self.broken or self._chars + len(text) > _MOST_UNSENT_CHARS
        if not self.broken:
            self._chars += len(text)
            self._unsent.put_nowait(text)

    async def next(self) -> str:
        """The next message to be sent."""
        text = await self._unsent.get()
        self._chars -= len(text)
        return text


@dataclass(slots=True)
class Kernel:
    """A kernel.

    Attributes:
        state: "starting", "idle", "busy" or "dead".
        listeners: what is published goes to all of them.
        running: the cells that run or wait, the first of them now.
        runs: the number of its last cell.
        touched_s: when its lease began, by the monotonic clock.
    """

    id: str
    name: str
    tenant: str
    session: session_pb2.Session
    state: str = "starting"
    listeners: list[Send] = field(default_factory=list)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    running: list[asyncio.Task[None]] = field(default_factory=list)
    runs: int = 0
    touched_s: float = field(default_factory=time.monotonic)
    active: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def lease_s(self) -> float:
        """How long it lives without a call."""
        return seconds_of(self.session.lease_left)

    @property
    def is_over(self) -> bool:
        """Its lease has run out, while nobody was connected."""
        over_s = time.monotonic() - self.touched_s - self.lease_s
        return over_s > _GRACE_S and not self.listeners and not self.running

    @property
    def model(self) -> Json:
        """As Jupyter's API has it."""
        return {
            "id": self.id,
            "name": self.name,
            "last_activity": self.active.isoformat().replace("+00:00", "Z"),
            "execution_state": self.state,
            "connections": len(self.listeners),
        }

    def publish(self, kind: str, content: Json, parent: Json) -> None:
        """Tells everybody who listens."""
        text = wire.message("iopub", kind, content, parent, self.id)
        for listener in list(self.listeners):
            listener(text)

    def become(self, state: str, parent: Json) -> None:
        """Has another state, and says so."""
        self.state = state
        self.active = datetime.now(UTC)
        self.publish("status", {"execution_state": state}, parent)


class Kernels:
    """The kernels of this process, of all tenants."""

    def __init__(self, sessions: LocalSessions) -> None:
        self.sessions = sessions
        self._kernels: dict[str, Kernel] = {}

    def mine(self) -> list[Kernel]:
        """The caller's; those whose lease has run out are forgotten."""
        for kernel in [one for one in self._kernels.values() if one.is_over]:
            del self._kernels[kernel.id]
        return [one for one in self._kernels.values() if one.tenant == tenant_var.get()]

    async def find(self, kernel_id: str) -> Kernel:
        """One of the caller's, whose lease begins anew.

        Raises:
            NotFoundError: SESSION_NOT_FOUND.
        """
        for kernel in self.mine():
            if kernel.id == kernel_id:
                if await self._touch(kernel):
                    return kernel
                del self._kernels[kernel.id]
        raise refuse(Reason.SESSION_NOT_FOUND, f"no kernel {kernel_id[:60]!r}")

    async def _touch(self, kernel: Kernel) -> bool:
        """Begins a kernel's lease anew; whether it is there."""
        kernel.touched_s = time.monotonic()
        return bool(await self.sessions.renew([kernel.session.id], soon()))

    async def start(self, name: str) -> Kernel:
        """Opens a session as a kernel.

        Raises:
            CallError: no such kernel, or no room.
        """
        if name not in wire.KERNELS:
            raise refuse(Reason.UNKNOWN_LANGUAGE, f"{name[:60]!r} is no kernel: python3, bash are")
        self.mine()
        session = await self.sessions.create(_request(name), soon())
        kernel = Kernel(str(uuid.uuid4()), name, tenant_var.get(), session)
        self._kernels[kernel.id] = kernel
        kernel.state = "idle"
        return kernel

    async def end(self, kernel: Kernel) -> None:
        """Ends a kernel."""
        self._kernels.pop(kernel.id, None)
        for task in kernel.running:
            task.cancel()
        await self.sessions.close([kernel.session.id])
        kernel.become("dead", {})

    def interrupt(self, kernel: Kernel) -> None:
        """Interrupts the cell that runs."""
        if kernel.running:
            kernel.running[0].cancel()

    async def restart(self, kernel: Kernel) -> None:
        """Another interpreter; its files stay."""
        for task in kernel.running:
            task.cancel()
        async with kernel.turn:
            request = _request(kernel.name)
            kernel.session = await self.sessions.anew(kernel.session.id, request, soon())
            kernel.runs = 0
        kernel.become("restarting", {})
        kernel.state = "idle"

    async def keep(self, kernel: Kernel) -> None:
        """Renews a kernel's lease for as long as this runs."""
        while True:
            with contextlib.suppress(CallError):
                await self._touch(kernel)
            await asyncio.sleep(max(1.0, kernel.lease_s / 3))

    def run(self, kernel: Kernel, asked: wire.KernelMessage, answer: Send) -> None:
        """Has a cell run after those before it.

        Raises:
            CallError: too many wait.
        """
        if len(kernel.running) >= _MOST_WAITING:
            raise refuse(Reason.QUEUE_FULL, f"{_MOST_WAITING} cells wait for this kernel")
        task = asyncio.create_task(self._run(kernel, asked, answer))
        kernel.running.append(task)
        task.add_done_callback(kernel.running.remove)

    async def _run(self, kernel: Kernel, asked: wire.KernelMessage, answer: Send) -> None:
        """Runs a cell; however that ends, there is a reply and the kernel is idle again."""
        parent = asked.header
        raised: CellFailure | None = None
        dead = False
        try:
            async with kernel.turn:
                kernel.runs += 1
                kernel.become("busy", parent)
                told = {"code": asked.code, "execution_count": kernel.runs}
                kernel.publish("execute_input", told, parent)
                result = await self._publish(kernel, asked)
            raised = raised_by(result)
            dead = result.session_over
        except asyncio.CancelledError:  # by `interrupt`, which has no other effect
            raised = CellFailure("KeyboardInterrupt", "", ("KeyboardInterrupt\n",))
            kernel.publish("error", wire.error_of(raised), parent)
        except CallError as error:
            raised = CellFailure(error.reason, str(error), (f"{error.reason}: {error}\n",))
            kernel.publish("error", wire.error_of(raised), parent)
            dead = True
        answer(
            wire.message(
                "shell", "execute_reply", wire.reply(raised, kernel.runs), parent, kernel.id
            )
        )
        kernel.touched_s = time.monotonic()
        kernel.become("idle", parent)
        if dead:
            kernel.become("dead", {})

    async def _publish(self, kernel: Kernel, asked: wire.KernelMessage) -> session_pb2.CellResult:
        """Runs a cell, and publishes what it does."""
        decoders = Decoders()
        events = self.sessions.events(kernel.session.id, asked.code, soon(MAX_TIMEOUT_S))
        async with aclosing(events):
            async for event in events:
                for kind, content in wire.published(event, decoders, kernel.runs):
                    kernel.publish(kind, content, asked.header)
                if event.HasField("result"):
                    return event.result
        raise refuse(Reason.SESSION_LOST, "the cell has no result")


def _request(name: str) -> session_pb2.CreateRequest:
    return session_pb2.CreateRequest(language=wire.KERNELS[name])
