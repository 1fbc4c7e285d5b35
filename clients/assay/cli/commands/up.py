"""`assay up`: every installed service on this machine, for as long as the command runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.table import Table

from assay.clients.services import (
    DEFAULT_PORTS,
    EmbeddedServices,
    absent_plug_ins,
    how_to_install,
    installed_plug_ins,
    installed_services,
    package_of,
)
from assay.kit.console import make_console
from assay.kit.errors import ConfigError, StartupError
from assay.kit.http.installed import installed_faces

_LOOK_S = 0.5
_WITH_HTTP = ("reward", "sandbox")
_START_S = 120.0
# Models are read from disk, or fetched.
_START_WITH_MODELS_S = 1800.0
_NO_MODELS = (
    "genrm is left out: it has no model. Give one with --model NAME=PATH, or a file with --models"
)


def choose_ports(names: list[str], base: int) -> dict[str, int]:
    """The port of each service, at their usual distances from the first one; 0 takes free ones.

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


def choose_services(installed: list[str], models: list[str]) -> tuple[list[str], str]:
    """The installed services to start, and a remark; genrm only where it has a model.

    Models are named in the arguments or in the environment.

    Raises:
        ConfigError: models are named, and genrm is not installed.
    """
    named = bool(models) or any(os.environ.get(f"ASSAY_GENRM_{key}") for key in ("MODEL", "MODELS"))
    if models and "genrm" not in installed:
        package_of("genrm")
    if named or "genrm" not in installed:
        return installed, ""
    return [name for name in installed if name != "genrm"], _NO_MODELS


def choose_http_ports(names: list[str], first: int | None) -> dict[str, int]:
    """The HTTP port of each service that has one; none without a first port.

    Raises:
        ConfigError: no installed service speaks HTTP.
    """
    if first is None:
        return {}
    found = {name: first + after for after, name in enumerate(_WITH_HTTP) if name in names}
    if not found:
        package_of(_WITH_HTTP[0])
    return found


@contextmanager
def _stop_signal() -> Iterator[threading.Event]:
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
@click.option(
    "--http-port",
    type=click.IntRange(1, 65534),
    help="HTTP too: the reward server at this port, the sandbox at the next.",
)
@click.option("--log-dir", metavar="DIR", help="Keep the services' output here.")
@click.option("--models", metavar="FILE", help="TOML file of genrm's models.")
@click.option(
    "--model", "shortcuts", multiple=True, metavar="NAME=PATH", help="A model of genrm; repeatable."
)
def up(
    *,
    port: int,
    host: str,
    http_port: int | None,
    log_dir: str | None,
    models: str | None,
    shortcuts: tuple[str, ...],
) -> None:
    """Start every installed service, wait until all are ready, keep them running until Ctrl-C.

    genrm, which judges by models, starts only where --models or --model names one.
    """
    asked = (["--models", models] if models else []) + [
        word for shortcut in shortcuts for word in ("--model", shortcut)
    ]
    names, remark = choose_services(list(installed_services()), asked)
    if not names:
        raise ConfigError(f"no service is installed here; {how_to_install('assay-reward-server')}")
    http_ports = choose_http_ports(names, http_port)
    http = {
        name: ["--http-port", str(number), "--http-bind", host]
        for name, number in http_ports.items()
    }
    console = make_console()
    ports = choose_ports(names, port)
    with _stop_signal() as stop:
        console.print(f"starting {', '.join(names)} ...", highlight=False)
        services = EmbeddedServices(
            names,
            arguments={"genrm": asked, **http},
            ports=ports,
            host=host,
            use_settings=True,
            log_dir=Path(log_dir) if log_dir else None,
            start_timeout_s=_START_WITH_MODELS_S if "genrm" in names else _START_S,
            stop=stop,
        )
        try:
            services.start()
        except StartupError as error:
            if stop.is_set():
                raise click.Abort from error
            raise
        try:
            console.print(_table(services, names, http_ports))
            if plug_ins := installed_plug_ins():
                click.echo(f"plug-ins: {', '.join(plug_ins)}")
            if remark:
                click.echo(remark)
            for sentence in absent_plug_ins():
                click.echo(sentence)
            console.print("Ctrl-C stops them.")
            _watch(services, stop)
        finally:
            services.stop()
    console.print("stopped")


def _table(services: EmbeddedServices, names: list[str], http_ports: dict[str, int]) -> Table:
    table = Table("service", "address", "status")
    for name in names:
        address = services.address_of(name)
        table.add_row(name, address, "serving")
        if name in http_ports:
            faces = ", ".join(point.name for point in installed_faces(name)) or "none"
            url = f"http://{address.rpartition(':')[0]}:{http_ports[name]}"
            table.add_row("", url, f"serving; faces: {faces}")
    return table


def _watch(services: EmbeddedServices, stop: threading.Event) -> None:
    """Returns when `stop` is set.

    Raises:
        StartupError: A service ended by itself.
    """
    while not stop.wait(_LOOK_S):
        for name, last_words in services.dead().items():
            raise StartupError(f"the service {name!r} ended by itself: {last_words}")
