"""One cell on its way: its events to the caller, and its end, also where the caller went away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable

from google.protobuf.message import DecodeError

from assay.api.session.v1 import session_pb2
from assay.kit.errors import CallError, refuse
from assay.kit.reasons import Reason
from assay.sandbox.sessions import wire
from assay.sandbox.sessions.link import HostCall, HostLink

_NEVER_S = 1e8


class CellCall:
    """A cell that the host runs.

    Args:
        wall_s: the cell's limit on the clock.
        ended: called once, with the result or why there is none; gives the caller's error for that.

    Attributes:
        started_s: by the monotonic clock.
    """

    def __init__(
        self,
        link: HostLink,
        payload: bytes,
        wall_s: float,
        ended: Callable[[CellCall, session_pb2.CellResult | BaseException], CallError | None],
    ) -> None:
        self.started_s = time.monotonic()
        self._link = link
        self._ended = ended
        self._events: asyncio.Queue[session_pb2.ExecuteResponse | BaseException] = asyncio.Queue()
        self._call: HostCall = link.call(wire.EXECUTE, payload, self._on_event, wall_s)
        self._call.answer.add_done_callback(self._on_answer)

    def fail(self, error: CallError) -> None:
        """Ends it for its caller, who gets this; the cell is interrupted."""
        self._events.put_nowait(error)
        self.interrupt()

    def interrupt(self) -> None:
        """Interrupts it, if it runs."""
        self._link.cancel(self._call)

    async def events(self, timeout_s: float) -> AsyncGenerator[session_pb2.ExecuteResponse, None]:
        """What it does, to its result; a caller who goes away interrupts it.

        Raises:
            CallError: the deadline came, or there is no result.
        """
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(timeout_s, self._late) if timeout_s < _NEVER_S else None
        try:
            while True:
                event = await self._events.get()
                if isinstance(event, BaseException):
                    raise event
                yield event
                if event.HasField("result"):
                    return
        finally:
            if alarm is not None:
                alarm.cancel()
            self.interrupt()

    def _late(self) -> None:
        self.fail(
            refuse(
                Reason.DEADLINE_EXCEEDED,
                "the call's deadline came before the cell was done; it was interrupted",
            )
        )

    def _on_event(self, payload: bytes) -> None:
        try:
            self._events.put_nowait(session_pb2.ExecuteResponse.FromString(payload))
        except DecodeError:
            self.fail(refuse(Reason.INTERNAL, "the host's event cannot be read"))

    def _on_answer(self, answer: asyncio.Future[bytes]) -> None:
        error = answer.exception()
        if error is None:
            try:
                response = session_pb2.ExecuteResponse.FromString(answer.result())
            except DecodeError:
                error = refuse(Reason.INTERNAL, "the host's answer cannot be read")
        told = self._ended(self, response.result if error is None else error)
        self._events.put_nowait(response if told is None else told)
