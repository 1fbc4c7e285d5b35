"""Certificates and profiles that a running server reads again, however they are replaced."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import grpc
import pytest

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.clients import RewardClient
from assay.kit.channels import open_channel
from assay.kit.errors import ConfigError, error_info
from assay.kit.health import Health, check
from assay.kit.reliability import Reliability, error_rate, reliability_text
from assay.kit.reloading import Reloader
from assay.kit.serving import RunningServer, ServeConfig, Service, start
from assay.kit.tls import ClientTls, LiveTls, ServerTls
from assay.kit.watching import FileWatch, FolderWatch, Reloadable
from certificates import Certificates, Party, make_certificates
from metrics_support import scrape, total

LIMIT_S = 30.0


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Of another authority."""
    return make_certificates(tmp_path_factory.mktemp("theirs"))


class Echo(reward_pb2_grpc.RewardServiceServicer):
    """Answers each chunk of a stream."""

    async def StreamScore(
        self, requests: AsyncIterator[reward_pb2.StreamScoreRequest], context: object
    ) -> AsyncIterator[reward_pb2.StreamScoreResponse]:
        del context
        async for _ in requests:
            yield reward_pb2.StreamScoreResponse()

    async def fine(self) -> None:
        """Its self-test."""

    def service(self) -> Service:
        return Service(
            "assay.api.reward.v1.RewardService",
            lambda server: reward_pb2_grpc.add_RewardServiceServicer_to_server(self, server),
            self.fine,
        )


def put(files: ServerTls, party: Party, ca_file: Path | None = None) -> None:
    """Replaces the files by renames, the certificate first."""
    for target, source in (
        (files.cert_file, party.cert_file),
        (files.key_file, party.key_file),
        (files.client_ca_file, ca_file),
    ):
        if target is not None and source is not None:
            partial = target.with_name("partial")
            shutil.copy(source, partial)
            partial.replace(target)


@contextlib.asynccontextmanager
async def serving(files: ServerTls) -> AsyncIterator[RunningServer]:
    config = ServeConfig(tls=files, metrics_port=0)
    async with await start([Echo().service()], config) as server:
        yield server


async def until(holds: Callable[[], object]) -> None:
    end_s = time.monotonic() + LIMIT_S
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < end_s, "it did not come to be"
        await asyncio.sleep(0.1)


async def until_trusted(address: str, tls: ClientTls) -> None:
    end_s = time.monotonic() + LIMIT_S
    while await check(address, timeout_s=2, tls=tls) is not Health.SERVING:
        assert time.monotonic() < end_s, "the certificate is not served"
        await asyncio.sleep(0.1)


def told(server: RunningServer, what: str, result: str) -> float:
    families = scrape(server.metrics_address or "")
    return total(families, "assay_reloads_total", what=what, result=result)


def is_stale(server: RunningServer, what: str) -> bool:
    return bool(total(scrape(server.metrics_address or ""), "assay_reload_stale", what=what))


async def test_a_certificate_is_replaced_in_mid_stream(
    ours: Certificates, theirs: Certificates, tmp_path: Path
) -> None:
    files = ServerTls(tmp_path / "server.pem", tmp_path / "server.key")
    put(files, ours.server)
    old, new = ClientTls(ours.ca_file), ClientTls(theirs.ca_file)
    async with serving(files) as server, open_channel(server.address, tls=old) as channel:
        stream = reward_pb2_grpc.RewardServiceStub(channel).StreamScore(timeout=120)
        await stream.write(reward_pb2.StreamScoreRequest())
        assert await stream.read() == reward_pb2.StreamScoreResponse()
        assert await check(server.address, timeout_s=2, tls=new) is Health.UNREACHABLE
        put(files, theirs.server)
        await until_trusted(server.address, new)
        assert await check(server.address, timeout_s=2, tls=old) is Health.UNREACHABLE
        for _ in range(3):
            await stream.write(reward_pb2.StreamScoreRequest())
            assert await stream.read() == reward_pb2.StreamScoreResponse()
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF
        assert not is_stale(server, "certificates")


async def test_what_is_broken_changes_nothing_until_it_is_whole(
    ours: Certificates, theirs: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = ServerTls(tmp_path / "server.pem", tmp_path / "server.key")
    put(files, ours.server)
    old, new = ClientTls(ours.ca_file), ClientTls(theirs.ca_file)
    whole = theirs.server.cert_file.read_bytes()

    async def nothing_changed(failures: int) -> None:
        await until(lambda: told(server, "certificates", "failed") == failures)
        assert is_stale(server, "certificates")
        assert await check(server.address, timeout_s=5, tls=old) is Health.SERVING
        assert await check(server.address, timeout_s=5, tls=new) is Health.UNREACHABLE

    async with serving(files) as server:
        files.cert_file.write_bytes(whole[: len(whole) // 2])
        await nothing_changed(1)
        files.cert_file.unlink()
        await nothing_changed(2)
        files.cert_file.write_bytes(b"")
        await nothing_changed(3)
        files.cert_file.write_bytes(whole)  # the key is still the old one's
        await nothing_changed(4)
        assert "cannot be used together" in caplog.text
        assert "the certificates from before stay in force" in caplog.text
        shutil.copy(theirs.server.key_file, files.key_file)
        await until_trusted(server.address, new)
        await until(lambda: not is_stale(server, "certificates"))
        assert "PRIVATE" not in caplog.text


async def test_the_links_of_a_kubernetes_secret_are_followed(
    ours: Certificates, theirs: Certificates, tmp_path: Path
) -> None:
    def fill(name: str, party: Party) -> None:
        (tmp_path / name).mkdir()
        shutil.copy(party.cert_file, tmp_path / name / "tls.crt")
        shutil.copy(party.key_file, tmp_path / name / "tls.key")
        for path in (tmp_path / name).iterdir():
            os.utime(path, (1, 1))  # a date says nothing
        (tmp_path / "link").symlink_to(name)
        (tmp_path / "link").replace(tmp_path / "..data")

    fill("..2026_1", ours.server)
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    async with serving(ServerTls(tmp_path / "tls.crt", tmp_path / "tls.key")) as server:
        await until_trusted(server.address, ClientTls(ours.ca_file))
        fill("..2026_2", theirs.server)
        shutil.rmtree(tmp_path / "..2026_1")
        await until_trusted(server.address, ClientTls(theirs.ca_file))
        assert told(server, "certificates", "failed") == 0


async def test_another_authority_of_clients_shuts_the_old_ones_out(
    ours: Certificates, theirs: Certificates, tmp_path: Path
) -> None:
    files = ServerTls(tmp_path / "server.pem", tmp_path / "server.key", tmp_path / "clients.pem")
    put(files, ours.server, ours.ca_file)
    mine = ClientTls(ours.ca_file, ours.client.cert_file, ours.client.key_file)
    other = ClientTls(ours.ca_file, theirs.client.cert_file, theirs.client.key_file)
    async with serving(files) as server:
        await until_trusted(server.address, mine)
        assert await check(server.address, timeout_s=2, tls=other) is Health.UNREACHABLE
        put(files, ours.server, theirs.ca_file)
        await until_trusted(server.address, other)
        assert await check(server.address, timeout_s=2, tls=mine) is Health.UNREACHABLE
        nobody = ClientTls(ours.ca_file)
        assert await check(server.address, timeout_s=2, tls=nobody) is Health.UNREACHABLE
        files.client_ca_file.unlink()  # type: ignore[union-attr]
        await until(lambda: told(server, "certificates", "failed") == 1)
        assert await check(server.address, timeout_s=2, tls=nobody) is Health.UNREACHABLE
        assert await check(server.address, timeout_s=5, tls=other) is Health.SERVING


async def test_what_is_put_in_while_gRPC_asks_is_not_lost(
    ours: Certificates, theirs: Certificates, tmp_path: Path
) -> None:
    files = ServerTls(tmp_path / "server.pem", tmp_path / "server.key")
    put(files, ours.server)
    async with serving(files) as server:
        tls = server._tls
        assert isinstance(tls, LiveTls)
        ends = threading.Event()
        host, port = server.address.split(":")
        anyone = ssl.create_default_context()
        anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
        anyone.set_alpn_protocols(["h2"])

        def shake_hands() -> None:
            while not ends.is_set():
                with socket.create_connection((host, int(port)), timeout=LIMIT_S) as connection:
                    anyone.wrap_socket(connection).close()

        asking = [asyncio.create_task(asyncio.to_thread(shake_hands)) for _ in range(3)]
        try:
            pems = {"ours": files.read()}
            put(files, theirs.server)
            pems["theirs"] = files.read()
            for name in ("ours", "theirs") * 8:
                await tls.take(pems[name])
                await asyncio.sleep(0.15)  # gRPC asks and takes it
        finally:
            ends.set()
            await asyncio.gather(*asking)
        theirs_ca = ClientTls(theirs.ca_file)
        assert await check(server.address, timeout_s=5, tls=theirs_ca) is Health.SERVING


def test_a_change_is_seen_once_and_only_when_it_is_stable(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a")
    watch = FileWatch([path])
    assert not watch.changed()
    path.write_text("b")
    assert not watch.changed()  # it may be half of it
    path.write_text("bc")
    assert not watch.changed()
    assert watch.changed()
    assert not watch.changed()
    path.unlink()
    assert [watch.changed() for _ in range(3)] == [False, True, False]
    path.write_text("d")
    os.utime(path, (1, 1))
    assert watch.changed()


def test_a_folder_is_seen_by_the_files_that_count_and_through_its_link(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights.bin").write_text(name)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "one")
    watch = FolderWatch(link, lambda folder: folder.glob("*.bin"))
    assert not watch.changed()
    (tmp_path / "one" / "notes.txt").write_text("of no account")
    assert [watch.changed() for _ in range(3)] == [False] * 3
    (tmp_path / "one" / "more.bin").write_text("a shard")
    assert [watch.changed() for _ in range(3)] == [False, True, False]
    (tmp_path / "one" / "more.bin").rename(tmp_path / "one" / "other.bin")
    assert [watch.changed() for _ in range(3)] == [False, True, False]
    link.unlink()
    link.symlink_to(tmp_path / "two")
    assert [watch.changed() for _ in range(3)] == [False, True, False]
    link.unlink()
    assert [watch.changed() for _ in range(3)] == [False, True, False]


async def test_a_defect_in_one_ends_no_watching_and_what_failed_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("assay.kit.reloading._RETRY_S", 0.0)
    path = tmp_path / "file"
    path.write_text("a")
    tries: list[str] = []

    def load() -> str:
        tries.append(path.read_text())
        if len(tries) == 1:
            raise RecursionError("a defect")
        if len(tries) == 2:
            raise ConfigError("it is broken")
        return tries[-1]

    taken = asyncio.Event()

    async def take(text: str) -> str:
        taken.set()
        return text

    reloader = Reloader([Reloadable("things", FileWatch([path]), load, take)])
    watching = asyncio.create_task(reloader.run())
    path.write_text("b")
    async with asyncio.timeout(LIMIT_S):
        await taken.wait()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert tries == ["b", "b", "b"]
    assert "a defect; the things from before stay in force" in caplog.text
    assert "Traceback" in caplog.text


# The reward server as a process, with HTTP and profiles.

PROFILE = """
[[profile]]
name = "mine"
description = "A profile of the operator."
tasks = ["mine"]
[[profile.component]]
name = "answer"
verifier = "math"
weight = {weight}
[[profile.component]]
name = "length"
verifier = "length"
parameters = {{ shape = "linear", unit = "words", max_length = 10 }}
"""


class Server:
    """A reward server, its metrics and its log."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.log = folder / "log"
        command = [sys.executable, "-m", "assay.reward_server", "--port=0", "--workers=1"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--metrics-port=0", *flags],
                stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline().split() for _ in range(2)]
        assert lines[0], self.log.read_text()
        self.address, self.metrics = lines[0][-1], lines[1][-1]
        if "--http-port=0" in flags:
            self.http = self.process.stdout.readline().split()[-1]

    def count(self, result: str, what: str = "profiles") -> float:
        families = scrape(self.metrics)
        return total(families, "assay_reloads_total", what=what, result=result)

    def until(self, result: str, count: int, what: str = "profiles") -> None:
        end_s = time.monotonic() + LIMIT_S
        while self.count(result, what) < count:
            assert time.monotonic() < end_s, self.log.read_text()
            time.sleep(0.1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Server, Path]]:
    file = tmp_path / "mine.toml"
    file.write_text(PROFILE.format(weight=1.0))
    made = Server(tmp_path, "--profiles", str(file))
    try:
        yield made, file
    finally:
        made.process.kill()
        made.process.communicate()


def item(name: str = "a", verifier: str = "mine") -> reward_pb2.Item:
    reference = reward_pb2.Reference(text="12")
    return reward_pb2.Item(id=name, verifier=verifier, response=r"\boxed{12}", reference=reference)


def reason(result: reward_pb2.Result) -> str:
    return error_info(result.fault).reason


def replace(file: Path, text: str) -> None:
    partial = file.with_name("partial")
    partial.write_text(text)
    partial.replace(file)


def test_a_profile_is_replaced_while_items_are_judged(server: tuple[Server, Path]) -> None:
    running, file = server
    with grpc.insecure_channel(running.address) as channel:
        stub = reward_pb2_grpc.RewardServiceStub(channel)

        def rewards(count: int = 4) -> set[float]:
            asked = reward_pb2.BatchScoreRequest(items=[item(str(n)) for n in range(count)])
            results = stub.BatchScore(asked, timeout=60).results
            assert all(result.WhichOneof("outcome") == "judgement" for result in results)
            return {result.judgement.reward for result in results}

        def version(name: str = "mine") -> str:
            listed = stub.ListVerifiers(reward_pb2.ListVerifiersRequest(), timeout=10).verifiers
            return next((one.version for one in listed if one.name == name), "")

        first, shipped = version(), version("math-format")
        [before] = rewards()
        assert rewards() == {before}  # from the cache, if it were kept there
        seen: list[set[float]] = []
        ends = threading.Event()

        def ask() -> None:
            while not ends.is_set():
                seen.append(rewards(64))

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            replace(file, PROFILE.format(weight=3.0))
            running.until("ok", 1)
        finally:
            ends.set()
            asking.join()
        [after] = rewards()
        assert after != before
        # No batch is judged by both.
        assert all(found in ({before}, {after}) for found in seen)
        assert version() != first
        assert version() in running.log.read_text()
        assert version("math-format") == shipped
        replace(file, PROFILE.format(weight=1.0))
        running.until("ok", 2)
        assert (rewards(), version()) == ({before}, first)


def test_a_wrong_profile_changes_nothing(server: tuple[Server, Path]) -> None:
    running, file = server
    good = PROFILE.format(weight=1.0)
    wrong_example = (
        good
        + """
[[profile.example]]
response = "\\\\boxed{13}"
reference = "12"
verdict = "correct"
"""
    )
    with grpc.insecure_channel(running.address) as channel:
        stub = reward_pb2_grpc.RewardServiceStub(channel)
        listed = stub.ListVerifiers(reward_pb2.ListVerifiersRequest(), timeout=10)
        for number, text in enumerate(
            (
                good[: len(good) // 2],
                "not toml",
                good.replace('verifier = "math"', 'verifier = "maths"'),
                good.replace('tasks = ["mine"]', 'tasks = ["math"]'),  # which `math` serves
                good.replace('name = "mine"', 'name = "math"'),
                good.replace('name = "mine"', 'name = "math-format"'),
                good + good,
                wrong_example,
            ),
            start=1,
        ):
            replace(file, text)
            running.until("failed", number)
            assert stub.ListVerifiers(reward_pb2.ListVerifiersRequest(), timeout=10) == listed, text
        file.unlink()
        running.until("failed", 9)
        log = running.log.read_text()
        assert log.count("the profiles from before stay in force") == 9
        assert "fails its self-test" in log
        [result] = stub.BatchScore(reward_pb2.BatchScoreRequest(items=[item()]), timeout=60).results
        assert result.judgement.verdict == "correct"
        replace(file, good)
        running.until("ok", 1)
        assert "profiles: as they were" in running.log.read_text()


def test_a_profile_that_is_gone_is_unknown_and_a_new_one_is_served(
    server: tuple[Server, Path],
) -> None:
    running, file = server
    with grpc.insecure_channel(running.address) as channel:
        stub = reward_pb2_grpc.RewardServiceStub(channel)
        replace(file, PROFILE.format(weight=1.0).replace('"mine"', '"yours"'))
        running.process.send_signal(signal.SIGHUP)
        running.until("ok", 1)
        asked = reward_pb2.BatchScoreRequest(items=[item("a", "mine"), item("b", "yours")])
        gone, new = stub.BatchScore(asked, timeout=60).results
        assert reason(gone) == "UNKNOWN_VERIFIER"
        assert new.judgement.verdict == "correct"
        assert "mine is gone" in running.log.read_text()
        late = reward_pb2.Item(id="c", task="mine", response="x")
        [result] = stub.BatchScore(reward_pb2.BatchScoreRequest(items=[late]), timeout=60).results
        assert reason(result) == "UNKNOWN_TASK"


def context_of(certificates: Certificates, client: Party) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificates.ca_file))
    context.load_cert_chain(client.cert_file, client.key_file)
    return context


def ask_http(
    address: str, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[int, ssl.SSLSession | None]:
    """The status of a call, and the session to resume; OSError where the handshake fails."""
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=10)
    try:
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        if session is not None:
            connection.sock.close()
            raw = socket.create_connection((host, int(port)), timeout=10)
            connection.sock = context.wrap_socket(raw, server_hostname=host, session=session)
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
        return status, connection.sock.session
    finally:
        connection.close()


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_http_takes_the_new_certificates_too_and_resumes_no_session_of_the_old(
    ours: Certificates, theirs: Certificates, tmp_path: Path, newest: ssl.TLSVersion
) -> None:
    files = ServerTls(tmp_path / "server.pem", tmp_path / "server.key", tmp_path / "clients.pem")
    put(files, ours.server, ours.ca_file)
    flags = [f"--tls-cert={files.cert_file}", f"--tls-key={files.key_file}"]
    running = Server(tmp_path, *flags, f"--tls-client-ca={files.client_ca_file}", "--http-port=0")
    try:
        mine = context_of(ours, ours.client)
        mine.maximum_version = newest
        status, session = ask_http(running.http, mine)
        assert status == 200
        assert ask_http(running.http, mine, session)[0] == 200
        host, _, port = running.http.rpartition(":")
        standing = http.client.HTTPSConnection(host, int(port), context=mine, timeout=10)
        standing.request("GET", "/healthz")
        assert standing.getresponse().read()
        # The server's own stays; whom it lets in changes.
        put(files, ours.server, theirs.ca_file)
        running.process.send_signal(signal.SIGHUP)
        running.until("ok", 1, "certificates")
        other = context_of(ours, theirs.client)
        assert ask_http(running.http, other)[0] == 200
        with pytest.raises(OSError, match=r"."):
            ask_http(running.http, mine)
        with pytest.raises(OSError, match=r"."):
            ask_http(running.http, mine, session)
        # A connection that stood is ended, and shows its certificate anew.
        assert isinstance(standing.sock, ssl.SSLSocket)
        assert standing.sock.recv(1) == b""
        standing.close()
    finally:
        running.process.kill()
        running.process.communicate()


def test_sighup_ends_nobody_who_has_something_to_read(server: tuple[Server, Path]) -> None:
    running, _ = server
    for count in (1, 2, 3):
        running.process.send_signal(signal.SIGHUP)
        running.until("ok", count)
    assert running.process.poll() is None


def test_measured_rates_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "rates.json"
    one = Reliability("mine", error_rate(1, 40), None, "1", "ab" * 32, "labels")
    file.write_text(reliability_text([("exact", one)]))
    running = Server(tmp_path, "--reliability", str(file), "--http-port=0")

    def shown() -> tuple[Reliability, ...]:
        with RewardClient(running.address) as client:
            found = client.list_verifiers().find("exact")
        assert found is not None
        return found.reliability

    try:
        assert shown() == (one,)
        with urllib.request.urlopen(f"http://{running.http}/v1/verifiers", timeout=10) as answer:
            listed = json.load(answer)["verifiers"]
        [told] = next(entry for entry in listed if entry["name"] == "exact")["reliability"]
        assert told["domain"] == "mine"
        replace(file, "{}")
        running.until("failed", 1, "reliability")
        assert shown() == (one,)
        other = dataclasses.replace(one, domain="other")
        replace(file, reliability_text([("exact", other)]))
        running.until("ok", 1, "reliability")
        assert shown() == (other,)
    finally:
        running.process.kill()
        running.process.communicate()
