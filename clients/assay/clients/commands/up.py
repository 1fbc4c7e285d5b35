"""`assay up`: every installed service on this machine, for as long as the command runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from assay.clients.services import DEFAULT_PORTS, EmbeddedServices, installed_services
from assay.rpc.errors import ConfigError, StartupError

_LOOK_S = 0.5


def choose_ports(names: list[str], base: int) -> dict[str, int]:
    """The port of each service: their usual distances from the first port; 0 takes free ones.

    Raises:
        ConfigError: A port would be out of range.
    """
    if base == 0:
        return dict.fromkeys(names, 0)
    last = max(DEFAULT_PORTS.values())
    first = DEFAULT_PORTS["reward"]
    ports = {}
    for name in names:
        last = last if name in DEFAULT_PORTS else last + 1
        ports[name] = base + DEFAULT_PORTS.get(name, last) - first
    if not all(0 < port < 65536 for port in ports.values()):
        raise ConfigError(
            f"--port {base} leaves no room for {len(names)} services; choose a lower one"
        )
    return ports


@contextmanager
def _stop_signal() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set."""
    asked = threading.Event()
    before = {s: signal.signal(s, lambda *_: asked.set()) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORTS["reward"],
    show_default=True,
    help="Port of the reward server; the others follow. 0: free ports.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--log-dir", metavar="DIR", help="Keep the services' output here.")
def up(port: int, host: str, log_dir: str | None) -> None:
    """Start every installed service, wait until all are ready, keep them running until Ctrl-C."""
    names = list(installed_services())
    if not names:
        raise ConfigError("no service is installed; run: pip install assay-reward-server")
    console = Console()
    ports = choose_ports(names, port)
    services = EmbeddedServices(
        names,
        ports=ports,
        host=host,
        use_settings=True,
        log_dir=Path(log_dir) if log_dir else None,
    )
    with _stop_signal() as asked, services:
        table = Table("service", "address", "status")
        for name in names:
            table.add_row(name, services.address_of(name), "serving")
        console.print(table)
        console.print("Ctrl-C stops them.")
        while not asked.wait(_LOOK_S):
            for name, last_words in services.dead().items():
                raise StartupError(f"the service {name!r} ended by itself: {last_words}")
    console.print("stopped")
