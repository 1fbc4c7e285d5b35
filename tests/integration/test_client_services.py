"""Services as child processes: found, started, stopped, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay.clients import Item, RewardClient
from assay.clients.services import EmbeddedServices, package_of
from assay.rpc.errors import ConfigError, StartupError


def is_alive(pid: int) -> bool:
    """A process that runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_gone(pid: int) -> None:
    while is_alive(pid):
        time.sleep(0.05)


def test_the_reward_server_starts_judges_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_REWARD_TOKEN", "an-operators-token")
    services = EmbeddedServices(["reward"], arguments={"reward": ["--workers", "1"]})
    with services, RewardClient(services.address) as client:
        pid = services.pid()
        right = Item("\\boxed{4}", reference="4", task="math")
        assert client.score_one(right).reward == 1.0
        assert services.dead() == {}
    assert not is_alive(pid)
    services.stop()
    with pytest.raises(ConfigError, match="not started"):
        _ = services.address


def test_a_service_that_dies_at_once_says_why() -> None:
    services = EmbeddedServices(["reward"], arguments={"reward": ["--no-such-flag"]})
    with pytest.raises(StartupError, match=r"'reward' ended with code 2: .*--no-such-flag"):
        services.start()


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with EmbeddedServices(arguments={"reward": ["--workers", "1"]}) as first:
        port = int(first.address.rpartition(":")[2])
        second = EmbeddedServices(ports={"reward": port}, log_dir=tmp_path / "logs")
        with pytest.raises(StartupError, match=f"{port}.*in use") as caught:
            second.start()
    assert "\n" not in str(caught.value)
    assert (tmp_path / "logs" / "reward.err").is_file()


def test_unknown_and_absent_services_are_named() -> None:
    with pytest.raises(ConfigError, match="reward, sandbox, genrm"):
        package_of("nothing")
    assert package_of("reward") == "assay.reward_server"


def test_a_service_that_ends_by_itself_is_noticed() -> None:
    with EmbeddedServices(arguments={"reward": ["--workers", "1"]}) as services:
        os.kill(services.pid(), signal.SIGKILL)
        while not services.dead():
            time.sleep(0.05)
        assert set(services.dead()) == {"reward"}


def test_a_service_does_not_outlive_a_killed_parent() -> None:
    program = """
import sys, time
from assay.clients.services import EmbeddedServices
services = EmbeddedServices(arguments={"reward": ["--workers", "1"]})
services.start()
print(services.pid(), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    wait_gone(child)
