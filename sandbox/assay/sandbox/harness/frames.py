"""Frames over the private socket, as a harness sends and receives them; `protocol` defines them."""

from __future__ import annotations

import os
import struct

from assay.sandbox.harness.protocol import MAX_FRAME, NO_TAG, HarnessFrame, frame, split


class Channel:
    """One end of the socket; blocks."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._read, self._write = os.read, os.write  # the program may replace those of the module

    def receive(self) -> HarnessFrame:
        """The next frame.

        Raises:
            EOFError: the other end is closed.
        """
        (size,) = struct.unpack("!I", self._exactly(4))
        return split(self._exactly(min(size, MAX_FRAME)))

    def send(self, kind: bytes, content: bytes, tag: bytes = NO_TAG) -> None:
        """Sends a whole frame."""
        data = frame(kind, tag, content)
        left = memoryview(struct.pack("!I", len(data)) + data)
        while left:
            left = left[self._write(self._descriptor, left) :]

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
