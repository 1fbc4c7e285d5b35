"""Metrics by tenant, over the real wire: names of the operator's tokens, and nobody else's."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from prometheus_client.metrics_core import Metric

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.kit.calls import BY_CERTIFICATE
from assay.kit.channels import open_channel
from assay.kit.serving import ServeConfig, Service, start
from assay.kit.tls import ClientTls, ServerTls
from assay.kit.tokens import hash_token
from certificates import make_certificates
from metrics_support import scrape, total

ITEMS, CALLS = "assay_reward_items_total", "assay_rpc_calls_total"


class Server:
    """A reward server of two tenants and an operator, with HTTP."""

    def __init__(self, folder: Path) -> None:
        tokens, operator = folder / "tokens", folder / "operator"
        tokens.write_text("".join(hash_token(name, f"{name}-token").line + "\n" for name in "ab"))
        operator.write_text("the-operators")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "assay.reward_server", "--port=0", "--workers=1",
             "--metrics-port=0", "--http-port=0", f"--tokens-file={tokens}",
             f"--token-file={operator}"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline().split()[-1] for _ in range(3)]
        self.address, self.metrics, self.http = lines


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("tenants"))
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def score(address: str, items: int, *metadata: tuple[str, str]) -> str:
    """The code of a call, which streams where there is more than one item."""
    item = reward_pb2.Item(verifier="exact", response="1", reference=reward_pb2.Reference(text="1"))
    made = [reward_pb2.Item(id=str(number)) for number in range(items)]
    for one in made:
        one.MergeFrom(item)
    with grpc.insecure_channel(address) as channel:
        stub = reward_pb2_grpc.RewardServiceStub(channel)
        try:
            if items == 1:
                stub.BatchScore(
                    reward_pb2.BatchScoreRequest(items=made), timeout=60, metadata=metadata
                )
            else:
                chunks = iter([reward_pb2.StreamScoreRequest(items=made)])
                list(stub.StreamScore(chunks, timeout=60, metadata=metadata))
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code.name
    return "OK"


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end_s, "it is not counted"
        time.sleep(0.05)


def bearer(token: str) -> tuple[str, str]:
    return "authorization", f"Bearer {token}"


def tenants(families: list[Metric]) -> set[str]:
    """Every value of the label, of whatever metric."""
    return {
        sample.labels["tenant"]
        for family in families
        for sample in family.samples
        if "tenant" in sample.labels
    }


def test_calls_and_items_are_those_of_the_tokens_tenant(server: Server) -> None:
    before = scrape(server.metrics)
    assert score(server.address, 1, bearer("a-token")) == "OK"
    assert score(server.address, 5, bearer("b-token")) == "OK"
    assert score(server.address, 1, bearer("the-operators")) == "OK"
    request = urllib.request.Request(
        f"http://{server.http}/v1/score",
        data=b'{"items": [{"verifier": "exact", "response": "1", "reference": "1"}]}',
        headers={"authorization": "Bearer a-token", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200

    def rises(name: str) -> list[float]:
        after = scrape(server.metrics)
        return [
            total(after, name, tenant=tenant) - total(before, name, tenant=tenant)
            for tenant in ("a", "b", "default", "")
        ]

    # A call is counted when its answer is on its way.
    until(lambda: rises(CALLS) == [2, 1, 1, 0])
    assert rises(ITEMS) == [2, 5, 1, 0]


def test_nothing_that_a_caller_sends_is_a_tenant(server: Server) -> None:
    stranger = "strangers-own"
    for metadata in (
        [bearer(stranger)],
        [bearer(f"a {stranger}")],
        [("authorization", stranger), ("x-tenant", stranger), ("tenant", stranger)],
        [("x-tenant", stranger)],
        [bearer("a"), ("x-request-id", stranger)],
    ):
        assert score(server.address, 1, *metadata) == "UNAUTHENTICATED"
    said = [bearer("a-token"), ("tenant", stranger), ("x-tenant", stranger), ("x-user", stranger)]
    assert score(server.address, 1, *said) == "OK"
    for path in ("/v1/score", f"/{stranger}"):
        request = urllib.request.Request(
            f"http://{server.http}{path}?tenant={stranger}",
            headers={"authorization": f"Bearer {stranger}", "x-tenant": stranger},
        )
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(request, timeout=60)
    refused = {"tenant": "", "code": "UNAUTHENTICATED"}
    until(lambda: total(scrape(server.metrics), CALLS, **refused) >= 7)
    found = scrape(server.metrics)
    assert tenants(found) <= {"", "a", "b", "default"}
    assert not any(stranger in str(sample) for family in found for sample in family.samples)


def test_the_build_is_told(server: Server) -> None:
    [sample] = [
        sample
        for family in scrape(server.metrics)
        for sample in family.samples
        if sample.name == "assay_build_info"
    ]
    assert (sample.value, sample.labels["service"]) == (1, "reward_server")
    python = ".".join(map(str, sys.version_info[:3]))
    assert sample.labels["python"] == python
    assert sample.labels["version"]


class Refuser(reward_pb2_grpc.RewardServiceServicer):
    """Answers nothing; its calls are counted all the same."""

    async def fine(self) -> None:
        """Its self-test."""


async def test_whom_certificates_name_is_one_label_however_many_they_are(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    tls = ServerTls(made.server.cert_file, made.server.key_file, made.ca_file)
    refuser = Refuser()
    service = Service(
        "assay.api.reward.v1.RewardService",
        lambda one: reward_pb2_grpc.add_RewardServiceServicer_to_server(refuser, one),
        refuser.fine,
    )
    async with await start([service], ServeConfig(tls=tls, metrics_port=0)) as running:
        for party in (made.client, made.server):  # of two names
            mine = ClientTls(made.ca_file, party.cert_file, party.key_file)
            async with open_channel(running.address, tls=mine) as channel:
                with pytest.raises(grpc.aio.AioRpcError):
                    await reward_pb2_grpc.RewardServiceStub(channel).BatchScore(
                        reward_pb2.BatchScoreRequest(), timeout=30
                    )
        address = running.metrics_address or ""
        await asyncio.to_thread(until, lambda: total(scrape(address), CALLS) == 2)
        assert tenants(scrape(address)) == {BY_CERTIFICATE}
