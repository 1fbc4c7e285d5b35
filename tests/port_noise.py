"""What strangers send to a port: seeded, so that a finding can be had again."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, HEADERS, DATA, CONTINUATION = 4, 1, 0, 9
HTTP1 = b"POST /assay.api.reward.v1.RewardService/BatchScore HTTP/1.1\r\nHost: x\r\n\r\n{}"
TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(193)


def frame(kind: int, payload: bytes, flags: int = 0, stream: int = 0) -> bytes:
    """A frame of HTTP/2 (RFC 9113, section 4.1)."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def messages(seed: int, count: int) -> Iterator[bytes]:
    """First bytes of connections: noise, other protocols, broken and truncated HTTP/2."""
    rng = random.Random(seed)
    start = PREFACE + frame(SETTINGS, b"")
    makers = (
        lambda: HTTP1,
        lambda: TLS_HELLO,
        lambda: b"",
        lambda: rng.randbytes(rng.randrange(1, 2000)),
        lambda: PREFACE[: rng.randrange(1, len(PREFACE))],
        lambda: PREFACE + rng.randbytes(rng.randrange(1, 500)),
        # A length that never comes, and one past what a frame may have.
        lambda: start + frame(HEADERS, b"x" * 100, 4, 1)[: rng.randrange(1, 100)],
        lambda: start + b"\xff\xff\xff" + rng.randbytes(60),
        lambda: start + frame(HEADERS, rng.randbytes(50), 4, 1),
        # Headers that are never ended; data of a stream that was never opened.
        lambda: start + frame(HEADERS, b"\x82", 0, 1) + frame(CONTINUATION, b"\x84", 0, 1) * 20,
        lambda: start + frame(DATA, rng.randbytes(100), 1, 2 * rng.randrange(100) + 1),
        lambda: start + b"".join(
            frame(rng.randrange(12), rng.randbytes(rng.randrange(40)), rng.randrange(256), 1)
            for _ in range(10)
        ),
    )  # fmt: skip
    for number in range(count):
        yield makers[number % len(makers)]()


def connect(address: str, ca_file: Path | None = None) -> socket.socket:
    """A connection; with an authority, inside TLS."""
    host, _, port = address.rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=5)
    if ca_file is None:
        return plain
    context = ssl.create_default_context(cafile=str(ca_file))
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(plain, server_hostname=host)


def send(address: str, message: bytes, ca_file: Path | None = None, wait_s: float = 0.0) -> None:
    """Connects, sends, reads what comes for a moment, and hangs up."""
    with contextlib.suppress(OSError), connect(address, ca_file) as connection:
        connection.sendall(message)
        if wait_s:
            connection.settimeout(wait_s)
            connection.recv(4096)
