"""Frames over the private socket, as a harness sends and receives them: it waits for each.

A frame is four bytes of length, big-endian, and as many bytes. Its first byte says what it is.

    to the candidate    Q a request        R the result of a callback
    from both           H hello: the harness is up, and nothing of the program has run yet
    from the candidate  A an answer        K a callback: it calls an object of the tester's
    to the tester       B what to test     A, K relayed
    from the tester     Q, R relayed       D done: what it found
"""

from __future__ import annotations

import os
import struct
from typing import Final

MAX_FRAME: Final = 64 * 2**20
HELLO: Final = b"H"
REQUEST: Final = b"Q"
ANSWER: Final = b"A"
CALLBACK: Final = b"K"
RESULT: Final = b"R"
BEGIN: Final = b"B"
DONE: Final = b"D"


class Channel:
    """One end of the socket."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._read, self._write = os.read, os.write  # the program may replace those of the module

    def receive(self) -> tuple[bytes, bytes]:
        """The next frame: what it is, and the rest.

        Raises:
            EOFError: the other end is closed.
        """
        (size,) = struct.unpack("!I", self._exactly(4))
        frame = self._exactly(min(size, MAX_FRAME))
        return frame[:1], frame[1:]

    def send(self, kind: bytes, content: bytes) -> None:
        """Sends a frame, all of it."""
        frame = memoryview(struct.pack("!I", len(kind) + len(content)) + kind + content)
        while frame:
            frame = frame[self._write(self._descriptor, frame) :]

    def _exactly(self, size: int) -> bytes:
        chunk = self._read(self._descriptor, size)
        if len(chunk) == size:
            return chunk
        parts = [chunk]
        missing = size - len(chunk)
        while missing:
            chunk = self._read(self._descriptor, min(missing, 1 << 20))
            if not chunk or not parts[0]:
                raise EOFError
            parts.append(chunk)
            missing -= len(chunk)
        return b"".join(parts)
