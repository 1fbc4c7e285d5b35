"""Flags that services share, for commands made with click, which this package does without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.kit.http.config import HttpConfig
from assay.kit.pool.places import DEFAULT_ADDRESS, LOCAL, installed_places

Option = Callable[..., Callable[[Any], Any]]
"""`click.option`."""
Flag = tuple[str, dict[str, Any]]
"""A flag's name, and further arguments of `click.option`."""


def add_flags(option: Option, flags: Sequence[Flag]) -> Callable[[Any], Any]:
    """A decorator that adds these flags to a command, in their order."""

    def add(command: Any) -> Any:
        for name, settings in reversed(flags):
            command = option(name, **settings)(command)
        return command

    return add


def access_flags(option: Option, path: object) -> Callable[[Any], Any]:
    """A decorator with the flags of TLS, tokens and `assay.kit.access`.

    `option` is `click.option`, `path` the type of a flag that names a file.
    """
    no_limit = "Of each tenant; 0: no limit."
    flags: list[Flag] = [
        ("--tls-cert", {"type": path, "help": "Certificate chain, PEM."}),
        ("--tls-key", {"type": path, "help": "Private key, PEM."}),
        (
            "--tls-client-ca",
            {"type": path, "help": "Require client certificates of this authority."},
        ),
        (
            "--token-file",
            {"type": path, "help": "File with the bearer token that clients must send."},
        ),
        (
            "--tokens-file",
            {"type": path, "help": "Hashed tokens of tenants; read when it changes."},
        ),
        (
            "--trusted-network",
            {"is_flag": True, "help": "Serve a network without tokens or client certificates."},
        ),
        (
            "--published-on",
            {"default": "", "help": "Where the port is reached, if not at --host; for containers."},
        ),
        (
            "--reflection/--no-reflection",
            {"default": None, "help": "Tell tools the contract. [default: on loopback only]"},
        ),
        ("--tenant-items-per-s", {"type": float, "default": 0.0, "help": no_limit}),
        ("--tenant-items-in-flight", {"type": int, "default": 0, "help": no_limit}),
        ("--tenant-calls", {"type": int, "default": 0, "help": no_limit}),
    ]
    return add_flags(option, flags)


def http_flags(option: Option, port: object) -> Callable[[Any], Any]:
    """A decorator with the flags of HTTP beside gRPC (`assay.kit.http`).

    `option` is `click.option`, `port` the type of a port.
    """
    usual = HttpConfig()
    flags: list[Flag] = [
        (
            "--http-port",
            {
                "type": port,
                "help": "Serve HTTP/JSON too, plug-ins' formats included; 0: any free port.",
            },
        ),
        ("--http-bind", {"default": usual.bind, "help": "Address to bind for HTTP."}),
        (
            "--http-timeout-s",
            {
                "type": float,
                "default": usual.timeout_s,
                "help": "Deadline of an HTTP call without x-timeout-s.",
            },
        ),
    ]
    return add_flags(option, flags)


def take_http(flags: dict[str, Any]) -> HttpConfig:
    """Takes the values of `http_flags` out of a command's values.

    Raises:
        ConfigError: a value is out of range.
    """
    return HttpConfig(
        port=flags.pop("http_port"),
        bind=flags.pop("http_bind"),
        timeout_s=flags.pop("http_timeout_s"),
    )


def pool_flags(option: Option, where: str) -> Callable[[Any], Any]:
    """A decorator with the flags that `assay.kit.pool.places.check_pool` checks.

    `option` is `click.option`; `where`, the help of --pool, gets the installed places.
    """
    places = ", ".join(installed_places())
    address = "HOST:PORT of Ray's head; auto: of the node here."
    flags: list[Flag] = [
        ("--pool", {"default": LOCAL, "metavar": "PLACE", "help": f"{where} Here: {places}."}),
        ("--ray-address", {"default": DEFAULT_ADDRESS, "help": address}),
    ]
    return add_flags(option, flags)
