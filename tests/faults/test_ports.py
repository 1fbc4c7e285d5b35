"""The ports of the services and whoever knocks: other protocols, noise, slow and endless callers.

What must hold: a good call passes before, meanwhile and afterwards; the process is the same one and
has no more open files than before; its log does not grow with the number of strangers.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from assay.api.reward.v1 import reward_pb2
from assay.clients import EmbeddedServices, RewardClient
from assay.clients.config import ClientConfig, RetryPolicy
from assay.clients.execution import CallTest, ExecutionClient, Program, TestJob, TestSuite
from assay.clients.judging import JudgeClient
from assay.clients.reward import AsyncRewardClient
from assay.clients.types import Item
from assay.kit.channels import open_blocking_channel
from assay.kit.errors import UnavailableError, reason_of, status_sent
from assay.kit.reasons import Reason
from assay.kit.serving import ServeConfig, Service, start
from assay.kit.tls import ClientTls, ServerTls
from certificates import Certificates, make_certificates
from genrm_support import make_model
from port_noise import HTTP1, PREFACE, connect, messages, send

SEED = 20261122
FLAGS = {
    "reward": ("--workers", "1"),
    "sandbox": ("--slots", "1", "--languages", "python", "--isolation-floor", "confined"),
}
SQUARE = TestJob(
    Program("python", "def f(n):\n    return n * n\n"), TestSuite([CallTest("f", (7,), 49)])
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@dataclass(frozen=True)
class Port:
    """A service as a process."""

    name: str
    address: str
    pid: int
    log_file: Path
    ca_file: Path | None

    def good(self) -> None:
        """A call that is in order, on a connection of its own."""
        tls = None if self.ca_file is None else ClientTls(ca_file=self.ca_file)
        if self.name == "sandbox":
            with ExecutionClient(self.address, tls=tls) as sandbox:
                [report] = sandbox.run_tests([SQUARE])
                assert report.all_passed
        elif self.name == "genrm":
            with JudgeClient(self.address, tls=tls) as judge:
                assert [model.name for model in judge.list_models().models] == ["judge"]
        else:
            with RewardClient(self.address, tls=tls) as client:
                asked = [Item(text, reference="42", verifier="exact") for text in ("42", "41")]
                results = client.score(asked)
                assert [result.reward for result in results] == [1.0, 0.0]

    def files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def strange_lines(self) -> list[str]:
        """What the log has besides one line a call."""
        lines = self.log_file.read_text(errors="replace").splitlines()
        return [line for line in lines if "assay.kit.calls: call" not in line]


@pytest.fixture(
    scope="module",
    params=[
        ("reward", False),
        ("sandbox", True),
        pytest.param(("reward", True), marks=pytest.mark.slow),
        pytest.param(("sandbox", False), marks=pytest.mark.slow),
        pytest.param(("genrm", False), marks=pytest.mark.slow),
        pytest.param(("genrm", True), marks=pytest.mark.slow),
    ],
    ids=lambda param: f"{param[0]}-{'tls' if param[1] else 'plain'}",
)
def port(
    request: pytest.FixtureRequest,
    certificates: Certificates,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Port]:
    with pytest.MonkeyPatch.context() as patch:
        # What the digest is for: a trainer in this process may have turned gRPC's voice down.
        patch.setenv("GRPC_VERBOSITY", "INFO")
        yield from served(*request.param, certificates, tmp_path_factory)


def served(
    name: str,
    encrypted: bool,
    certificates: Certificates,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Port]:
    folder = tmp_path_factory.mktemp("service")
    flags = FLAGS.get(name, ())
    if name == "genrm":
        make_model(folder / "judge", "causal")
        # Its tests would go on, and be said in the log, while strangers knock.
        flags = ("--model", f"judge={folder / 'judge'}", "--no-self-test")
    if encrypted:
        pair = certificates.server
        flags += ("--tls-cert", str(pair.cert_file), "--tls-key", str(pair.key_file))
    with EmbeddedServices((name,), arguments={name: flags}, log_dir=folder) as services:
        yield Port(
            name,
            services.address_of(name),
            services.pid(name),
            folder / f"{name}.err",
            certificates.ca_file if encrypted else None,
        )


def unmoved(port: Port, files: int, limit_s: float = 20.0) -> None:
    """The process lives, serves, and comes to have no more open files than it had."""
    port.good()
    ends_s = time.monotonic() + limit_s
    while port.files() > files:
        assert time.monotonic() < ends_s, f"{port.files()} open files, {files} before"
        time.sleep(0.05)
    os.kill(port.pid, 0)


@pytest.mark.slow
def test_noise_does_nothing(port: Port) -> None:
    port.good()
    files, said = port.files(), len(port.strange_lines())
    for number, message in enumerate(messages(SEED, 240)):
        send(port.address, message, wait_s=0.02 if number % 4 == 0 else 0.0)
        if port.ca_file is not None and number % 4 == 1:
            send(port.address, message, port.ca_file, wait_s=0.02)
        if number == 120:
            port.good()
    unmoved(port, files)
    fresh = port.strange_lines()[said:]
    # Once a kind, not once a connection: gRPC has a handful of places that speak of handshakes.
    assert len(fresh) <= 6, fresh
    if port.ca_file is not None:
        # Another test may have had it said within this minute.
        assert any("Handshake failed" in line for line in port.strange_lines()), (
            port.strange_lines()
        )
    assert all("assay.kit.native_log: gRPC: " in line for line in fresh), fresh


@pytest.mark.slow
def test_callers_who_never_end_keep_nobody_waiting(port: Port) -> None:
    port.good()
    files = port.files()
    held = [connect(port.address) for _ in range(60)]
    try:
        for letter in (PREFACE[:1], PREFACE[1:2], HTTP1[:3]):
            for connection in held:
                try:
                    connection.sendall(letter)
                except OSError:
                    continue  # the service has hung up, as it may
            port.good()
    finally:
        for connection in held:
            connection.close()
    unmoved(port, files)


METHODS = {
    "reward": "/assay.api.reward.v1.RewardService/BatchScore",
    "sandbox": "/assay.api.execution.v1.ExecutionService/Execute",
    "genrm": "/assay.api.judge.v1.JudgeService/JudgeResponses",
}


def called(port: Port, payloads: list[bytes]) -> list[bytes | grpc.RpcError]:
    """The raw answer to each payload, or the error."""
    tls = None if port.ca_file is None else ClientTls(ca_file=port.ca_file)
    channel, _ = open_blocking_channel(port.address, tls=tls)
    found: list[bytes | grpc.RpcError] = []
    with channel:
        ask = channel.unary_unary(METHODS[port.name])
        calls = [ask.future(payload, timeout=30) for payload in payloads]
        for call in calls:
            error = call.exception()
            found.append(call.result() if error is None else error)
    return found


@pytest.mark.slow
def test_bytes_that_are_no_message_are_refused(port: Port) -> None:
    """Noise as a message: an answer, or a refusal that blames the request; never a defect."""
    rng = random.Random(SEED)
    payloads = [rng.randbytes(rng.randrange(1, 200)) for _ in range(100)]
    codes: Counter[str] = Counter()
    for answer in called(port, [b"\x0a\xff", *payloads]):
        if isinstance(answer, bytes):
            codes["OK"] += 1
            continue
        status = status_sent(answer)
        assert status is not None
        codes[reason_of(status)] += 1
        assert answer.code() is grpc.StatusCode.INVALID_ARGUMENT  # type: ignore[attr-defined]
        assert "\n" not in status.message
    assert codes[Reason.MALFORMED_REQUEST] > 50, codes
    port.good()
    assert not re.search("Traceback|defect", port.log_file.read_text(errors="replace"))


@pytest.mark.parametrize("port", [("reward", False)], indirect=True)
def test_fields_of_a_later_version_are_passed_over(port: Port) -> None:
    item = reward_pb2.Item(id="a", verifier="exact", response="42")
    item.reference.text = "42"
    later = b"\xfa\x7f\x03new"  # field 2047, of bytes
    request = reward_pb2.BatchScoreRequest(items=[item]).SerializeToString() + later
    [answer] = called(port, [request])
    assert isinstance(answer, bytes)
    [result] = reward_pb2.BatchScoreResponse.FromString(answer).results
    assert result.judgement.verdict == "correct"


@pytest.mark.parametrize("port", [("reward", False)], indirect=True)
async def test_items_bent_at_random_are_judged_or_refused_never_a_defect(port: Port) -> None:
    """Judgements plus faults are the items, whatever a client with a defect makes of them."""
    rng = random.Random(SEED)
    item = reward_pb2.Item(id="a", verifier="math", response=r"\boxed{42}")
    item.reference.text = "42"
    whole = reward_pb2.BatchScoreRequest(items=[item]).SerializeToString()
    payloads = []
    for _ in range(200):
        bent = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            bent[rng.randrange(len(bent))] = rng.randrange(256)
        payloads.append(
            bytes(bent[: rng.randrange(1, len(bent) + 1)] if rng.random() < 0.2 else bent)
        )
    answers = await asyncio.to_thread(called, port, payloads)
    for payload, answer in zip(payloads, answers, strict=True):
        if isinstance(answer, bytes):
            sent = reward_pb2.BatchScoreRequest.FromString(payload).items
            results = reward_pb2.BatchScoreResponse.FromString(answer).results
            assert [result.id for result in results] == [item.id for item in sent]
            assert all(result.WhichOneof("outcome") for result in results)
        else:
            assert answer.code() is grpc.StatusCode.INVALID_ARGUMENT, (payload, answer)  # type: ignore[attr-defined]
    assert not re.search("Traceback|defect", port.log_file.read_text(errors="replace"))


async def fine() -> None:
    """A self-test that passes."""


SERVICE = Service("assay.test.Nothing", lambda _server: None, fine)
ONCE = ClientConfig(retry=RetryPolicy(max_attempts=1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "client", "says"),
    [
        ("server", None, r"it may want TLS \(--tls-ca, its authority\)"),
        (None, "ca", "does not speak TLS: leave TLS out here"),
        ("expired", "ca", "a certificate that has expired: renew it on the server"),
        ("server", "stranger", "a certificate that the given authority did not sign"),
        ("server", "elsewhere", "a certificate of another name"),
        ("mutual", "ca", "or a client certificate"),
    ],
)
async def test_a_client_is_told_what_does_not_fit(
    certificates: Certificates, server: str | None, client: str | None, says: str
) -> None:
    ca_file = certificates.ca_file
    pair = certificates.expired if server == "expired" else certificates.server
    mutual = ca_file if server == "mutual" else None
    served = None if server is None else ServerTls(pair.cert_file, pair.key_file, mutual)
    offered = {
        None: None,
        "ca": ClientTls(ca_file),
        "stranger": ClientTls(certificates.stranger.cert_file),
        "elsewhere": ClientTls(ca_file, server_name="elsewhere.test"),
    }[client]
    async with (
        await start([SERVICE], ServeConfig(tls=served)) as running,
        AsyncRewardClient(running.address, tls=offered, config=ONCE, timeout_s=10) as asking,
    ):
        with pytest.raises(UnavailableError, match=says) as caught:
            await asking.list_verifiers()
    assert caught.value.reason == Reason.UNREACHABLE
    assert "\n" not in str(caught.value)
    assert running.address in str(caught.value)
