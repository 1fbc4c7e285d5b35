"""The life of a server, over the real wire: start, self-test, health, drain, stop, signals."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from assay.clients.core.failures import error_of_call
from assay.kit import health
from assay.kit.access import Access
from assay.kit.channels import open_channel
from assay.kit.errors import StartupError, UnavailableError
from assay.kit.health import Health, check, wait_until_serving
from assay.kit.reasons import Reason
from assay.kit.serving import RunningServer, ServeConfig, Service, serve, start

NAME = "assay.test.Slow"


class Slow:
    """One method that waits until it is told to end; it can also ignore its cancellation."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.closed = 0
        self.self_test_may_end = asyncio.Event()
        self.self_test_may_end.set()
        self._stubborn = stubborn

    async def wait(self, request: bytes, _context: object) -> bytes:
        self.entered.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            if self._stubborn:
                return b"late"
            raise
        return request

    async def self_test(self) -> None:
        await self.self_test_may_end.wait()

    async def close(self) -> None:
        self.closed += 1

    def service(self, name: str = NAME) -> Service:
        handlers: dict[str, Any] = {"Wait": grpc.unary_unary_rpc_method_handler(self.wait)}

        def add(server: grpc.aio.Server) -> None:
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))

        return Service(name=name, add_to_server=add, self_test=self.self_test, close=self.close)


@pytest.fixture
async def slow() -> Slow:
    return Slow()


# The type stubs know the stub on synchronous channels only.
new_stub: Any = reflection_pb2_grpc.ServerReflectionStub


def call(channel: grpc.aio.Channel, payload: bytes = b"x", timeout_s: float = 30) -> Any:
    method: Any = channel.unary_unary(f"/{NAME}/Wait")
    return method(payload, timeout=timeout_s)


async def becomes(channel: grpc.aio.Channel, wanted: Health) -> None:
    for _ in range(1000):
        if await check(channel) is wanted:
            return
        await asyncio.sleep(0.02)
    pytest.fail(f"never {wanted}")


async def reason_of_failure(pending: Any) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await pending
    return error_of_call(caught.value, "the server", "").reason


async def test_health_says_serving_only_after_the_self_test(slow: Slow) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    slow.self_test_may_end.clear()
    starting = asyncio.create_task(start([slow.service()], ServeConfig(port=port)))
    address = f"127.0.0.1:{port}"
    async with open_channel(address) as channel:
        await becomes(channel, Health.NOT_SERVING)
        assert await check(channel, NAME) is Health.NOT_SERVING
        assert await check(channel, "no.such.Service") is Health.NO_SUCH_SERVICE
        assert await reason_of_failure(call(channel)) == Reason.STARTING
        with pytest.raises(UnavailableError, match="not serving"):
            await wait_until_serving(channel, NAME, 0.2)
        slow.self_test_may_end.set()
        async with await starting as server:
            assert (server.port, server.address) == (port, address)
            await wait_until_serving(channel, NAME, 10)
            assert await check(channel) is Health.SERVING
    assert await check(address, timeout_s=1) is Health.UNREACHABLE
    assert slow.closed == 1


async def test_the_health_command_tells_by_its_exit_code(slow: Slow) -> None:
    def ask(*arguments: str) -> int:
        return health.main([*arguments, "--timeout-s", "2"])

    async with await start([slow.service()], ServeConfig(port=0)) as server:
        await wait_until_serving(server.address, NAME, 10)
        assert await asyncio.to_thread(ask, server.address) == 0
        assert await asyncio.to_thread(ask, server.address, "--service", NAME) == 0
        assert await asyncio.to_thread(ask, server.address, "--service", "no.Such") == 1
    assert await asyncio.to_thread(ask, server.address) == 1


async def test_a_failing_self_test_ends_the_start(caplog: pytest.LogCaptureFixture) -> None:
    """It is the error that the start ends with; another one is a line of the log, and where they
    came from is for who debugs."""
    caplog.set_level(logging.DEBUG, logger="assay.kit.serving")
    good, bad = Slow(), Slow()

    async def fail() -> None:
        raise ValueError("two and two\nare five")

    services = [
        good.service("assay.test.Good"),
        Service("assay.test.Bad", lambda _server: None, fail, bad.close),
        Service("assay.test.Worse", lambda _server: None, fail),
    ]
    with pytest.raises(StartupError) as caught:
        await start(services, ServeConfig())
    assert str(caught.value) == (
        "assay.test.Bad does not serve: its self-test failed: ValueError: two and two are five"
    )
    assert isinstance(caught.value.__cause__, ValueError)
    assert "the self-test of assay.test.Bad failed" in caplog.text
    assert {one.levelname for one in caplog.records if one.exc_info} == {"DEBUG"}
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == [
        str(caught.value).replace("Bad", "Worse")
    ]
    assert (good.closed, bad.closed) == (1, 1)


def test_a_service_that_does_not_start_says_so_in_one_line() -> None:
    command = [sys.executable, "-m", "assay.genrm", "--port", "0", "--model", "judge=/no/folder"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("assay genrm: ")
    assert "/no/folder does not exist" in line


async def test_a_port_in_use_is_one_line_with_the_remedy(slow: Slow) -> None:
    async with await start([slow.service()], ServeConfig()) as first:
        second = Slow()
        with pytest.raises(StartupError) as caught:
            await start([second.service()], ServeConfig(port=first.port))
        text = str(caught.value)
        assert f"port {first.port} on 127.0.0.1 is in use" in text
        assert "choose another port" in text
        assert "\n" not in text
        assert second.closed == 1
        assert await check(first.address) is Health.SERVING


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [
        ("no such host", 0, "is not known"),
        ("192.0.2.1", 0, "0.0.0.0 for every interface"),
        ("127.0.0.1", 65536, "is not a port"),
    ],
)
async def test_an_address_that_cannot_be_bound_says_why(
    slow: Slow, host: str, port: int, words: str
) -> None:
    with pytest.raises(StartupError, match=words):
        await start([slow.service()], ServeConfig(host=host, port=port))


async def test_the_port_is_free_again_after_the_stop(slow: Slow) -> None:
    async with await start([slow.service()], ServeConfig()) as first:
        pass
    async with await start([slow.service()], ServeConfig(port=first.port)) as second:
        assert await check(second.address) is Health.SERVING


async def test_it_binds_loopback_unless_told_otherwise(slow: Slow) -> None:
    async with await start([slow.service()], ServeConfig()) as server:
        assert server.address.startswith("127.0.0.1:")


async def test_a_drain_finishes_the_running_call_and_refuses_new_ones(slow: Slow) -> None:
    server = await start([slow.service()], ServeConfig(drain_s=60))
    async with open_channel(server.address) as channel:
        watch: Any = health_pb2_grpc.HealthStub(channel)
        watched = watch.Watch(health_pb2.HealthCheckRequest(service=NAME))
        seen = [(await watched.read()).status]
        running = call(channel, b"kept")
        await slow.entered.wait()
        stopping = asyncio.create_task(server.stop())
        seen.append((await watched.read()).status)
        assert seen == [
            health_pb2.HealthCheckResponse.SERVING,
            health_pb2.HealthCheckResponse.NOT_SERVING,
        ]
        assert await check(channel) is Health.NOT_SERVING
        refused = call(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await refused
        error = error_of_call(caught.value, "the server", "")
        assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, Reason.DRAINING)
        assert not stopping.done()
        assert slow.closed == 0
        slow.release.set()
        assert await running == b"kept"
        await stopping
        await server.wait()
        assert slow.closed == 1
        assert not slow.cancelled.is_set()


@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_call_that_outstays_the_drain_is_cancelled(stubborn: bool) -> None:
    slow = Slow(stubborn=stubborn)
    server = await start([slow.service()], ServeConfig(drain_s=0.2))
    async with open_channel(server.address) as channel:
        running = call(channel)
        await slow.entered.wait()
        await server.stop()
        assert slow.cancelled.is_set()
        if stubborn:
            assert await running == b"late"
        else:
            assert await reason_of_failure(running) == Reason.DRAINING
    assert slow.closed == 1


async def test_a_service_that_lingers_is_called_until_it_returns_and_no_other_is(
    slow: Slow,
) -> None:
    may_end = asyncio.Event()
    begun = asyncio.Event()

    async def linger() -> None:
        begun.set()
        await may_end.wait()

    kept = replace(slow.service(), linger=linger)
    server = await start([kept, Slow().service("assay.test.Other")], ServeConfig(drain_s=60))
    async with open_channel(server.address) as channel:
        stopping = asyncio.create_task(server.stop())
        await begun.wait()
        assert await check(channel) is Health.NOT_SERVING
        running = call(channel, b"kept")
        await slow.entered.wait()
        other: Any = channel.unary_unary("/assay.test.Other/Wait")
        assert await reason_of_failure(other(b"", timeout=30)) == Reason.DRAINING
        may_end.set()
        await refused_by_then(channel)
        assert not stopping.done()  # what runs has the drain's time
        slow.release.set()
        assert await running == b"kept"
        await stopping


async def refused_by_then(channel: grpc.aio.Channel) -> None:
    for _ in range(1000):
        pending = call(channel, timeout_s=0.05)
        reason = await reason_of_failure(pending)
        if reason == Reason.DRAINING:
            return
    pytest.fail("calls still passed")


@pytest.mark.parametrize("ending", ["hurry", "error"])
async def test_nothing_that_lingers_keeps_the_server(
    slow: Slow, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun = asyncio.Event()

    async def linger() -> None:
        begun.set()
        if ending == "error":
            raise ValueError("lingering failed")
        await asyncio.Event().wait()

    server = await start([replace(slow.service(), linger=linger)], ServeConfig(drain_s=60))
    stopping = asyncio.create_task(server.stop())
    await begun.wait()
    if ending == "hurry":
        server.hurry()
    await asyncio.wait_for(stopping, 30)
    assert slow.closed == 1
    assert ("lingering failed" in caplog.text) == (ending == "error")


async def test_stopping_twice_and_at_the_same_time_stops_once(slow: Slow) -> None:
    server = await start([slow.service()], ServeConfig())
    await asyncio.gather(server.stop(), server.stop(), server.wait())
    await server.stop()
    assert slow.closed == 1


async def test_a_hurried_drain_ends_at_once(slow: Slow) -> None:
    server = await start([slow.service()], ServeConfig(drain_s=3600))
    async with open_channel(server.address) as channel:
        running = call(channel)
        await slow.entered.wait()
        stopping = asyncio.create_task(server.stop())
        assert await check(channel) is Health.NOT_SERVING
        server.hurry()
        await stopping
        assert await reason_of_failure(running) == Reason.DRAINING


async def test_a_service_that_does_not_close_keeps_no_other_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, last = Slow(), Slow()

    async def fail() -> None:
        raise RuntimeError("stuck")

    services = [
        first.service("assay.test.First"),
        Service("assay.test.Stuck", lambda _server: None, first.self_test, fail),
        last.service("assay.test.Last"),
    ]
    server = await start(services, ServeConfig())
    await server.stop()
    assert (first.closed, last.closed) == (1, 1)
    assert "assay.test.Stuck did not close" in caplog.text


async def test_reflection_lists_the_services(slow: Slow) -> None:
    async def ask() -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")

    async with (
        await start([slow.service()], ServeConfig()) as server,
        open_channel(server.address) as channel,
    ):
        stub: Any = new_stub(channel)
        (answer,) = [answer async for answer in stub.ServerReflectionInfo(ask())]
    names = {service.name for service in answer.list_services_response.service}
    assert {NAME, "grpc.health.v1.Health"} <= names


async def test_reflection_can_be_switched_off(slow: Slow) -> None:
    async with (
        await start([slow.service()], ServeConfig(access=Access(reflection=False))) as server,
        open_channel(server.address) as channel,
    ):
        stub: Any = new_stub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.ServerReflectionInfo(iter(())).read()
        assert error_of_call(caught.value, "the server", "").reason == Reason.UNKNOWN_METHOD


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_and_serve_returns(slow: Slow, kind: signal.Signals) -> None:
    ready: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve([slow.service()], ServeConfig(drain_s=60), on_ready=ready.set_result)
    )
    server = await ready
    async with open_channel(server.address) as channel:
        running = call(channel, b"kept")
        await slow.entered.wait()
        os.kill(os.getpid(), kind)
        await becomes(channel, Health.NOT_SERVING)
        slow.release.set()
        assert await running == b"kept"
        await serving
    assert slow.closed == 1


async def test_a_second_signal_ends_the_drain(slow: Slow) -> None:
    ready: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve([slow.service()], ServeConfig(drain_s=3600), on_ready=ready.set_result)
    )
    server = await ready
    async with open_channel(server.address) as channel:
        running = call(channel)
        await slow.entered.wait()
        os.kill(os.getpid(), signal.SIGINT)
        await becomes(channel, Health.NOT_SERVING)
        os.kill(os.getpid(), signal.SIGINT)
        await serving
        assert await reason_of_failure(running) == Reason.DRAINING


async def test_a_signal_during_the_self_test_gives_up_the_start(slow: Slow) -> None:
    slow.self_test_may_end.clear()
    serving = asyncio.create_task(serve([slow.service()], ServeConfig()))
    await asyncio.sleep(0.2)
    os.kill(os.getpid(), signal.SIGTERM)
    await serving
    assert slow.closed == 1


async def test_serve_cancelled_stops_the_server(slow: Slow) -> None:
    ready: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve([slow.service()], ServeConfig(), on_ready=ready.set_result))
    server = await ready
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    await server.wait()
    assert slow.closed == 1


async def test_serve_raises_what_start_raises() -> None:
    bad = Slow()

    async def fail() -> None:
        raise ValueError("no")

    service = Service(NAME, lambda _server: None, fail, bad.close)
    with pytest.raises(StartupError, match="self-test"):
        await serve([service], ServeConfig())
    assert bad.closed == 1
