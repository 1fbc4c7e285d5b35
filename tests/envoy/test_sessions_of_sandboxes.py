"""Sessions by way of Envoy with the shipped configuration, kept by two real sandboxes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from typing import Any, NamedTuple

import grpc
import pytest

from assay.api.session.v1 import session_pb2, session_pb2_grpc
from assay.clients.sessions import AsyncSession, AsyncSessionClient, SessionLost
from assay.kit.health import wait_until_serving
from envoy_support import SESSIONS, Envoy, binary, free_ports
from sandbox_service import launch

PROGRAM = binary()
pytestmark = [
    pytest.mark.envoy,
    pytest.mark.skipif(PROGRAM is None, reason="no Envoy: `make test-envoy` installs one"),
]
LIMIT_S = 60.0


class Sandbox:
    """A replica at an address that it keeps, which is its name."""

    def __init__(self) -> None:
        (self._port,) = free_ports(1)
        self.name = f"127.0.0.1:{self._port}"
        self._process: subprocess.Popen[str] | None = None

    async def start(self) -> None:
        self._process = launch(
            *("--port", str(self._port), "--replica-name", self.name, "--slots", "1"),
            *("--session-drain-s", "60", "--log-level", "ERROR"),
        )
        await wait_until_serving(self.name, timeout_s=LIMIT_S)

    def tell(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def ended(self) -> int:
        assert self._process is not None
        code = await asyncio.to_thread(self._process.wait)
        self._process.communicate()
        return code

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


class Front(NamedTuple):
    envoy: Envoy
    pair: tuple[Sandbox, Sandbox]


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Envoy before two sandboxes; a test leaves both serving."""
    assert PROGRAM is not None
    pair = Sandbox(), Sandbox()
    addresses = [one.name for one in pair]
    envoy = Envoy(PROGRAM, tmp_path_factory.mktemp("envoy"), addresses, SESSIONS)

    async def start() -> None:
        await asyncio.gather(*(one.start() for one in pair))
        envoy.start()
        await wait_until_serving(envoy.address)

    try:
        asyncio.run(start())
        yield Front(envoy, pair)
    finally:
        envoy.stop()
        for one in pair:
            one.stop()


class Caller:
    """Calls without a retry of its own."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.aio.insecure_channel(address)
        self.stub: Any = session_pb2_grpc.SessionServiceStub(self.channel)

    async def create(self) -> session_pb2.Session:
        answer = await self.stub.Create(session_pb2.CreateRequest(), timeout=LIMIT_S)
        (session,) = answer.sessions
        assert isinstance(session, session_pb2.Session)
        return session

    async def create_on_both(self, names: set[str]) -> dict[str, session_pb2.Session]:
        """A session of each; those that are too many are left to their leases."""
        found: dict[str, session_pb2.Session] = {}
        while set(found) != names:
            if (session := await self.try_to_create()) is not None:
                found.setdefault(session.replica, session)
        return found

    async def try_to_create(self) -> session_pb2.Session | None:
        """None from a replica that Envoy does not know yet to be going or gone."""
        try:
            return await self.create()
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            await asyncio.sleep(0.05)
            return None

    async def cell(self, session: session_pb2.Session, code: str, replica: str = "") -> str:
        """The value of a cell, as text."""
        request = session_pb2.ExecuteRequest(session_id=session.id, code=code)
        told = led_to(replica or session.replica)
        events = [e async for e in self.stub.Execute(request, metadata=told, timeout=LIMIT_S)]
        assert events[-1].result.end == session_pb2.CELL_END_COMPLETED, events
        return bytes(events[-1].result.value.data["text/plain"]).decode()

    async def refused(self, session: session_pb2.Session, replica: str = "") -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.cell(session, "1", replica)
        return caught.value.code()


def led_to(replica: str) -> tuple[tuple[str, str], ...]:
    return (("assay-replica", replica),)


async def test_the_calls_of_sessions_on_both_reach_their_holders(front: Front) -> None:
    """Forks, too, and the calls about them."""
    caller = Caller(front.envoy.address)
    held = await caller.create_on_both({one.name for one in front.pair})
    for name, session in held.items():
        assert await caller.cell(session, f"x = {name!r}; x") == repr(name)
    for _ in range(10):
        for name, session in held.items():
            assert await caller.cell(session, "x") == repr(name)
    for name, session in held.items():
        request = session_pb2.ForkRequest(session_id=session.id, count=2)
        forked = await caller.stub.Fork(request, metadata=led_to(name), timeout=LIMIT_S)
        for copy in forked.sessions:
            assert copy.replica == name
            assert await caller.cell(copy, "x") == repr(name)
    await caller.channel.close()


async def test_a_session_asked_of_the_other_replica_is_refused_unharmed(front: Front) -> None:
    caller = Caller(front.envoy.address)
    names = {one.name for one in front.pair}
    held = await caller.create_on_both(names)
    for name, session in held.items():
        await caller.cell(session, "n = 1; n")
        (other,) = names - {name}
        code = await caller.refused(session, other)
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert await caller.cell(session, "n += 1; n") == "2"
    await caller.channel.close()


async def test_sessions_of_a_replica_that_drains_go_on_there_and_new_ones_elsewhere(
    front: Front,
) -> None:
    caller = Caller(front.envoy.address)
    leaving, staying = front.pair
    held = await caller.create_on_both({leaving.name, staying.name})
    await caller.cell(held[leaving.name], "x = 41; x")
    leaving.tell(signal.SIGTERM)
    in_turn = 0
    while in_turn < 20:
        session = await caller.try_to_create()
        in_turn = in_turn + 1 if session is not None and session.replica == staying.name else 0
    assert await caller.cell(held[leaving.name], "x + 1") == "42"
    leaving.tell(signal.SIGTERM)  # a second one ends the wait
    assert await leaving.ended() == 0
    assert await caller.refused(held[leaving.name]) is grpc.StatusCode.UNAVAILABLE
    await leaving.start()
    await caller.create_on_both({leaving.name, staying.name})
    await caller.channel.close()


async def test_our_client_needs_to_know_nothing_of_envoy(front: Front) -> None:
    """It follows its sessions, and says of those that are lost that they are."""
    killed, living = front.pair
    async with AsyncSessionClient(front.envoy.address) as client:
        held: dict[str, AsyncSession] = {}
        while len(held) < 2:
            session = await client.create()
            held.setdefault(session.replica, session)
        for name, session in held.items():
            await session.execute(f"x = {name!r}")
            (copy,) = await session.fork(1)
            assert (await copy.execute("x")).plain == name
        killed.tell(signal.SIGKILL)
        await killed.ended()
        with pytest.raises(SessionLost):
            await held[killed.name].execute("x")
        assert (await held[living.name].execute("x")).plain == living.name
        assert (await client.create()).replica == living.name
    await killed.start()
    caller = Caller(front.envoy.address)
    await caller.create_on_both({killed.name, living.name})
    await caller.channel.close()


async def test_of_a_killed_replica_its_sessions_alone_are_lost(front: Front) -> None:
    caller = Caller(front.envoy.address)
    killed, living = front.pair
    held = await caller.create_on_both({killed.name, living.name})
    for name, session in held.items():
        await caller.cell(session, f"x = {name!r}; x")
    killed.tell(signal.SIGKILL)
    await killed.ended()
    for _ in range(5):
        assert await caller.refused(held[killed.name]) is grpc.StatusCode.UNAVAILABLE
        assert await caller.cell(held[living.name], "x") == repr(living.name)
    await killed.start()
    # The same address and another life: it says that it has lost them.
    code = grpc.StatusCode.UNAVAILABLE
    while code is grpc.StatusCode.UNAVAILABLE:
        code = await caller.refused(held[killed.name])
        await asyncio.sleep(0.05)
    assert code is grpc.StatusCode.DATA_LOSS
    await caller.create_on_both({killed.name, living.name})
    await caller.channel.close()
