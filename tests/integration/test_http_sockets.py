"""A face's WebSockets: behind the token and the origin, and closed by the drain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from assay.kit.http import app as http_app
from assay.kit.http.faces import Face
from assay.kit.serving import ServeConfig
from http_support import basic, serving

pytest.importorskip("wsproto", reason="the shipped protocol of WebSockets")

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Message,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_text(f"{await socket.receive_text()}!")
    except WebSocketDisconnect:
        return


class Talk:
    """A client's side of a WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._wire = WSConnection(ConnectionType.CLIENT)
        self._events: Any = iter(())

    async def send(self, event: Event) -> None:
        self._writer.write(self._wire.send(event))
        await self._writer.drain()

    async def next(self) -> Event:
        """What comes next; a connection that ends without a word is an error."""
        async with asyncio.timeout(30):
            while (event := next(self._events, None)) is None:
                data = await self._reader.read(65536)
                assert data, "the server has left"
                self._wire.receive_data(data)
                self._events = iter(list(self._wire.events()))
            return event


@asynccontextmanager
async def talking(address: str, path: str, **headers: str) -> AsyncIterator[Talk]:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    talk = Talk(reader, writer)
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    await talk.send(Request(host=address, target=path, extra_headers=given))
    try:
        yield talk
    finally:
        writer.close()


@pytest.fixture(autouse=True)
def face(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Face("mine", lambda _: [WebSocketRoute("/talk/{name}", echo)])
    monkeypatch.setattr(http_app, "load_faces", lambda _: [mine])


async def answer(address: str, path: str, **headers: str) -> str:
    """What is said to "a", or the status of a refusal."""
    async with talking(address, path, **headers) as talk:
        first = await talk.next()
        if isinstance(first, RejectConnection):
            return str(first.status_code)
        assert isinstance(first, AcceptConnection)
        await talk.send(TextMessage("a"))
        said = await talk.next()
        assert isinstance(said, Message)
        return str(said.data)


async def test_a_socket_is_behind_the_token_wherever_it_stands() -> None:
    async with serving(serve=ServeConfig(token="right")) as facade:
        for headers in (
            {"authorization": "Bearer right"},
            {"authorization": "token right"},
            {"authorization": basic("right")},
            {"x-api-key": "right"},
        ):
            assert await answer(facade.address, "/talk/x", **headers) == "a!"
        assert await answer(facade.address, "/talk/x?token=right") == "a!"
        for path in ("/talk/x", "/talk/x?token=wrong"):
            assert await answer(facade.address, path) == "401"
        wrong = {"authorization": "Bearer wrong"}
        assert await answer(facade.address, "/talk/x?token=right", **wrong) == "401"


async def test_another_sites_page_may_not_talk_to_us() -> None:
    async with serving() as facade:
        assert await answer(facade.address, "/talk/x") == "a!"
        assert await answer(facade.address, "/talk/x", origin=f"http://{facade.address}") == "a!"
        assert await answer(facade.address, "/talk/x", origin="http://evil.example") == "403"
        assert await answer(facade.address, "/elsewhere") == "404"


async def test_a_refusal_says_why() -> None:
    async with serving() as facade, talking(facade.address, "/elsewhere") as talk:
        assert isinstance(await talk.next(), RejectConnection)
        body = await talk.next()
        assert isinstance(body, RejectData)
        assert b"UNKNOWN_METHOD" in body.data


async def test_a_drain_closes_what_is_open_and_says_so() -> None:
    async with (
        serving(serve=ServeConfig(drain_s=0.2)) as facade,
        talking(facade.address, "/talk/x") as talk,
    ):
        assert isinstance(await talk.next(), AcceptConnection)
        stopping = asyncio.create_task(facade.server.stop())
        closed = await talk.next()
        assert isinstance(closed, CloseConnection)
        assert (closed.code, closed.reason) == (1012, "DRAINING")
        await talk.send(closed.response())
        await stopping
