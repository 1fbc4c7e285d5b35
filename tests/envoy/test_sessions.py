"""The shipped Envoy configuration for sessions: a call goes to the replica it names, or nowhere.

By a real Envoy in front of small servers that count who was asked for what.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from assay.api.session.v1 import session_pb2, session_pb2_grpc
from assay.kit.health import Health, check, wait_until_serving
from envoy_support import SESSIONS, Envoy, binary, flags, free_ports
from names_support import name_server

PROGRAM = binary()
pytestmark = [
    pytest.mark.envoy,
    pytest.mark.skipif(PROGRAM is None, reason="no Envoy: `make test-envoy` installs one"),
]
LIMIT_S = 30.0
STATUS = health_pb2.HealthCheckResponse.ServingStatus


class Small(session_pb2_grpc.SessionServiceServicer):
    """A replica whose sessions hold nothing. Its name is its address, as Envoy wants it."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.name = f"{host}:{port}"
        self.asked: Counter[str] = Counter()
        self.fails = False
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        self._server = server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        session_pb2_grpc.add_SessionServiceServicer_to_server(self, server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        server.add_insecure_port(self.name)
        await server.start()
        await self.serves(well=True)

    async def serves(self, *, well: bool) -> None:
        await self._health.set("", STATUS.SERVING if well else STATUS.NOT_SERVING)

    async def end(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def _note(self, method: str, context: Any) -> None:
        self.asked[method] += 1
        if self.fails:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "something may have run")

    async def Create(self, request: Any, context: Any) -> session_pb2.CreateResponse:
        await self._note("Create", context)
        opened = session_pb2.Session(id="s", replica=self.name)
        return session_pb2.CreateResponse(sessions=[opened])

    async def Execute(self, request: Any, context: Any) -> AsyncIterator[Any]:
        await self._note("Execute", context)
        chunk = session_pb2.OutputChunk(data=self.name.encode())
        yield session_pb2.ExecuteResponse(output=chunk)
        if request.code == "for ever":
            await asyncio.Event().wait()
        yield session_pb2.ExecuteResponse(result=session_pb2.CellResult(number=1))


class Caller:
    """Calls without a retry of its own."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address)
        self._stub: Any = session_pb2_grpc.SessionServiceStub(self._channel)

    async def create(self) -> str:
        """Who opened it."""
        answer = await self._stub.Create(session_pb2.CreateRequest(), timeout=LIMIT_S)
        return str(answer.sessions[0].replica)

    def execute(self, replica: str, code: str = "") -> Any:
        """The stream of a cell."""
        request = session_pb2.ExecuteRequest(session_id="s", code=code)
        told = (("assay-replica", replica),)
        return self._stub.Execute(request, metadata=told, timeout=LIMIT_S)

    async def cell(self, replica: str) -> str:
        """Who ran it."""
        first, last = [event async for event in self.execute(replica)]
        assert last.result.number == 1
        return bytes(first.output.data).decode()

    async def refused(self, replica: str) -> str:
        """What is said of a replica that cannot be reached."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.cell(replica)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE, caught.value
        return str(caught.value.details())

    async def until(self, true: Callable[[set[str]], bool]) -> None:
        """Opens sessions, and takes refusals, until the latest ones are so."""
        latest: list[str] = []
        while not true(set(latest)):
            try:
                latest = [*latest[-19:], await self.create()]
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                latest = []
            await asyncio.sleep(0.01)

    async def until_only(self, names: set[str], times: int = 20) -> None:
        """Until so many sessions in turn were opened by these."""
        in_turn = 0
        while in_turn < times:
            in_turn = in_turn + 1 if await self.create() in names else 0
            await asyncio.sleep(0.01)


@asynccontextmanager
async def front(
    folder: Path, count: int = 2, shipped: Path = SESSIONS
) -> AsyncIterator[tuple[list[Small], Caller]]:
    """Small replicas, and who calls them by way of Envoy."""
    replicas = [Small(port) for port in free_ports(count)]
    async with before([one.name for one in replicas], replicas, folder, shipped) as caller:
        await caller.until(lambda latest: len(latest) == count)
        yield replicas, caller


@asynccontextmanager
async def before(
    addresses: Sequence[str], replicas: Sequence[Small], folder: Path, shipped: Path
) -> AsyncIterator[Caller]:
    assert PROGRAM is not None
    envoy = Envoy(PROGRAM, folder, addresses, shipped)
    for replica in replicas:
        await replica.start()
    try:
        envoy.start()
        await wait_until_serving(envoy.address)
        caller = Caller(envoy.address)
        yield caller
        await caller._channel.close()
    finally:
        envoy.stop()
        for replica in replicas:
            await replica.end()


def test_the_shipped_file_is_sound_and_up_to_date() -> None:
    """Envoy itself reads it, knows every field and warns of none."""
    done = subprocess.run(
        [str(PROGRAM), *flags(), "--mode", "validate", "-c", str(SESSIONS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower(), done.stderr


async def test_sessions_are_spread_and_their_calls_follow_them(tmp_path: Path) -> None:
    async with front(tmp_path, count=3) as (replicas, caller):
        opened = await asyncio.gather(*(caller.create() for _ in range(90)))
        used = Counter(opened)
        assert min(used[one.name] for one in replicas) >= 10, used
        for one in replicas:
            one.asked.clear()
        ran = await asyncio.gather(*(caller.cell(name) for name in opened))
        assert ran == opened
        assert {one.name: one.asked["Execute"] for one in replicas} == used


async def test_a_name_that_is_no_replicas_reaches_nobody(tmp_path: Path) -> None:
    """Neither a replica nor whatever listens at that address."""
    async with front(tmp_path) as (replicas, caller):
        stranger = Small(*free_ports(1))
        await stranger.start()
        try:
            for name in (stranger.name, "127.0.0.1:1", "elsewhere", "a,b", ""):
                await caller.refused(name)
        finally:
            await stranger.end()
        assert stranger.asked.total() == 0
        assert all(one.asked["Execute"] == 0 for one in replicas)


async def test_a_replica_that_drains_gets_no_new_session_and_keeps_its_own(tmp_path: Path) -> None:
    async with front(tmp_path) as (replicas, caller):
        leaving, staying = replicas
        await leaving.serves(well=False)
        await caller.until_only({staying.name})
        assert await caller.cell(leaving.name) == leaving.name
        await leaving.serves(well=True)
        await caller.until(lambda latest: len(latest) == 2)


async def test_nothing_that_may_have_run_is_sent_again(tmp_path: Path) -> None:
    async with front(tmp_path) as (replicas, caller):
        for one in replicas:
            one.asked.clear()
            one.fails = True
        assert await caller.refused(replicas[0].name) == "something may have run"
        with pytest.raises(grpc.aio.AioRpcError):
            await caller.create()
        assert sum((one.asked for one in replicas), Counter()) == {"Execute": 1, "Create": 1}


async def test_a_killed_replica_is_unavailable_and_no_other_answers_for_it(tmp_path: Path) -> None:
    async with front(tmp_path) as (replicas, caller):
        dead, living = replicas
        running = caller.execute(dead.name, "for ever")
        assert (await running.read()).output.data.decode() == dead.name
        await dead.end()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await running.read()
        assert caught.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL}
        for _ in range(5):
            await caller.refused(dead.name)
        assert living.asked["Execute"] == 0
        await caller.until_only({living.name})
        await dead.start()
        await caller.until(lambda latest: len(latest) == 2)
        assert await caller.cell(dead.name) == dead.name


async def test_replicas_come_and_go_by_their_common_name(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    replicas = [Small(port, f"127.0.0.{n}") for n in (1, 2, 3)]
    first, second, third = replicas
    async with name_server() as (names, server):
        names.addresses = ["127.0.0.1", "127.0.0.2"]
        shipped = asking(server, tmp_path / "asking.yaml")
        async with before([f"sandbox.test:{port}"], replicas, tmp_path, shipped) as caller:
            await caller.until(lambda latest: latest == {first.name, second.name})
            await caller.refused(third.name)
            names.addresses = ["127.0.0.2", "127.0.0.3"]
            await first.end()
            await caller.until(lambda latest: latest == {second.name, third.name})
            for one in (second, third):
                assert await caller.cell(one.name) == one.name
            await caller.refused(first.name)
            assert first.asked["Execute"] == 0


def asking(server: str, file: Path) -> Path:
    """The shipped configuration, asking another name server."""
    config = yaml.safe_load(SESSIONS.read_text())
    host, _, port = server.rpartition(":")
    resolver = {
        "name": "envoy.network.dns_resolver.cares",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3."
            "CaresDnsResolverConfig",
            "resolvers": [{"socket_address": {"address": host, "port_value": int(port)}}],
        },
    }
    for cluster in config["static_resources"]["clusters"]:
        if "cluster_type" in cluster:
            told = dict(cluster["cluster_type"]["typed_config"], typed_dns_resolver_config=resolver)
            cluster["cluster_type"] = dict(cluster["cluster_type"], typed_config=told)
    file.write_text(yaml.safe_dump(config))
    return file


async def test_a_health_watch_is_not_passed_on(tmp_path: Path) -> None:
    async with front(tmp_path) as (_, caller):
        assert await check(caller._channel) is Health.SERVING
