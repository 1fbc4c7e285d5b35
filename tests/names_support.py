"""A name server on loopback, whose answers a test changes."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class Names(asyncio.DatagramProtocol):
    """A name server that knows one name: the IPv4 addresses in `addresses`, with no time to live.

    RFC 1035, sections 4.1.1 to 4.1.4; whatever else is asked has no answer.
    """

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.asked = 0
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        (query,) = struct.unpack_from("!H", data)
        end = data.index(b"\0", 12) + 5
        (kind,) = struct.unpack_from("!H", data, end - 4)
        found = self.addresses if kind == 1 else []
        self.asked += kind == 1
        answers = b"".join(
            struct.pack("!HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(address)
            for address in found
        )
        header = struct.pack("!HHHHHH", query, 0x8580, 1, len(found), 0, 0)
        self._transport.sendto(header + data[12:end] + answers, addr)


@asynccontextmanager
async def name_server() -> AsyncIterator[tuple[Names, str]]:
    loop = asyncio.get_running_loop()
    transport, names = await loop.create_datagram_endpoint(Names, ("127.0.0.1", 0))
    try:
        yield names, f"127.0.0.1:{transport.get_extra_info('sockname')[1]}"
    finally:
        transport.close()
