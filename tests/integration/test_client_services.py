"""Services as child processes: found, started, stopped, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from assay.cli.commands.options import ServerAccess
from assay.cli.commands.pipeline import ServerAhead
from assay.clients import Item, RewardClient
from assay.clients.services import EmbeddedServices, package_of
from assay.kit.errors import ConfigError, StartupError


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_start_goes_on_with_what_was_launched() -> None:
    services = EmbeddedServices(["reward"], arguments={"reward": ["--workers", "1"]})
    services.launch()
    try:
        pid = services.pid()
        assert is_alive(pid)
        services.start()
        assert services.pid() == pid
        with RewardClient(services.address) as client:
            assert client.list_verifiers().verifiers
    finally:
        services.stop()
    wait_gone(pid)


@pytest.mark.slow
def test_a_server_ahead_is_begun_before_its_caller_computes() -> None:
    """A thread would wait for a caller that reads rows in one go (1.1 s of 100,000 rows)."""
    with ExitStack() as stack:
        ahead = ServerAhead(ServerAccess("", None, None), stack, ("--workers", "1"))
        assert ahead.pid is not None
        assert is_alive(ahead.pid)
        assert ahead.reach().info.verifiers
    wait_gone(ahead.pid)


def test_a_start_that_is_given_up_leaves_nothing_behind() -> None:
    asked = threading.Event()
    asked.set()
    services = EmbeddedServices(["reward"], stop=asked)
    spawned: list[int] = []
    spawn = services._spawn

    def spawn_and_tell(name: str, package: str) -> object:
        child = spawn(name, package)
        spawned.append(child.process.pid)
        return child

    services._spawn = spawn_and_tell  # type: ignore[method-assign, assignment]
    with pytest.raises(StartupError, match="'reward' was stopped before it was ready"):
        services.start()
    assert [is_alive(pid) for pid in spawned] == [False]


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("host", "ports", "genrm", "reward"),
    [
        ("127.0.0.1", {"reward": 7}, ["--reward-target", "127.0.0.1:7"], "127.0.0.1:9"),
        ("127.0.0.1", {}, [], "127.0.0.1:9"),
        ("0.0.0.0", {"reward": 7}, ["--reward-target", "127.0.0.1:7"], "127.0.0.1:9"),
        ("::", {"reward": 7}, ["--reward-target", "[::1]:7"], "[::1]:9"),
    ],
)
def test_services_are_told_of_each_other(
    host: str, ports: dict[str, int], genrm: list[str], reward: str
) -> None:
    services = EmbeddedServices(["genrm", "reward"], ports=ports, host=host)
    assert services._flags_of_others("genrm") == genrm
    services.addresses["genrm"] = {"::": "[::]"}.get(host, host) + ":9"
    assert services._flags_of_others("reward") == ["--genrm-target", reward]
    assert services._flags_of_others("sandbox") == []
    told = EmbeddedServices(
        ["genrm", "reward"], arguments={"reward": ["--genrm-target=other:1"]}, ports=ports
    )
    told.addresses["genrm"] = "127.0.0.1:9"
    assert told._flags_of_others("reward") == []


def test_tokens_reach_who_asks_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_GENRM_TOKEN", "a")
    monkeypatch.setenv("ASSAY_REWARD_TOKEN", "b")
    services = EmbeddedServices(["genrm", "reward", "sandbox"], use_settings=True)
    assert services._environment("reward")["ASSAY_REWARD_GENRM_TOKEN"] == "a"
    assert services._environment("genrm")["ASSAY_GENRM_REWARD_TOKEN"] == "b"
    assert "ASSAY_SANDBOX_REWARD_TOKEN" not in services._environment("sandbox")
    own = EmbeddedServices(["genrm", "reward"])._environment("reward")
    assert "ASSAY_REWARD_GENRM_TOKEN" not in own
