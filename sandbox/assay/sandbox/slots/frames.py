"""What travels between the front process and a warden: the contract's own messages, in frames.

    frame     4 bytes, big-endian length of what follows; 1 byte, the kind; 8 bytes, the job's
              number; the payload

    front -> warden    X  run a program; payload: the call's request id, which is for logs only
                          (1 byte, its length, then that many), and bytes of an ExecutionJob
                       T  hold one against tests; payload: the same with a TestJob
                       P  prove that a language works; payload: its name
                       C  give the job up, kill it if it runs; no payload
                       G  give the job back if it has not begun; no payload
    warden -> front    R  ready; payload: JSON, {"pid", "level"}
                       S  the job has begun
                       D  done; payload: bytes of an ExecutionResult or a TestJobResult, without
                          timings; for P: what is wrong with the language, empty for nothing
                       F  fault; payload: JSON, {"reason", "message", "facts"}
                       U  given up or given back before it had begun

Every job that a warden was handed is answered exactly once with D, F or U, unless it dies. Never
pickle, on either side.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import NamedTuple

HEADER = struct.Struct("!IcQ")
_LENGTH_BYTES = 4
_REST_BYTES = HEADER.size - _LENGTH_BYTES
MAX_PAYLOAD_BYTES = 80 * 2**20

EXECUTE = b"X"
TESTS = b"T"
PROBE = b"P"
CANCEL = b"C"
GIVE_BACK = b"G"
READY = b"R"
STARTED = b"S"
DONE = b"D"
FAULT = b"F"
UNSTARTED = b"U"


class FrameError(Exception):
    """A frame is too long or not of the agreed shape."""


class Frame(NamedTuple):
    """One frame, read."""

    kind: bytes
    number: int
    payload: bytes


def pack(kind: bytes, number: int, payload: bytes = b"") -> bytes:
    """A frame as bytes.

    Raises:
        FrameError: the payload is over the limit.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise FrameError(f"a payload of {len(payload)} bytes is over the limit")
    return HEADER.pack(_REST_BYTES + len(payload), kind, number) + payload


def pack_job(request_id: str, message: bytes) -> bytes:
    """The payload of X or T; an id is of at most 255 ASCII characters."""
    mark = request_id.encode("ascii")
    return bytes((len(mark),)) + mark + message


def read_job(payload: bytes) -> tuple[str, bytes]:
    """The request id and the message of X or T."""
    start = 1 + payload[0]
    return payload[1:start].decode("ascii"), payload[start:]


class FrameReader:
    """Puts frames together from what comes in pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are whole with this piece.

        Raises:
            FrameError: a frame has an impossible length; nothing after it can be read.
        """
        self._buffer += data
        frames: list[Frame] = []
        start = 0
        while len(self._buffer) - start >= HEADER.size:
            rest, kind, number = HEADER.unpack_from(self._buffer, start)
            if not _REST_BYTES <= rest <= _REST_BYTES + MAX_PAYLOAD_BYTES:
                raise FrameError("a frame has an impossible length")
            end = start + _LENGTH_BYTES + rest
            if len(self._buffer) < end:
                break
            payload = bytes(memoryview(self._buffer)[start + HEADER.size : end])
            frames.append(Frame(kind, number, payload))
            start = end
        if start:
            del self._buffer[:start]
        return frames


def pack_fault(reason: str, message: str, facts: Mapping[str, str]) -> bytes:
    """The payload of F."""
    body = {"reason": str(reason), "message": message, "facts": dict(facts)}
    return json.dumps(body).encode("ascii")


def read_fault(payload: bytes) -> tuple[str, str, dict[str, str]]:
    """Reason, message and facts.

    Raises:
        FrameError: it is not of the agreed shape.
    """
    try:
        body = json.loads(payload)
        facts = {str(key): str(value) for key, value in body["facts"].items()}
        return str(body["reason"]), str(body["message"]), facts
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FrameError("a fault is not of the agreed shape") from error
