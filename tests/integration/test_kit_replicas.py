"""Channels to several servers, over the real wire, without a retry: who is called, and when."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any

import grpc

from assay.kit.channels import open_channel
from assay.kit.serving import RunningServer, ServeConfig, Service, start
from names_support import name_server

NAME = "assay.test.Name"
METHOD = f"/{NAME}/Say"


async def fine() -> None:
    """A self-test that passes."""


def named(name: str, self_test: Any = fine) -> Service:
    """A service that says its name."""

    async def say(_request: bytes, _context: object) -> bytes:
        return name.encode()

    handlers: dict[str, Any] = {"Say": grpc.unary_unary_rpc_method_handler(say)}

    def add(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))

    return Service(NAME, add, self_test)


async def say(channel: Any) -> str:
    """Who answers."""
    answer: bytes = await channel.unary_unary(METHOD)(b"", timeout=30)
    return answer.decode()


async def until(channel: Any, true: Callable[[list[str]], bool]) -> None:
    """Calls, and takes refusals, until the latest answers are so; the time-out is the limit."""
    latest: list[str] = []
    while not true(latest):
        try:
            latest = [*latest[-3:], await say(channel)]
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            latest = []
        await asyncio.sleep(0.01)


def both(latest: list[str]) -> bool:
    return set(latest) == {"a", "b"}


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


async def test_a_replica_that_starts_or_drains_is_not_called() -> None:
    may_serve = asyncio.Event()

    async def slow() -> None:
        await may_serve.wait()

    port = free_port()
    async with await start([named("a")], ServeConfig()) as first:
        starting = asyncio.create_task(
            start([named("b", slow)], ServeConfig(port=port, drain_s=0.0))
        )
        async with open_channel(f"{first.address},127.0.0.1:{port}") as channel:
            assert {await say(channel) for _ in range(50)} == {"a"}
            may_serve.set()
            second = await starting
            await until(channel, both)
            assert Counter([await say(channel) for _ in range(20)]) == {"a": 10, "b": 10}
            await second.stop()
            await until(channel, lambda latest: latest == ["a"] * 4)
            assert {await say(channel) for _ in range(50)} == {"a"}


async def test_ipv6_replicas_are_a_list_too() -> None:
    async with (
        await start([named("a")], ServeConfig(host="::1")) as first,
        await start([named("b")], ServeConfig(host="::1")) as second,
        open_channel(f"{first.address},{second.address}") as channel,
    ):
        await until(channel, both)


async def serve(name: str, host: str, port: int = 0) -> RunningServer:
    return await start([named(name)], ServeConfig(host=host, port=port, drain_s=0.0))


async def test_a_name_is_every_address_that_it_has_and_is_asked_again() -> None:
    first = await serve("a", "127.0.0.1")
    second = await serve("b", "127.0.0.2", first.port)
    async with name_server() as (names, authority):
        names.addresses = ["127.0.0.1", "127.0.0.2"]
        async with open_channel(f"dns://{authority}/replicas.test:{first.port}") as channel:
            await until(channel, both)
            async with await serve("c", "127.0.0.3", first.port):
                names.addresses = ["127.0.0.1", "127.0.0.3"]
                asked = names.asked
                await second.stop()
                await until(channel, lambda latest: set(latest) == {"a", "c"})
                assert names.asked > asked
    await first.stop()
