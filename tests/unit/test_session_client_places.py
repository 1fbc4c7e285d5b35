"""Where a session's calls go, of several replicas, and its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.clients.sessions import SessionClient, SessionLost
from assay.clients.sessions.folders import read_folder, write_folder
from assay.clients.sessions.replicas import grpc_opener
from assay.clients.testing import FakeSessionServer, SessionKnobs
from assay.kit.errors import ConfigError, UnauthenticatedError, UnavailableError
from assay.kit.tls import ClientTls, ServerTls
from certificates import make_certificates


@pytest.fixture(scope="module")
def client() -> Iterator[SessionClient]:
    """Of a server without faults."""
    with FakeSessionServer() as server, SessionClient(server.address) as made:
        yield made


def sent_to(server: FakeSessionServer) -> set[object]:
    return {sent.get("assay-replica") for sent in server.metadata}


def test_each_call_goes_to_the_replica_that_made_its_session() -> None:
    with FakeSessionServer(replica="a") as a, FakeSessionServer(replica="b") as b:
        with SessionClient(f"{a.address},{b.address}") as client:
            sessions = [client.create() for _ in range(6)]
            assert len(a.living) == len(b.living) == 3
            for number, session in enumerate(sessions):
                session.execute(f"x = {number}")
            assert [one.execute("x").plain for one in sessions] == list(range(6))
            [copy] = sessions[0].fork()
            assert copy.replica == sessions[0].replica
            assert sent_to(a) == {"a"}
            assert sent_to(b) == {"b"}
            for session in sessions:
                with SessionClient(f"{b.address},{a.address}") as other:
                    found = other.attach(session.id, session.replica)
                    assert found.execute("x").plain == session.execute("x").plain
        assert a.living == b.living == {}


def test_a_full_replica_is_passed_by() -> None:
    with (
        FakeSessionServer(replica="a", capacity=1) as a,
        FakeSessionServer(replica="b") as b,
        SessionClient(f"{a.address},{b.address}") as client,
    ):
        for _ in range(5):
            client.create()
        assert (len(a.living), len(b.living)) == (1, 4)


def test_a_call_that_reaches_another_replica_is_led_to_its_own() -> None:
    with (
        FakeSessionServer(replica="a") as a,
        FakeSessionServer(replica="b") as b,
        SessionClient(f"{a.address},{b.address}") as client,
    ):
        session = client.create()
        session.execute("x = 7")
        wrong = b if session.replica == "a" else a
        session._handle.address = wrong.address
        session._handle.replica = wrong.replica
        assert session.execute("x").plain == 7
        assert session.replica != wrong.replica
        assert wrong.cells == []


def test_a_replica_that_is_gone_loses_its_sessions_and_no_others() -> None:
    with FakeSessionServer(replica="b") as b:
        knobs = SessionKnobs(die=1)
        with FakeSessionServer(replica="a", knobs=knobs) as a:
            client = SessionClient(f"{a.address},{b.address}")
            sessions = {one.replica: one for one in (client.create(), client.create())}
            with pytest.raises(SessionLost) as caught:
                sessions["a"].execute("1")
            assert caught.value.cause == "replica-gone"
            assert caught.value.metadata["replica"] == "a"
            with pytest.raises(SessionLost):
                sessions["a"].get_files(["x"])
            assert sessions["b"].execute("2").plain == 2
            assert client.create().replica == "b"
            client.close()


def test_a_replica_that_was_replaced_has_lost_its_sessions() -> None:
    first = FakeSessionServer(replica="old")
    with first:
        client = SessionClient(first.address)
        session = client.create()
        port = int(first.address.rpartition(":")[2])
    with FakeSessionServer(replica="new", port=port):
        with pytest.raises(SessionLost, match="'old'"):
            session.execute("1")
        assert client.create().replica == "new"
        client.close()


def test_a_name_stands_for_its_addresses() -> None:
    with FakeSessionServer() as server:
        port = server.address.rpartition(":")[2]
        with SessionClient(f"dns:///localhost:{port}") as client, client.create() as session:
            assert session.execute("1").plain == 1
    nobody = SessionClient("dns:///no-such-name.invalid:1", timeout_s=0.5)
    with nobody, pytest.raises(UnavailableError, match="no address"):
        nobody.create()


def test_tls_and_a_token_reach_each_replica(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    tls = ServerTls(made.server.cert_file, made.server.key_file)
    named = ClientTls(made.ca_file, server_name="reward.test")
    with (
        FakeSessionServer(replica="a", tls=tls, token="secret") as a,
        FakeSessionServer(replica="b", tls=tls, token="secret") as b,
    ):
        port = a.address.rpartition(":")[2]
        for target in (f"{a.address},{b.address}", f"dns:///localhost:{port}", a.address):
            named_client = SessionClient(target, tls=named, token="secret")
            with named_client, named_client.create() as session:
                assert session.execute("1").plain == 1
        stranger = SessionClient(a.address, tls=named, token="wrong")
        with stranger, pytest.raises(UnauthenticatedError):
            stranger.create()
        other_name = SessionClient(
            f"dns:///localhost:{port}", tls=ClientTls(made.ca_file), timeout_s=1.0
        )
        with other_name, pytest.raises(UnavailableError, match="another name"):
            other_name.create()


def test_tls_to_a_list_needs_one_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="server_name"):
        grpc_opener("127.0.0.1:1,127.0.0.1:2", ClientTls(tmp_path / "ca.pem"), None)


# Files.


PATHS = st.dictionaries(
    st.lists(st.text("abcö .", min_size=1, max_size=6).filter(str.strip), min_size=1, max_size=3)
    .map("/".join)
    .filter(lambda path: not {".", ".."} & {part.strip() for part in path.split("/")}),
    st.binary(max_size=50),
    max_size=5,
)


def fits(files: dict[str, bytes]) -> bool:
    """Whether no file is also the folder of another."""
    return not any(other.startswith(f"{path}/") for path in files for other in files)


@settings(max_examples=25)
@given(files=PATHS.filter(fits))
def test_files_come_back_as_they_went(client: SessionClient, files: dict[str, bytes]) -> None:
    with client.create(files=files) as session:
        assert [one.path for one in session.list_files()] == sorted(files)
        if files:
            assert session.get_files([*files, "missing"]) == files
        session.put_files({"one": "text"})
        read = session.execute("with open('one') as f: found = f.read()\nfound")
        assert read.plain == "text"


def test_a_folder_goes_there_and_back(client: SessionClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "inner").mkdir(parents=True)
    (source / "a.txt").write_bytes(b"a")
    (source / "inner" / "b.bin").write_bytes(bytes(range(256)))
    (source / "link").symlink_to("/etc/hostname")
    with client.create() as session:
        session.put_folder(source, under="data")
        session.execute("with open('made', 'w') as f: f.write('new')")
        written = session.get_folder(tmp_path / "back")
    assert read_folder(tmp_path / "back") == {
        "data/a.txt": b"a", "data/inner/b.bin": bytes(range(256)), "made": b"new"
    }  # fmt: skip
    assert len(written) == 3


@pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../../out", "..", ".", "link/x"])
def test_no_path_of_a_program_leads_out_of_the_local_folder(tmp_path: Path, path: str) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="outside"):
        write_folder(inside, {path: b"x"})
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "x").exists()
