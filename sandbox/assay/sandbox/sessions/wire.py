"""What service and host say to one another, in the frames of `assay.kit.pool.frames`. Pure.

A frame's number is that of a call; several are in progress at once. The payload begins with the
session's key, a number that the service never uses twice, then holds messages of session.proto.

    service -> host   CREATE      CreateRequest of one session, every limit set
                      EXECUTE     ExecuteRequest, its limits set
                      PUT, GET, CHECKPOINT, ROLLBACK, FORK, DROP: the method's request; FORK is
                                  followed by the keys of the copies (see `pack_fork`)
                      CLOSE       nothing
                      frames.CANCEL  with the number of an EXECUTE: interrupts its cell
    host -> service   frames.READY   JSON: {"level": "", "missing": [...], "copies": bool,
                                  "why_not": "", "packages": {name: version},
                                  "languages": [...]}
                      frames.NOT_READY  why, a line of text
                      EVENT       ExecuteResponse with output or display
                      frames.DONE    the method's response, of EXECUTE an ExecuteResponse with
                                  the result, of CREATE, FORK and CLOSE nothing
                      frames.FAULT   see `frames.pack_fault`: reasons of the lexicon

Every call is answered exactly once with DONE or FAULT, unless the host dies: then its sessions are
lost. When the service is gone, the host kills everything and ends.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

CREATE = b"c"
EXECUTE = b"x"
PUT = b"p"
GET = b"g"
CHECKPOINT = b"k"
ROLLBACK = b"r"
FORK = b"f"
DROP = b"d"
CLOSE = b"q"
EVENT = b"e"

_KEY = struct.Struct("!Q")
_COUNT = struct.Struct("!H")


def pack(key: int, body: bytes = b"") -> bytes:
    """A payload about a session."""
    return _KEY.pack(key) + body


def read(payload: bytes) -> tuple[int, bytes]:
    """The session's key and the message."""
    return _KEY.unpack_from(payload)[0], payload[_KEY.size :]


def pack_fork(key: int, copies: Sequence[int], body: bytes) -> bytes:
    """The payload of FORK."""
    keys = b"".join(map(_KEY.pack, copies))
    return _KEY.pack(key) + _COUNT.pack(len(copies)) + keys + body


def read_fork(payload: bytes) -> tuple[int, list[int], bytes]:
    """Key, the copies' keys, and the request, of FORK."""
    (key,) = _KEY.unpack_from(payload)
    (count,) = _COUNT.unpack_from(payload, _KEY.size)
    start = _KEY.size + _COUNT.size
    end = start + count * _KEY.size
    return key, [copy for (copy,) in _KEY.iter_unpack(payload[start:end])], payload[end:]
