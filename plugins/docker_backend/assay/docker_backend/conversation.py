"""Frames between the service and a container's first process, over Docker's attach connection."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator

from assay.docker_backend import container_init as init

RECEIVE_BYTES = 1 << 18
SEND_BYTES = 1 << 18
COMPLAINT_BYTES = 2000
_STREAM = struct.Struct("!BxxxI")  # Docker's own frames: which output, how many bytes
_STDERR = 2


class Conversation:
    """Frames out, frames in; nothing here blocks.

    Attributes:
        closed: the other side is gone.
        complaint: the last that the first process wrote to its stderr, for a fault's text.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._outbox: list[memoryview] = []  # last first
        self._raw = bytearray()
        self._frames = bytearray()
        # The pump waits for reading only: this descriptor is readable when the connection is
        # writable.
        self._writable = select.epoll()
        self.closed = False
        self.complaint = b""

    def watched(self) -> tuple[int, ...]:
        """Descriptors to wait on for reading."""
        if self.closed:
            return ()
        if self._outbox:
            return self._connection.fileno(), self._writable.fileno()
        return (self._connection.fileno(),)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Queues one frame of at most `init.PART_BYTES`, and writes what can be written now."""
        self._queue(init.HEADER.pack(kind, len(payload)), payload)
        self.flush()

    def send_parts(self, kind: bytes, data: bytes, header: object = None) -> None:
        """Queues data as frames of its kind, each behind the header if there is one."""
        step = init.PART_BYTES // 2
        for start in range(0, max(1, len(data)), step):
            part = data[start : start + step]
            payload = part if header is None else init.named(header, part)
            self._queue(init.HEADER.pack(kind, len(payload)), payload)
        self.flush()

    def _queue(self, *pieces: bytes) -> None:
        if not self.closed:
            if not self._outbox:
                self._writable.register(self._connection, select.EPOLLOUT)
            self._outbox[:0] = [memoryview(piece) for piece in reversed(pieces) if piece]

    def flush(self) -> None:
        """Writes what the connection takes now."""
        while self._outbox:
            try:
                sent = self._connection.send(self._outbox[-1][:SEND_BYTES])
            except BlockingIOError:
                return
            except OSError:
                self._outbox.clear()  # it is gone; reading will say so
                sent = 0
            if self._outbox:
                self._outbox[-1] = self._outbox[-1][sent:]
                if not self._outbox[-1]:
                    self._outbox.pop()
            if not self._outbox:
                self._writable.unregister(self._connection)

    def receive(self) -> Iterator[tuple[bytes, bytes]]:
        """Reads once, and gives the frames that are complete."""
        try:
            chunk = self._connection.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.closed = True
        self._raw += chunk
        self._unwrap()
        start = 0
        while len(self._frames) - start >= init.HEADER.size:
            kind, size = init.HEADER.unpack_from(self._frames, start)
            end = start + init.HEADER.size + size
            if len(self._frames) < end:
                break
            yield kind, bytes(self._frames[start + init.HEADER.size : end])
            start = end
        del self._frames[:start]

    def _unwrap(self) -> None:
        """Removes Docker's own framing."""
        start = 0
        while len(self._raw) - start >= _STREAM.size:
            stream, size = _STREAM.unpack_from(self._raw, start)
            end = start + _STREAM.size + size
            if len(self._raw) < end:
                break
            data = self._raw[start + _STREAM.size : end]
            if stream == _STDERR:
                self.complaint = (self.complaint + data)[-COMPLAINT_BYTES:]
            else:
                self._frames += data
            start = end
        del self._raw[:start]

    def close(self) -> None:
        """Drops what was not sent; the connection itself belongs to the container."""
        self.closed = True
        self._outbox.clear()
        self._writable.close()
