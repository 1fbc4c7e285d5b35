"""Tokens of tenants, the door to networks, and what each tenant may ask for, over the real wire."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.clients.core.failures import error_of_call
from assay.kit.access import Access, certified_tenant
from assay.kit.calls import tenant_var
from assay.kit.channels import open_channel
from assay.kit.errors import CallError, ConfigError
from assay.kit.health import Health, check
from assay.kit.queue import FairQueue, Lane
from assay.kit.reasons import Reason
from assay.kit.serving import RunningServer, ServeConfig, Service, serve, start
from assay.kit.tls import ClientTls, ServerTls
from assay.kit.tokens import hash_token, new_token
from certificates import make_certificates

NAME = "assay.api.reward.v1.RewardService"
LIMIT_S = 20.0


class _Job:
    def __init__(self, item: reward_pb2.Item, lane: Lane) -> None:
        self.item, self.lane, self.size_bytes = item, lane, 1
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class OneWorker(reward_pb2_grpc.RewardServiceServicer):
    """Judges one item at a time from a fair queue, when told to; keeps the order."""

    def __init__(self) -> None:
        self.queue: FairQueue[_Job] = FairQueue(10_000, 10_000)
        self.order: list[str] = []
        self.go, self.asked = asyncio.Event(), asyncio.Event()
        self.tenants: set[str] = set()
        self._worker: asyncio.Task[None] | None = None

    def service(self) -> Service:
        return Service(
            NAME,
            lambda s: reward_pb2_grpc.add_RewardServiceServicer_to_server(self, s),
            self._open,
            self._close,
        )

    async def _open(self) -> None:
        self._worker = asyncio.create_task(self._work())

    async def _close(self) -> None:
        if self._worker is not None:
            self._worker.cancel()

    async def _work(self) -> None:
        await self.go.wait()
        while True:
            await asyncio.sleep(0)
            if (job := self.queue.take_now()) is None:
                continue
            self.order.append(job.item.id)
            if not job.done.done():
                job.done.set_result(None)

    async def _judge(self, items: Any) -> list[reward_pb2.Result]:
        lane = Lane()
        self.tenants.add(tenant_var.get())
        jobs = [_Job(item, lane) for item in items]
        self.queue.put(jobs)
        self.asked.set()
        await asyncio.gather(*(job.done for job in jobs))
        return [reward_pb2.Result(id=job.item.id) for job in jobs]

    async def BatchScore(self, request: Any, context: Any) -> reward_pb2.BatchScoreResponse:
        return reward_pb2.BatchScoreResponse(results=await self._judge(request.items))

    async def StreamScore(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:
        async for request in request_iterator:
            yield reward_pb2.StreamScoreResponse(results=await self._judge(request.items))


def batch(name: str, items: int) -> reward_pb2.BatchScoreRequest:
    return reward_pb2.BatchScoreRequest(
        items=[reward_pb2.Item(id=f"{name}{n}") for n in range(items)]
    )


async def score(
    address: str,
    token: str | None,
    request: reward_pb2.BatchScoreRequest,
    tls: ClientTls | None = None,
) -> int:
    """Scores with a connection of its own; gives how many results came back."""
    async with open_channel(address, token=token, tls=tls) as channel:
        new_stub: Any = reward_pb2_grpc.RewardServiceStub
        try:
            answer = await new_stub(channel).BatchScore(request, timeout=LIMIT_S)
        except grpc.aio.AioRpcError as error:
            raise error_of_call(error, address, "") from None
        return len(answer.results)


async def test_a_certificate_names_the_tenant_of_who_brings_no_token(
    tmp_path: Path,
) -> None:
    made = make_certificates(tmp_path)
    tls = ServerTls(made.server.cert_file, made.server.key_file, client_ca_file=made.ca_file)
    mine = ClientTls(made.ca_file, made.client.cert_file, made.client.key_file)
    theirs = ClientTls(made.ca_file, made.server.cert_file, made.server.key_file)
    judge, access = OneWorker(), Access(tenant_calls=1)
    async with await start([judge.service()], ServeConfig(tls=tls, access=access)) as server:
        waiting = asyncio.create_task(score(server.address, None, batch("a", 1), mine))
        await asyncio.wait_for(judge.asked.wait(), LIMIT_S)
        with pytest.raises(CallError) as caught:
            await score(server.address, None, batch("b", 1), mine)
        assert caught.value.reason == Reason.QUOTA_EXCEEDED
        other = asyncio.create_task(score(server.address, None, batch("c", 1), theirs))
        judge.go.set()
        assert await waiting == await other == 1
    assert judge.tenants == {"client", "server"}


@pytest.mark.parametrize(
    ("facts", "tenant"),
    [
        ({"x509_common_name": [b"team-a"], "x509_subject_alternative_name": [b"b"]}, "team-a"),
        ({"x509_common_name": [b""], "x509_subject_alternative_name": [b"spiffe://x/y"]},
         "spiffe---x-y"),
        ({"x509_common_name": [b"- \xff\n" + b"a" * 99]}, "a" * 64),
        ({"transport_security_type": [b"ssl"]}, ""),
    ],
)  # fmt: skip
def test_the_name_of_a_certificate(facts: dict[str, list[bytes]], tenant: str) -> None:
    assert certified_tenant(facts) == tenant
    if tenant:
        assert hash_token(tenant, new_token()).tenant == tenant


async def trouble(address: str, token: str | None, items: int = 1) -> CallError:
    with pytest.raises(CallError) as caught:
        await score(address, token, batch("x", items))
    return caught.value


async def score_at_last(address: str, token: str, request: Any, refused: Reason) -> int:
    """The same, however often it is refused for this reason first."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            try:
                return await score(address, token, request)
            except CallError as error:
                if error.reason != refused:
                    raise
                await asyncio.sleep(0.1)


async def until(condition: Any) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110  # the server's state has no event to wait for
            await asyncio.sleep(0.01)


@pytest.fixture
def tokens() -> dict[str, str]:
    return {name: new_token() for name in ("alice", "bob")}


@pytest.fixture
def file(tmp_path: Path, tokens: dict[str, str]) -> Path:
    path = tmp_path / "tokens"
    write(path, *(hash_token(*pair).line for pair in tokens.items()))
    return path


def write(file: Path, *lines: str) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG, logger="assay"):
        yield caplog


def everything(logged: pytest.LogCaptureFixture) -> str:
    return "\n".join(f"{record.getMessage()} {vars(record)}" for record in logged.records)


async def test_a_token_says_whose_call_it_is_and_is_written_nowhere(
    file: Path, tokens: dict[str, str], logged: pytest.LogCaptureFixture
) -> None:
    worker = OneWorker()
    worker.go.set()
    config = ServeConfig(token="the-one-token", access=Access(tokens_file=file))
    stranger = new_token()
    async with await start([worker.service()], config) as server:
        for token in ("the-one-token", *tokens.values()):
            assert await score(server.address, token, batch("x", 2)) == 2
        assert worker.tenants == {"default", "alice", "bob"}
        said = []
        digest = hash_token("alice", tokens["alice"]).digest.hex()
        for wrong in (None, stranger, tokens["alice"][:-1], digest, f"sha256:{digest}"):
            error = await trouble(server.address, wrong)
            assert error.reason == Reason.UNAUTHENTICATED
            said.append(f"{error} {error.metadata}")
        assert await check(server.address) is Health.SERVING
    written = "\n".join([*said, everything(logged)])
    for secret in ("the-one-token", stranger, digest, *tokens.values()):
        assert secret not in written
    assert "'tenant': 'alice'" in written


async def test_a_revoked_token_is_refused_once_the_file_has_changed(
    file: Path, tokens: dict[str, str], logged: pytest.LogCaptureFixture
) -> None:
    worker = OneWorker()
    worker.go.set()
    async with await start([worker.service()], ServeConfig(access=Access(file))) as server:
        assert await score(server.address, tokens["alice"], batch("x", 1)) == 1
        fresh = new_token()
        bad = f"bob sha256:oops {tokens['bob']}"
        await asyncio.to_thread(write, file, hash_token("alice", fresh).line, bad)
        asked = score_at_last(server.address, fresh, batch("x", 1), Reason.UNAUTHENTICATED)
        assert await asked == 1
        for revoked in tokens.values():
            assert (await trouble(server.address, revoked)).reason == Reason.UNAUTHENTICATED
        await asyncio.to_thread(file.unlink)
        server.reload()
        assert await score(server.address, fresh, batch("x", 1)) == 1
    said = everything(logged)
    assert "lines that are no token (2); the others count" in said
    assert "No such file or directory; the tokens stay as they were" in said
    assert not any(token in said for token in (fresh, *tokens.values()))


async def test_sighup_reads_the_tokens_at_once(file: Path, tokens: dict[str, str]) -> None:
    worker = OneWorker()
    worker.go.set()
    ready: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
    config = ServeConfig(access=Access(file))
    serving = asyncio.create_task(serve([worker.service()], config, on_ready=ready.set_result))
    server = await asyncio.wait_for(ready, LIMIT_S)
    assert await score(server.address, tokens["alice"], batch("x", 1)) == 1
    await asyncio.to_thread(write, file, hash_token("bob", tokens["bob"]).line)
    os.kill(os.getpid(), signal.SIGHUP)
    await asyncio.sleep(0)
    assert (await trouble(server.address, tokens["alice"])).reason == Reason.UNAUTHENTICATED
    assert await score(server.address, tokens["bob"], batch("x", 1)) == 1
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(serving, LIMIT_S)


async def test_who_floods_delays_the_other_tenant_by_a_turn(
    file: Path, tokens: dict[str, str]
) -> None:
    worker = OneWorker()
    async with await start([worker.service()], ServeConfig(access=Access(file))) as server:
        flood = [
            asyncio.create_task(score(server.address, tokens["alice"], batch(f"a{n}-", 100)))
            for n in range(10)
        ]
        await until(lambda: len(worker.queue) == 1000)
        few = asyncio.create_task(score(server.address, tokens["bob"], batch("b", 5)))
        await until(lambda: len(worker.queue) == 1005)
        worker.go.set()
        assert await few == 5
        assert sum(await asyncio.gather(*flood)) == 1000
    # By turns of calls alone, Bob's five would be spread over the first 55.
    places = [place for place, name in enumerate(worker.order) if name.startswith("b")]
    assert places == [1, 3, 5, 7, 9]


async def test_items_in_flight_are_bounded_for_each_tenant(
    file: Path, tokens: dict[str, str]
) -> None:
    worker = OneWorker()
    access = Access(file, tenant_items_in_flight=10)
    async with await start([worker.service()], ServeConfig(access=access)) as server:
        first = asyncio.create_task(score(server.address, tokens["alice"], batch("a", 8)))
        await until(lambda: len(worker.queue) == 8)
        error = await trouble(server.address, tokens["alice"], 3)
        assert error.reason == Reason.QUOTA_EXCEEDED
        assert error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert error.retry_after_s
        other = asyncio.create_task(score(server.address, tokens["bob"], batch("b", 10)))
        await until(lambda: len(worker.queue) == 18)
        worker.go.set()
        assert (await first, await other) == (8, 10)
        # More than the limit passes alone: a batch of the size that the server names always can.
        assert await score(server.address, tokens["alice"], batch("a", 11)) == 11


async def test_a_call_given_up_frees_what_it_held(file: Path, tokens: dict[str, str]) -> None:
    worker = OneWorker()
    access = Access(file, tenant_items_in_flight=10)
    async with await start([worker.service()], ServeConfig(access=access)) as server:
        given_up = asyncio.create_task(score(server.address, tokens["alice"], batch("a", 10)))
        await until(lambda: len(worker.queue) == 10)
        assert (await trouble(server.address, tokens["alice"])).reason == Reason.QUOTA_EXCEEDED
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        worker.go.set()
        asked = score_at_last(
            server.address, tokens["alice"], batch("b", 10), Reason.QUOTA_EXCEEDED
        )
        assert await asked == 10


async def test_items_a_second_are_bounded_and_the_wait_is_told(
    file: Path, tokens: dict[str, str]
) -> None:
    worker = OneWorker()
    worker.go.set()
    access = Access(file, tenant_items_per_s=2)
    async with await start([worker.service()], ServeConfig(access=access)) as server:
        assert await score(server.address, tokens["alice"], batch("a", 100)) == 100
        error = await trouble(server.address, tokens["alice"])
        assert error.reason == Reason.QUOTA_EXCEEDED
        assert error.retry_after_s is not None
        assert 1 < error.retry_after_s <= 49
        assert await score(server.address, tokens["bob"], batch("b", 1)) == 1


async def test_a_stream_is_slowed_and_loses_nothing(file: Path, tokens: dict[str, str]) -> None:
    worker = OneWorker()
    worker.go.set()
    access = Access(file, tenant_items_in_flight=4, tenant_items_per_s=1000)

    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        for n in range(50):
            items = [reward_pb2.Item(id=f"{n}-{m}") for m in range(3)]
            yield reward_pb2.StreamScoreRequest(items=items)

    async with (
        await start([worker.service()], ServeConfig(access=access)) as server,
        open_channel(server.address, token=tokens["alice"]) as channel,
    ):
        new_stub: Any = reward_pb2_grpc.RewardServiceStub
        call = new_stub(channel).StreamScore(chunks(), timeout=LIMIT_S)
        assert sum([len(answer.results) async for answer in call]) == 150


async def test_a_token_taken_away_ends_its_streams(file: Path, tokens: dict[str, str]) -> None:
    worker = OneWorker()
    worker.go.set()
    more = asyncio.Event()

    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        yield reward_pb2.StreamScoreRequest(items=[reward_pb2.Item(id="before")])
        await more.wait()
        yield reward_pb2.StreamScoreRequest(items=[reward_pb2.Item(id="after")])

    async with (
        await start([worker.service()], ServeConfig(access=Access(file))) as server,
        open_channel(server.address, token=tokens["alice"]) as channel,
    ):
        new_stub: Any = reward_pb2_grpc.RewardServiceStub
        call = new_stub(channel).StreamScore(chunks(), timeout=LIMIT_S)
        answers = aiter(call)
        assert (await anext(answers)).results[0].id == "before"
        await asyncio.to_thread(write, file, hash_token("bob", tokens["bob"]).line)
        server.reload()
        more.set()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await anext(answers)
        assert error_of_call(caught.value, server.address, "").reason == Reason.UNAUTHENTICATED
    assert worker.order == ["before"]


async def test_calls_at_a_time_are_bounded_for_each_tenant(
    file: Path, tokens: dict[str, str]
) -> None:
    worker = OneWorker()
    async with await start(
        [worker.service()], ServeConfig(access=Access(file, tenant_calls=1))
    ) as server:
        first = asyncio.create_task(score(server.address, tokens["alice"], batch("a", 1)))
        await until(lambda: len(worker.queue) == 1)
        assert (await trouble(server.address, tokens["alice"])).reason == Reason.QUOTA_EXCEEDED
        worker.go.set()
        assert await score(server.address, tokens["bob"], batch("b", 1)) == 1
        assert await first == 1


@pytest.mark.parametrize(
    "config",
    [
        ServeConfig(host="0.0.0.0"),
        ServeConfig(host="0.0.0.0", access=Access(published_on="192.0.2.1")),
        ServeConfig(access=Access(published_on="0.0.0.0")),
    ],
)
async def test_a_network_is_not_served_without_a_token(config: ServeConfig) -> None:
    with pytest.raises(ConfigError, match=r"not loopback.*--tokens-file.*--trusted-network"):
        await start([OneWorker().service()], config)


@pytest.mark.parametrize(
    ("config", "reflects"),
    [
        (ServeConfig(), True),
        (ServeConfig(host="localhost"), True),
        (ServeConfig(host="0.0.0.0", token="secret"), False),
        (ServeConfig(host="0.0.0.0", access=Access(trusted_network=True)), False),
        (ServeConfig(host="0.0.0.0", access=Access(published_on="127.0.0.1")), True),
        (ServeConfig(host="0.0.0.0", token="secret", access=Access(reflection=True)), True),
    ],
)
async def test_a_network_is_told_the_contract_only_on_request(
    config: ServeConfig, reflects: bool
) -> None:
    async with (
        await start([OneWorker().service()], config) as server,
        open_channel(f"127.0.0.1:{server.port}", token=config.token) as channel,
    ):
        new_stub: Any = reflection_pb2_grpc.ServerReflectionStub

        async def ask() -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
            yield reflection_pb2.ServerReflectionRequest(list_services="")

        call = new_stub(channel).ServerReflectionInfo(ask(), timeout=LIMIT_S)
        if reflects:
            assert [NAME in str(answer) async for answer in call] == [True]
        else:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                [answer async for answer in call]
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
