"""The host of sessions as the service sees it: a process that is started again when it dies.

Many calls at a time, in the frames of `wire`. One that says itself that it cannot work here is
tried again after minutes.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.kit.errors import CallError, call_error, make_status
from assay.kit.pool import frames
from assay.kit.pool.frames import Frame, FrameError
from assay.kit.pool.link import ChildLink, Command, LinkError, LinkLimits, NeverReady
from assay.kit.reasons import Reason
from assay.sandbox.sessions import wire

LIMITS = LinkLimits(start_s=60.0, stop_s=20.0, take_s=math.inf, events=frozenset((wire.EVENT,)))
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 10.0
_LONGEST_REFUSED_S = 600.0
_STEADY_S = 10.0
_SECOND_LOOK_S = 0.2

_log = logging.getLogger(__name__)


class HostGone(Exception):
    """The host died before it answered, or did not answer in time. The text says how."""

    def __init__(self, how: str, cause: str = "host-died") -> None:
        super().__init__(how)
        self.cause = cause


@dataclass(slots=True, eq=False)
class HostCall:
    """A call that the host has not answered.

    Attributes:
        answer: the payload of DONE; raises HostGone, or the CallError of FAULT.
        on_event: called with the payload of each EVENT.
        heard: frames that had come before it was sent.
    """

    number: int
    answer: asyncio.Future[bytes]
    on_event: Callable[[bytes], None] | None = None
    heard: int = 0
    alarm: asyncio.TimerHandle | None = None


class HostLink:
    """The host.

    Args:
        command: starts it.
        refused_s: until it is tried again after it refused to come up.
        patience_s: how long it may take to answer, beyond what a cell may; one that says nothing
            at all meanwhile is killed.
        lost: called with how it ended, when its sessions are lost; every call of it has failed.

    Attributes:
        ready: what it said of itself.
        why_not: why it cannot work here, by its own words; empty where it may.
        restarts: how often it was started in place of one that died.
        life: another number after each death; what was made in an earlier life is lost.
    """

    def __init__(
        self,
        command: Command,
        lost: Callable[[str], None],
        patience_s: float,
        refused_s: float = 30.0,
    ) -> None:
        self.ready: Mapping[str, Any] = {}
        self.why_not = ""
        self.restarts = self.life = 0
        self._command = command
        self._lost = lost
        self._patience_s = patience_s
        self._heard = 0
        self._refused_s = refused_s
        self._link: ChildLink | None = None
        self._calls: dict[int, HostCall] = {}
        self._numbers = itertools.count(1)
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._settled = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        """It takes calls."""
        return self._up.is_set()

    @property
    def pid(self) -> int | None:
        """For logs and tests."""
        return None if self._link is None else self._link.pid

    async def start(self) -> None:
        """Starts it, and returns once it is up or has failed a first time."""
        self._keeping = asyncio.create_task(self._keep())
        await self._settled.wait()

    async def wait_up(self, timeout_s: float) -> bool:
        """Whether it takes calls, perhaps after a while."""
        if not self._up.is_set() and not self.why_not:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._up.wait()
            except TimeoutError:
                return False
        return self._up.is_set()

    def call(
        self,
        kind: bytes,
        payload: bytes,
        on_event: Callable[[bytes], None] | None = None,
        work_s: float = 0.0,
    ) -> HostCall:
        """Sends a call that has so much to do; where the host is down its answer is HostGone."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        call = HostCall(next(self._numbers), future, on_event, self._heard)
        if self._link is None or not self._up.is_set():
            future.set_exception(HostGone("it is not running"))
            return call
        try:
            self._link.send(kind, call.number, payload)
        except FrameError as error:
            future.set_exception(call_error(make_status(Reason.MESSAGE_TOO_LARGE, str(error))))
            return call
        self._calls[call.number] = call
        call.alarm = loop.call_later(work_s + self._patience_s, self._look, call)
        return call

    def cancel(self, call: HostCall) -> None:
        """Interrupts the cell of a call, which is still answered."""
        if self._link is not None and call.number in self._calls:
            self._link.send(frames.CANCEL, call.number)

    async def close(self) -> None:
        """Ends the host and with it every session. May be called more than once."""
        keeping, self._keeping = self._keeping, None
        if keeping is not None:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        self._fail("the server ended")

    async def _keep(self) -> None:
        pause_s, loop = _FIRST_PAUSE_S, asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            self._down.clear()
            link = self._link = ChildLink(self._command, LIMITS, self._on_frame, self._down.set)
            try:
                await self._run(link)
            except NeverReady as error:
                if not self.why_not:
                    _log.warning("sessions are not served: %s", error)
                self.why_not = str(error)
                # Its walls will hardly change; that its proof failed may have been the load.
                pause_s = max(pause_s, self._refused_s)
            except LinkError as error:
                _log.error("sessions are not served now: %s", error)
            finally:
                self._link = None
                self._settled.set()
            if loop.time() - began_s > _STEADY_S and not self.why_not:
                pause_s = _FIRST_PAUSE_S
            await asyncio.sleep(pause_s)
            self.restarts += not self.why_not
            pause_s = min(pause_s * 2, _LONGEST_REFUSED_S if self.why_not else _LONGEST_PAUSE_S)

    async def _run(self, link: ChildLink) -> None:
        """One life of the host."""
        try:
            await link.start()
            self.ready = link.ready
            self.why_not = ""
            self._up.set()
            self._settled.set()
            await self._down.wait()
        finally:
            self._up.clear()
            await link.close()
        how = link.how_it_ended()
        _log.error("the host of sessions is gone: %s", how)
        self.life += 1
        self._fail(how)
        self._lost(how)

    def _look(self, call: HostCall, again: bool = False) -> None:
        """A call is late. After a pause of the loop its answer may lie in the socket: twice."""
        if not again:
            loop = asyncio.get_running_loop()
            call.alarm = loop.call_later(_SECOND_LOOK_S, self._look, call, True)
            return
        self._calls.pop(call.number, None)
        if not call.answer.done():
            _log.error("the host of sessions did not answer a call")
            call.answer.set_exception(HostGone("it did not answer in time", "no-answer"))
        if self._link is not None and self._heard == call.heard:
            self._link.kill()

    def _on_frame(self, frame: Frame, _: float) -> None:
        self._heard += 1
        if frame.kind == wire.EVENT:
            call = self._calls.get(frame.number)
            if call is not None and call.on_event is not None:
                call.on_event(frame.payload)
            return
        call = self._calls.pop(frame.number, None)
        if call is None:
            return
        if call.alarm is not None:
            call.alarm.cancel()
        if call.answer.done():
            return
        if frame.kind == frames.DONE:
            call.answer.set_result(frame.payload)
        else:
            call.answer.set_exception(_error(frame))

    def _fail(self, how: str) -> None:
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if call.alarm is not None:
                call.alarm.cancel()
            if not call.answer.done():
                call.answer.set_exception(HostGone(how))
                call.answer.exception()  # seen: its caller may have gone away


def _error(frame: Frame) -> CallError:
    try:
        reason, message, facts = frames.read_fault(frame.payload)
    except FrameError as error:
        reason, message, facts = Reason.INTERNAL, f"the host's answer: {error}", {}
    return call_error(make_status(reason, message, metadata=facts))
