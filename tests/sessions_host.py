"""A host of sessions that does as it is told, for faults that the real one cannot be made to have.

`python -m sessions_host --link-fd N [--settings JSON] [--script WORDS]` keeps no interpreter. The
code of a cell says what becomes of it:

    echo TEXT      writes TEXT, then ends well with its number
    wait           says that it runs, and goes on until it is interrupted
    stubborn S     the same, and takes S seconds more to end
    sleep S        ends well after S seconds
    over END       ends with CELL_END_<END>; the session is over
    lost           is answered with SESSION_LOST
    die            kills this process
    mute           is never answered
    deaf           ends the reading of further calls
    garbage        is answered with what is no message

WORDS: "unready FILE" refuses to come up until FILE is there, "unready" always, "dies" ends at once,
"nomake" makes no session.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import Any

from assay.api.session.v1 import session_pb2
from assay.kit.durations import fill_duration
from assay.kit.pool import frames
from assay.sandbox.sessions import wire

READY = (
    b'{"layers": ["none"], "level": "scripted", "copies": true, "why_not": "",'
    b' "packages": {"numpy": "2"}, "languages": ["python", "bash"]}'
)


class Host:
    def __init__(self, writer: asyncio.StreamWriter, script: str) -> None:
        self.writer = writer
        self.script = script
        self.cells: dict[int, int] = {}  # by session
        self.running: dict[int, asyncio.Event] = {}  # cells, by call
        self.tasks: set[asyncio.Task[None]] = set()
        self.checkpoints = 0
        self.deaf = False

    def send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        self.writer.write(frames.pack(kind, number, payload))

    def fault(self, number: int, reason: str, **facts: str) -> None:
        self.send(frames.FAULT, number, frames.pack_fault(reason, f"scripted {reason}", facts))

    def take(self, frame: frames.Frame) -> None:
        if self.deaf:
            return
        number = frame.number
        if frame.kind == frames.CANCEL:
            if number in self.running:
                self.running[number].set()
            return
        key, body = wire.read(frame.payload)
        if frame.kind == wire.CREATE:
            if "nomake" in self.script:
                self.fault(number, "WORKER_DIED")
                return
            assert session_pb2.CreateRequest.FromString(body).limits.memory_bytes > 0
            self.cells[key] = 0
            self.send(frames.DONE, number)
        elif frame.kind == wire.CLOSE:
            self.cells.pop(key, None)
            self.send(frames.DONE, number)
        elif key not in self.cells:
            self.fault(number, "SESSION_LOST", cause="unknown-key")
        elif frame.kind == wire.EXECUTE:
            self.running[number] = asyncio.Event()
            self.cells[key] += 1
            task = asyncio.create_task(self.execute(number, self.cells[key], body))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        else:
            self.send(frames.DONE, number, self.answer(frame, key).SerializeToString())

    def answer(self, frame: frames.Frame, key: int) -> Any:
        if frame.kind == wire.CHECKPOINT:
            self.checkpoints += 1
            response = session_pb2.CheckpointResponse(checkpoint_id=f"c{self.checkpoints}")
            fill_duration(response.took, 0.001)
            return response
        if frame.kind == wire.FORK:
            _, copies, body = wire.read_fork(frame.payload)
            assert session_pb2.ForkRequest.FromString(body).count == len(copies)
            self.cells.update(dict.fromkeys(copies, self.cells[key]))
            return session_pb2.ForkResponse()
        return {
            wire.PUT: session_pb2.PutFilesResponse(),
            wire.GET: session_pb2.GetFilesResponse(files=[session_pb2.SessionFile(path="a")]),
            wire.ROLLBACK: session_pb2.RollbackResponse(),
            wire.DROP: session_pb2.DropCheckpointsResponse(),
        }[frame.kind]

    async def execute(self, number: int, count: int, body: bytes) -> None:
        request = session_pb2.ExecuteRequest.FromString(body)
        assert request.wall_time.ToNanoseconds() > 0
        assert request.cpu_time.ToNanoseconds() > 0
        word, _, rest = request.code.partition(" ")
        result = session_pb2.CellResult(end=session_pb2.CELL_END_COMPLETED, number=count)
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif word == "mute":
            return
        elif word == "deaf":
            self.deaf = True
            return
        elif word == "lost":
            self.fault(number, "SESSION_LOST", cause="scripted")
            return
        elif word == "garbage":
            self.send(frames.DONE, number, b"\xff\xff")
            return
        elif word in {"echo", "wait", "stubborn"}:
            event = session_pb2.ExecuteResponse()
            event.output.stream = session_pb2.OUTPUT_STREAM_STDOUT
            event.output.data = rest.encode()
            self.send(wire.EVENT, number, event.SerializeToString())
            result.stdout.data = rest.encode()
        if word in {"wait", "stubborn"}:
            await self.running[number].wait()
            await asyncio.sleep(float(rest or 0))
            result.end = session_pb2.CELL_END_INTERRUPTED
        elif word == "sleep":
            await asyncio.sleep(float(rest))
        elif word == "over":
            result.end = session_pb2.CellEnd.Value(f"CELL_END_{rest}")
            result.session_over = True
        del self.running[number]
        self.send(
            frames.DONE, number, session_pb2.ExecuteResponse(result=result).SerializeToString()
        )


def refuses(script: str) -> bool:
    word, _, file = script.partition(" ")
    return word == "unready" and not (file and Path(file).exists())


async def serve(link: socket.socket, script: str) -> None:
    reader, writer = await asyncio.open_connection(sock=link)
    host = Host(writer, script)
    if "dies" in script:
        return
    if refuses(script):
        host.send(frames.NOT_READY, 0, b"no walls here")
    else:
        host.send(frames.READY, 0, READY)
    found = frames.FrameReader()
    while data := await reader.read(1 << 16):
        for frame in found.feed(data):
            host.take(frame)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--link-fd", type=int, required=True)
    parser.add_argument("--script", default="")
    parser.add_argument("--settings", default="")
    parser.add_argument("--log-json", action="store_true")
    options = parser.parse_args()
    asyncio.run(serve(socket.socket(fileno=options.link_fd), options.script))


if __name__ == "__main__":
    main()
