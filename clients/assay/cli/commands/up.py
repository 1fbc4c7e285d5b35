"""`assay up`: every installed service on this machine, for as long as the command runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

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
_FILE = click.Path(path_type=Path, dir_okay=False)
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


def choose_services(
    installed: list[str], models: list[str], *, configured: bool = False
) -> tuple[list[str], str]:
    """The installed services to start, and a remark; genrm only where it has a model.

    Models are named in the arguments, in the environment, or, where genrm has one (`configured`),
    in its file of settings.

    Raises:
        ConfigError: models are named, and genrm is not installed.
    """
    named = (
        bool(models)
        or configured
        or any(os.environ.get(f"ASSAY_GENRM_{key}") for key in ("MODEL", "MODELS"))
    )
    if (models or configured) and "genrm" not in installed:
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


def choose_files(texts: tuple[str, ...], installed: Collection[str]) -> dict[str, Path]:
    """The file of settings of each service, of NAME=FILE.

    Raises:
        ConfigError: a text is not of that form, a service is not installed, or is named twice.
    """
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or not file:
            raise ConfigError(f"--config {text!r} is not of the form SERVICE=FILE.toml")
        if name not in installed:
            package_of(name)
        if name in found:
            raise ConfigError(f"--config names {name} twice")
        found[name] = Path(file)
    return found


@dataclass(frozen=True, slots=True)
class Passed:
    """What is passed on to services.

    Attributes:
        metrics_port: of the first service, the others follow; 0: free ones; None: no metrics.
        token_file: the token that each service asks for, and sends to the others.
        tokens_file: hashed tokens of tenants, of the reward server.
    """

    configs: Mapping[str, Path]
    journal: Path | None
    profiles: Sequence[Path]
    metrics_port: int | None
    token_file: Path | None
    tokens_file: Path | None

    def flags(self, name: str, place: int) -> list[str]:
        """The flags of a service, the `place`-th that is started, from 0."""
        found = ["--config", str(self.configs[name])] if name in self.configs else []
        if self.metrics_port is not None:
            port = self.metrics_port + place if self.metrics_port else 0
            found += ["--metrics-port", str(port)]
        if self.token_file is not None:
            known = {"reward": ("sandbox-", "genrm-"), "genrm": ("reward-",)}.get(name, ())
            for whose in ("", *known):
                found += [f"--{whose}token-file", str(self.token_file)]
        if name == "reward":
            found += [] if self.journal is None else ["--journal", str(self.journal)]
            found += [] if self.tokens_file is None else ["--tokens-file", str(self.tokens_file)]
            found += [word for file in self.profiles for word in ("--profiles", str(file))]
        return found

    def rows(self, name: str) -> Iterator[tuple[str, str]]:
        """What the table says of a service beside its addresses."""
        if name in self.configs:
            yield str(self.configs[name]), "settings"
        if self.token_file is not None:
            yield str(self.token_file), "the token that it asks for"
        if name == "reward":
            if self.tokens_file is not None:
                yield str(self.tokens_file), "tokens of tenants"
            for file in self.profiles:
                yield str(file), "profiles"
            if self.journal is not None:
                yield str(self.journal), "journal"


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
@click.option("--journal", type=_FILE, help="The reward server keeps every answer in this file.")
@click.option("--profiles", type=_FILE, multiple=True, help="TOML file of profiles; repeatable.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65533),
    help="Metrics of the reward server here, of the others at the next; 0: free ports.",
)
@click.option("--token-file", type=_FILE, help="Each service asks for this token.")
@click.option("--tokens-file", type=_FILE, help="Hashed tokens of the reward server's tenants.")
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="SERVICE=FILE",
    help="A service's settings, as reward=reward.toml; repeatable.",
)
def up(
    *,
    port: int,
    host: str,
    http_port: int | None,
    log_dir: str | None,
    models: str | None,
    shortcuts: tuple[str, ...],
    configs: tuple[str, ...],
    **passed_on: Any,
) -> None:
    """Start every installed service, wait until all are ready, keep them running until Ctrl-C.

    genrm, which judges by models, starts only where --models, --model or its --config names one.
    """
    installed = list(installed_services())
    passed = Passed(configs=choose_files(configs, installed), **passed_on)
    asked = (["--models", models] if models else []) + [
        word for shortcut in shortcuts for word in ("--model", shortcut)
    ]
    names, remark = choose_services(installed, asked, configured="genrm" in passed.configs)
    if not names:
        raise ConfigError(
            f"no service is installed here; {how_to_install('assay-rl-reward-server')}"
        )
    http_ports = choose_http_ports(names, http_port)
    arguments = {
        name: passed.flags(name, place)
        for place, name in enumerate(sorted(names, key=lambda one: DEFAULT_PORTS.get(one, 65536)))
    }
    for name, number in http_ports.items():
        arguments[name] += ["--http-port", str(number), "--http-bind", host]
    if asked:
        arguments["genrm"] += asked
    console = make_console()
    ports = choose_ports(names, port)
    with _stop_signal() as stop:
        console.print(f"starting {', '.join(names)} ...", highlight=False)
        services = EmbeddedServices(
            names,
            arguments=arguments,
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
            console.print(_table(services, names, http_ports, passed))
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


def _table(
    services: EmbeddedServices, names: list[str], http_ports: dict[str, int], passed: Passed
) -> Table:
    table = Table("service", Column("address", overflow="fold"), "status")
    for name in names:
        address = services.address_of(name)
        table.add_row(name, address, "serving")
        if name in http_ports:
            faces = ", ".join(point.name for point in installed_faces(name)) or "none"
            url = f"http://{address.rpartition(':')[0]}:{http_ports[name]}"
            table.add_row("", url, f"serving; faces: {faces}")
        if metrics := services.metrics_address_of(name):
            table.add_row("", f"http://{metrics}/metrics", "metrics")
        for what, is_what in passed.rows(name):
            table.add_row("", what, is_what)
    return table


def _watch(services: EmbeddedServices, stop: threading.Event) -> None:
    """Returns when `stop` is set.

    Raises:
        StartupError: A service ended by itself.
    """
    while not stop.wait(_LOOK_S):
        for name, last_words in services.dead().items():
            raise StartupError(f"the service {name!r} ended by itself: {last_words}")
