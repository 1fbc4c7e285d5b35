"""What `assay doctor` says of sessions is what a server on this machine can do."""

from __future__ import annotations

import os
from pathlib import Path

import grpc
import pytest

from assay.api.session.v1 import session_pb2, session_pb2_grpc
from assay.sandbox import doctor
from assay.sandbox.jail import Isolation
from assay.sandbox.sessions import probe as probing
from assay.sandbox.sessions.probe import SessionLevel, probe
from process_tree import descendants
from sandbox_service import running


def test_the_probe_and_a_server_say_the_same() -> None:
    level = probe("namespaces")
    with running("--slots", "1") as (address, _), grpc.insecure_channel(address) as channel:
        stub = session_pb2_grpc.SessionServiceStub(channel)
        told = stub.DescribeSessions(session_pb2.DescribeSessionsRequest(), timeout=60)
    assert level.name == ("full" if told.copies else "without copies" if told.languages else "none")
    assert bool(level.why) == (level.name != "full")


def test_nothing_of_a_probe_stays() -> None:
    def held() -> tuple[int, set[int]]:
        return len(list(Path("/proc/self/fd").iterdir())), descendants(os.getpid())

    before = held()
    probe("namespaces")
    assert held() == before


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise SystemExit(3)", "the host died at its start"),
        ("import time; time.sleep(60)", "the host was not ready within 1 s"),
    ],
)
def test_a_host_that_does_not_come_up_is_none(
    body: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no_host.py").write_text(body)
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    monkeypatch.setattr(probing, "HOST", "no_host")
    monkeypatch.setattr(probing, "_START_S", 1.0)
    monkeypatch.setattr(
        probing, "environment_of_a_supervisor", lambda: {**os.environ, "PYTHONPATH": path}
    )
    assert probe("namespaces") == SessionLevel("none", why)


def test_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def line(level: SessionLevel, *missing: tuple[str, str]) -> tuple[str, str, bool | None]:
        monkeypatch.setattr(doctor, "detect", lambda: Isolation("namespaces", (), missing))
        monkeypatch.setattr(doctor, "probe", lambda _: level)
        (found,) = [one for one in doctor.look() if one[0] == "sandbox sessions"]
        return found

    assert line(SessionLevel("full")) == ("sandbox sessions", "full", True)
    text = "without copies (no users)"
    assert line(SessionLevel("without copies", "no users")) == ("sandbox sessions", text, None)
    _, text, fine = line(SessionLevel("none", "its keeper died"), ("private-proc", "unmask it"))
    assert text == "none (a session's keeper needs a /proc of its own: unmask it)"
    assert fine is None
