"""The host: a trusted process that keeps the living sessions, between the service and the walls.

It knows no tenant and no lease. `wire` says what it hears and answers.

Covered: a defect in one call costs that call a fault (INTERNAL); a session's trouble touches no
other; when the service is gone, everything here is killed.
Not covered: isolation, which is the zygote's and the keepers'.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from assay.api.session.v1 import session_pb2 as pb
from assay.kit import log_format
from assay.kit.errors import AssayError
from assay.kit.pool import frames
from assay.kit.pool.frames import Frame, FrameReader
from assay.kit.reasons import Reason
from assay.sandbox.domain import SandboxFault
from assay.sandbox.jail.launch import LaunchError
from assay.sandbox.sessions import wire
from assay.sandbox.sessions.held import FamilyLost
from assay.sandbox.sessions.nursery import Nursery
from assay.sandbox.sessions.session import HeldSession
from assay.sandbox.sessions.settings import LANGUAGES, Allowance, HostSettings

_CLOSE_ALARM_S = 15
_LOOK_S = 2.0
_BYTES = "the session's answer cannot be sent: it has too many bytes"

_log = logging.getLogger(__name__)


class Host(asyncio.Protocol):
    """Serves the calls of one link.

    Raises:
        LaunchError: no session can be made here.
    """

    def __init__(self, settings: HostSettings) -> None:
        self.gone = asyncio.Event()
        self._nursery = Nursery(settings)
        self._sessions: dict[int, HeldSession] = {}
        self._running: dict[int, HeldSession] = {}  # by the number of an EXECUTE
        self._begun: dict[int, bool] = {}  # cells to come, and whether they were given up
        self._tasks: set[asyncio.Task[None]] = set()
        self._reader = FrameReader()
        self._link: asyncio.WriteTransport | None = None
        self._kinds: dict[bytes, Callable[[int, bytes], Coroutine[Any, Any, bytes]]] = {
            wire.CREATE: self._create,
            wire.EXECUTE: self._execute,
            wire.PUT: self._put,
            wire.GET: self._get,
            wire.CHECKPOINT: self._checkpoint,
            wire.ROLLBACK: self._rollback,
            wire.FORK: self._fork,
            wire.DROP: self._drop,
            wire.CLOSE: self._close,
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.WriteTransport)  # noqa: S101  # a stream socket
        self._link = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        for frame in self._reader.feed(data):
            if frame.kind == frames.CANCEL:
                self._cancel(frame.number)
            elif frame.kind not in frames.COMMANDS:
                if frame.kind == wire.EXECUTE:
                    self._begun[frame.number] = False
                task = asyncio.create_task(self._serve(frame))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _cancel(self, number: int) -> None:
        session = self._running.get(number)
        if session is not None:
            session.interrupt()
        elif number in self._begun:  # it came with the frame before it
            self._begun[number] = True

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        del error
        self.gone.set()

    async def prove(self) -> None:
        """Runs a cell of our own, and copies it where that works.

        Raises:
            SandboxFault: it failed.
        """
        limits = Allowance(cell_wall_s=20.0)
        family, branch = await self._nursery.take()
        session = HeldSession(family, branch, limits, self._nursery.give_back)
        try:
            await session.begin(pb.CreateRequest(language="python", limits=limits.to_proto()))
            result = await session.execute(pb.ExecuteRequest(code="x = 41"), lambda _: None)
            if self._nursery.copies:
                point = await session.checkpoint()
                await session.execute(pb.ExecuteRequest(code="x = 0"), lambda _: None)
                await session.rollback(pb.RollbackRequest(checkpoint_id=point.checkpoint_id))
            result = await session.execute(pb.ExecuteRequest(code="x + 1"), lambda _: None)
            if result.value.data["text/plain"] != b"42":
                raise SandboxFault(
                    "WORKER_DIED", f"sessions do not work: the first one answered {result}"
                )
        finally:
            session.close()

    def about(self) -> dict[str, Any]:
        """What the service is told when the host is ready."""
        why_not = "" if self._nursery.copies else "the service is not root: it has no users to give"
        missing = [*self._nursery.missing]
        if self._nursery.group_missing:
            missing.append(f"cgroup: {self._nursery.group_missing}")
        return {
            "level": "namespaces",
            "copies": self._nursery.copies,
            "why_not": why_not,
            "missing": missing,
            "packages": self._nursery.versions(),
            "languages": list(LANGUAGES),
        }

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        """Sends a frame to the service."""
        if self._link is not None and not self._link.is_closing():
            self._link.write(frames.pack(kind, number, payload))

    def look(self) -> None:
        """Looks at what sessions use between their cells."""
        for session in self._sessions.values():
            session.look()

    def fill(self) -> None:
        """Makes spare sessions."""
        self._nursery.fill()

    def close(self) -> None:
        """Kills everything."""
        for task in self._tasks:
            task.cancel()
        self._nursery.close()

    async def _serve(self, frame: Frame) -> None:
        try:
            answer = await self._kinds[frame.kind](frame.number, frame.payload)
            self.send(frames.DONE, frame.number, answer)
        except SandboxFault as fault:
            self._fault(frame.number, fault.reason, fault.message, **fault.metadata)
        except FamilyLost as lost:
            self._fault(
                frame.number, Reason.SESSION_LOST, f"the session was lost: {lost}", cause=str(lost)
            )
        except frames.FrameError:
            self._fault(frame.number, Reason.MESSAGE_TOO_LARGE, _BYTES)
        except Exception as error:  # noqa: BLE001 - the worker loop
            _log.exception("the host of sessions failed on a call")
            text = f"the sandbox failed ({type(error).__name__})"
            self._fault(frame.number, Reason.INTERNAL, text)

    def _fault(self, number: int, reason: str, message: str, **facts: str) -> None:
        self.send(frames.FAULT, number, frames.pack_fault(reason, message, facts))

    def _session(self, key: int) -> HeldSession:
        session = self._sessions.get(key)
        if session is None:
            raise SandboxFault(Reason.SESSION_NOT_FOUND, "the host has no such session")
        return session

    async def _create(self, _: int, payload: bytes) -> bytes:
        key, body = wire.read(payload)
        request = pb.CreateRequest.FromString(body)
        family, branch = await self._nursery.take()
        limits = Allowance.from_proto(request.limits)
        session = HeldSession(family, branch, limits, self._nursery.give_back)
        try:
            await session.begin(request)
        except BaseException:
            session.close()
            raise
        self._sessions[key] = session
        return b""

    async def _execute(self, number: int, payload: bytes) -> bytes:
        given_up = self._begun.pop(number)
        key, body = wire.read(payload)
        session = self._session(key)
        if given_up:
            result = pb.CellResult(end=pb.CELL_END_INTERRUPTED, detail="given up before it began")
            return pb.ExecuteResponse(result=result).SerializeToString()
        self._running[number] = session
        try:
            result = await session.execute(
                pb.ExecuteRequest.FromString(body),
                lambda event: self.send(wire.EVENT, number, event.SerializeToString()),
            )
        finally:
            del self._running[number]
        return pb.ExecuteResponse(result=result).SerializeToString()

    async def _put(self, _: int, payload: bytes) -> bytes:
        key, body = wire.read(payload)
        await self._session(key).put(pb.PutFilesRequest.FromString(body))
        return b""

    async def _get(self, _: int, payload: bytes) -> bytes:
        key, body = wire.read(payload)
        return self._session(key).get(pb.GetFilesRequest.FromString(body)).SerializeToString()

    async def _checkpoint(self, _: int, payload: bytes) -> bytes:
        key, _body = wire.read(payload)
        return (await self._session(key).checkpoint()).SerializeToString()

    async def _rollback(self, _: int, payload: bytes) -> bytes:
        key, body = wire.read(payload)
        request = pb.RollbackRequest.FromString(body)
        return (await self._session(key).rollback(request)).SerializeToString()

    async def _fork(self, _: int, payload: bytes) -> bytes:
        key, keys, body = wire.read_fork(payload)
        request = pb.ForkRequest.FromString(body)
        made = await self._session(key).fork(request, len(keys))
        self._sessions.update(zip(keys, made, strict=True))
        return b""

    async def _drop(self, _: int, payload: bytes) -> bytes:
        key, body = wire.read(payload)
        self._session(key).drop(list(pb.DropCheckpointsRequest.FromString(body).checkpoint_ids))
        return b""

    async def _close(self, _: int, payload: bytes) -> bytes:
        key, _body = wire.read(payload)
        session = self._sessions.pop(key, None)
        if session is not None:
            session.close()
        return b""


async def serve(link: socket.socket, settings: HostSettings) -> None:
    """Serves a link until the service is gone."""
    link.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        host = Host(settings)
    except (LaunchError, AssayError, OSError) as error:
        await loop.sock_sendall(link, frames.pack(frames.NOT_READY, 0, str(error).encode()))
        return
    try:
        try:
            await host.prove()
        except (SandboxFault, FamilyLost) as error:
            await loop.sock_sendall(link, frames.pack(frames.NOT_READY, 0, str(error).encode()))
            return
        await loop.create_connection(lambda: host, sock=link)
        host.send(frames.READY, 0, json.dumps(host.about()).encode())
        host.fill()
        while not host.gone.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(host.gone.wait(), _LOOK_S)
            host.look()
    finally:
        signal.alarm(_CLOSE_ALARM_S)  # should something refuse to close, this process ends
        host.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a host on the link that the service passed."""
    parser = argparse.ArgumentParser(description="Internal process of the Assay sandbox.")
    parser.add_argument("--link-fd", type=int, required=True)
    parser.add_argument("--settings", required=True)
    parser.add_argument(log_format.WORKER_FLAG, action="store_true")
    options = parser.parse_args(arguments)
    # The server decides when to stop; a handler, as what is ignored is inherited.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    log_format.set_up_worker(options.log_json)
    os.set_inheritable(options.link_fd, False)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with socket.socket(fileno=options.link_fd) as link:
        asyncio.run(serve(link, HostSettings.from_json(options.settings)))


if __name__ == "__main__":
    main()
