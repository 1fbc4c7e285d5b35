"""A Ray cluster of several nodes on this machine, for tests: nodes are killed, and join."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

HERE = importlib.util.find_spec("ray") is not None
# Usage statistics off; and a warning of Ray's own off.
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")

MARKS = [
    pytest.mark.ray,
    pytest.mark.skipif(not HERE, reason="ray cannot be imported: see `make test-ray`"),
    pytest.mark.filterwarnings("ignore"),
]


class Nodes:
    """A head without CPUs, and nodes of two CPUs each."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address
        self.nodes: list[Any] = []

    def add(self) -> Any:
        """A node joins."""
        node = self._cluster.add_node(num_cpus=2)
        self.nodes.append(node)
        return node

    def kill(self, node: Any) -> None:
        """SIGKILL for a node, as when its machine loses power; its processes end by that."""
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def freeze(self, node: Any) -> None:
        """SIGSTOP for all of a node, as when its network is cut: nothing ends, nothing answers."""
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        for process in [raylet, *raylet.children(recursive=True)]:
            process.suspend()

    def thaw_and_kill(self, node: Any) -> None:
        """SIGKILL for all of a frozen node."""
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        for process in raylet.children(recursive=True):
            process.kill()
        self.kill(node)

    def whole(self, count: int = 2) -> None:
        """Brings the nodes to their number."""
        while len(self.nodes) < count:
            self.add()
        while len(self.nodes) > count:
            self.kill(self.nodes[-1])

    def close(self) -> None:
        self._cluster.shutdown()


@contextlib.contextmanager
def cluster() -> Iterator[Nodes]:
    """A cluster with two nodes besides its head."""
    nodes = Nodes()
    try:
        nodes.whole()
        yield nodes
    finally:
        nodes.close()


def hosts(name: str) -> list[psutil.Process]:
    """The processes of Ray's that hold our actors of a class, on any node."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if " ".join(process.cmdline()).startswith(f"ray::{name}"):
                found.append(process)
    return found


def node_of(pid: int) -> int:
    """The process of the node (its raylet) that a process descends from."""
    for process in psutil.Process(pid).parents():
        if process.name() == "raylet":
            return process.pid
    raise AssertionError(f"process {pid} is no node's")


def until(condition: Any, limit_s: float = 60.0) -> Any:
    """Waits until a condition holds; what it gives then."""
    ends_s = time.monotonic() + limit_s
    while not (held := condition()):
        assert time.monotonic() < ends_s, "the condition did not come to hold"
        time.sleep(0.05)
    return held


@contextlib.contextmanager
def service(module: str, address: str, *flags: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A service with its workers on the cluster, as a user starts it: its address and process."""
    command = [sys.executable, "-m", module, "--port", "0", "--pool", "ray"]
    process = subprocess.Popen(
        [*command, "--ray-address", address, "--log-level", "ERROR", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert " ready on " in line, f"it did not start: {process.communicate()[1]}"
        yield line.split()[-1], process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


@contextlib.contextmanager
def node_without_walls(address: str, log: Path) -> Iterator[None]:
    """A node of one CPU that may make no user namespaces, so that programs cannot be isolated."""
    ray = Path(sys.executable).with_name("ray")
    joins = f"{ray} start --address {address} --num-cpus 1 --disable-usage-stats --block"
    text = f"echo 0 > /proc/sys/user/max_user_namespaces && exec {joins}"
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-U", "-r", "true"], check=False).returncode:
        pytest.skip("user namespaces cannot be made here")
    with log.open("w") as out:
        process = subprocess.Popen([unshare, "-U", "-r", "sh", "-c", text], stdout=out, stderr=out)
    try:
        yield
    finally:
        for child in [*psutil.Process(process.pid).children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                child.kill()
        process.kill()
        process.wait()
