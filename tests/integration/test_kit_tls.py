"""TLS and mutual TLS over the real wire, with certificates made here, and files that are wrong."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from assay.cli.commands.options import read_server
from assay.clients import ClientConfig, RetryPolicy, RewardClient
from assay.clients.testing import FakeRewardServer
from assay.kit.errors import ConfigError, UnavailableError
from assay.kit.health import Health, check, wait_until_serving
from assay.kit.process import client_tls
from assay.kit.serving import ServeConfig, Service, start
from assay.kit.tls import ClientTls, ServerTls
from assay.trainer.core.rewards import open_judge
from assay.trainer.settings.sections import RewardConfig
from certificates import Certificates, make_certificates, openssl

QUICK = ClientConfig(retry=RetryPolicy(max_attempts=1))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


async def fine() -> None:
    """A self-test that passes."""


SERVICE = Service("assay.test.Nothing", lambda _server: None, fine)


async def test_tls_lets_in_who_trusts_the_authority(certificates: Certificates) -> None:
    tls = ServerTls(certificates.server.cert_file, certificates.server.key_file)
    trusting = ClientTls(ca_file=certificates.ca_file)
    async with await start([SERVICE], ServeConfig(tls=tls)) as server:
        await wait_until_serving(server.address, SERVICE.name, 10, tls=trusting)
        named = ClientTls(ca_file=certificates.ca_file, server_name="reward.test")
        assert await check(server.address, tls=named) is Health.SERVING
        for outsider in (
            None,
            ClientTls(),
            ClientTls(ca_file=certificates.stranger.cert_file),
            ClientTls(ca_file=certificates.ca_file, server_name="elsewhere.test"),
        ):
            assert await check(server.address, timeout_s=2, tls=outsider) is Health.UNREACHABLE


async def test_mutual_tls_lets_in_only_its_own_clients(certificates: Certificates) -> None:
    server_pair, client, stranger = certificates.server, certificates.client, certificates.stranger
    ca_file = certificates.ca_file
    tls = ServerTls(server_pair.cert_file, server_pair.key_file, client_ca_file=ca_file)
    async with await start([SERVICE], ServeConfig(tls=tls)) as server:
        known = ClientTls(ca_file, client.cert_file, client.key_file)
        await wait_until_serving(server.address, SERVICE.name, 10, tls=known)
        unknown = ClientTls(ca_file, stranger.cert_file, stranger.key_file)
        for outsider in (ClientTls(ca_file), unknown):
            with pytest.raises(UnavailableError, match="unreachable"):
                await wait_until_serving(server.address, timeout_s=1, tls=outsider)


def read_files(tls: ServerTls | ClientTls) -> None:
    if isinstance(tls, ServerTls):
        tls.read()
    else:
        tls.credentials()


def test_a_missing_file_is_named(certificates: Certificates, tmp_path: Path) -> None:
    pair, missing = certificates.server, tmp_path / "missing.pem"
    for tls in (
        ServerTls(missing, pair.key_file),
        ServerTls(pair.cert_file, missing),
        ServerTls(pair.cert_file, pair.key_file, client_ca_file=missing),
        ClientTls(ca_file=missing),
        ClientTls(cert_file=pair.cert_file, key_file=missing),
    ):
        with pytest.raises(ConfigError, match=r"missing\.pem cannot be read: No such file"):
            read_files(tls)


def test_an_unusable_file_is_named(certificates: Certificates, tmp_path: Path) -> None:
    pair, junk = certificates.server, tmp_path / "junk.pem"
    junk.write_bytes(b"\xff not PEM")
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    locked = tmp_path / "locked.key"
    openssl("pkcs8", "-topk8", "-in", pair.key_file, "-out", locked, "-passout", "pass:x")
    for tls, name in (
        (ServerTls(junk, pair.key_file), "junk"),
        (ServerTls(pair.cert_file, junk), "junk"),
        (ServerTls(broken, pair.key_file), "broken"),
        (ServerTls(pair.cert_file, locked), "locked"),
        (ServerTls(pair.cert_file, certificates.client.key_file), "client.key"),
        (ServerTls(pair.cert_file, pair.key_file, client_ca_file=junk), "junk"),
        (ClientTls(ca_file=junk), "junk"),
        (ClientTls(ca_file=broken), "broken"),
    ):
        with pytest.raises(ConfigError, match=name) as caught:
            read_files(tls)
        assert "\n" not in str(caught.value)


def test_half_a_pair_is_refused(certificates: Certificates) -> None:
    for half in (
        ClientTls(cert_file=certificates.client.cert_file),
        ClientTls(key_file=certificates.client.key_file),
    ):
        with pytest.raises(ConfigError, match=r"client.*give both, or none"):
            half.credentials()


async def test_a_server_with_a_missing_certificate_does_not_start(tmp_path: Path) -> None:
    closed = []

    async def close() -> None:
        closed.append(True)

    service = Service("assay.test.Nothing", lambda _server: None, fine, close)
    tls = ServerTls(tmp_path / "cert.pem", tmp_path / "key.pem")
    with pytest.raises(ConfigError, match=r"cert\.pem"):
        await start([service], ServeConfig(tls=tls))
    assert closed == [True]


@pytest.mark.parametrize("own", [True, False])
def test_a_run_and_a_command_show_a_certificate_and_a_token(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    ca_file, client = certificates.ca_file, certificates.client
    secret = tmp_path / "token"
    secret.write_text("open-sesame\n")
    tls = ServerTls(certificates.server.cert_file, certificates.server.key_file, ca_file)
    with FakeRewardServer(tls=tls, token="open-sesame") as fake:
        pair = {"tls_cert": str(client.cert_file), "tls_key": str(client.key_file)} if own else {}
        config = RewardConfig(
            fake.address, str(secret), str(ca_file), **pair, verifier="exact", timeout_s=2.0
        )
        with nullcontext() if own else pytest.raises(ConfigError), open_judge(config):
            pass
        if own:
            monkeypatch.setenv("ASSAY_CLIENT_CERT", str(client.cert_file))
            monkeypatch.setenv("ASSAY_CLIENT_KEY", str(client.key_file))
        server = read_server(fake.address, str(secret), str(ca_file))
        flags = (client.cert_file, client.key_file) if own else (None, None)
        for shown in (server.tls, client_tls(ca_file, *flags)):
            with (
                RewardClient(fake.address, tls=shown, token=server.token, config=QUICK) as asks,
                nullcontext() if own else pytest.raises(UnavailableError),
            ):
                asks.list_verifiers(timeout_s=2.0)
