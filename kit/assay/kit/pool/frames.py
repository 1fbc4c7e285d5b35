"""Frames between a pool and one worker: over a socket, bounded, never pickle.

    frame     4 bytes, big-endian length of what follows; 1 byte, the kind; 8 bytes, the job's
              number; the payload

    pool -> worker    a job; any other kind, of the service's choice; payload: see `pack_job`
                      C  give the job up, end it if it runs
                      G  give the job back if it has not begun
    worker -> pool    R  ready; payload: a JSON object
                      N  never ready; payload: why, a line of text
                      S  the job has begun
                      D  done; payload: the service's own
                      F  fault; payload: JSON, {"reason", "message", "facts"}
                      M  its memory was nearly full: nothing it sent of the job counts
                      U  given up or given back before it had begun
                      L  it takes no further job
    made by the link  E  the job's time-out has passed, and its worker was killed

A worker answers every job exactly once with D, F, M or U, unless it dies. One that takes one job at
a time may ignore C and G.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

HEADER = struct.Struct("!IcQ")
_LENGTH_BYTES = 4
_REST_BYTES = HEADER.size - _LENGTH_BYTES
_JOB_HEADER = struct.Struct("!dB")
MAX_PAYLOAD_BYTES = 80 * 2**20

CANCEL = b"C"
GIVE_BACK = b"G"
READY = b"R"
NOT_READY = b"N"
STARTED = b"S"
DONE = b"D"
FAULT = b"F"
EXHAUSTED = b"M"
UNSTARTED = b"U"
LAST = b"L"
EXPIRED = b"E"

COMMANDS = frozenset((CANCEL, GIVE_BACK))
ANSWERS = frozenset((DONE, FAULT, EXHAUSTED, UNSTARTED))
_OF_A_WORKER = ANSWERS | {READY, NOT_READY, STARTED, LAST}


class FrameError(Exception):
    """A frame is too long or not of the agreed shape."""


class Frame(NamedTuple):
    """One frame."""

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


def pack_job(body: bytes, *, timeout_s: float = math.inf, request_id: str = "") -> bytes:
    """The payload of a job; its request id has at most 255 ASCII characters."""
    mark = request_id.encode("ascii")
    return _JOB_HEADER.pack(timeout_s, len(mark)) + mark + body


def read_job(payload: bytes) -> tuple[bytes, float, str]:
    """Body, time-out and request id of a job, unchecked: the pool wrote it."""
    timeout_s, length = _JOB_HEADER.unpack_from(payload)
    start = _JOB_HEADER.size + length
    return payload[start:], timeout_s, payload[_JOB_HEADER.size : start].decode("ascii")


def timeout_of(payload: bytes) -> float:
    """The time-out of a job, without reading the rest."""
    timeout_s: float = _JOB_HEADER.unpack_from(payload)[0]
    return timeout_s


class FrameReader:
    """Puts frames together from pieces; a payload has at most `limit_bytes`."""

    def __init__(self, limit_bytes: int = MAX_PAYLOAD_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that this piece completes; take them before the next piece.

        Raises:
            FrameError: after the frames before it, one has an impossible length; the rest is lost.
        """
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= HEADER.size:
                rest, kind, number = HEADER.unpack_from(self._buffer, start)
                if not _REST_BYTES <= rest <= _REST_BYTES + self._limit_bytes:
                    raise FrameError("a frame has an impossible length")
                end = start + _LENGTH_BYTES + rest
                if len(self._buffer) < end:
                    break
                payload = bytes(memoryview(self._buffer)[start + HEADER.size : end])
                start = end
                yield Frame(kind, number, payload)
        finally:
            del self._buffer[:start]


def check_of_worker(frame: Frame) -> None:
    """Raises FrameError for a kind that a worker may not send."""
    if frame.kind not in _OF_A_WORKER:
        raise FrameError("a worker sent a frame that is none of a worker's")


def pack_fault(reason: str, message: str, facts: Mapping[str, str]) -> bytes:
    """The payload of F."""
    body = {"reason": str(reason), "message": message, "facts": dict(facts)}
    return json.dumps(body).encode("ascii")


def read_fault(payload: bytes) -> tuple[str, str, dict[str, str]]:
    """Reason, message and facts of F.

    Raises:
        FrameError: the payload has another shape.
    """
    body = read_object(payload)
    try:
        facts = {str(key): str(value) for key, value in body["facts"].items()}
        return str(body["reason"]), str(body["message"]), facts
    except (KeyError, TypeError, AttributeError) as error:
        raise FrameError("a fault is not of the agreed shape") from error


def read_object(payload: bytes) -> dict[str, Any]:
    """A payload that is a JSON object.

    Raises:
        FrameError: it is none.
    """
    try:
        body = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise FrameError("a payload is not JSON") from error
    if not isinstance(body, dict):
        raise FrameError("a payload is not a JSON object")
    return body
