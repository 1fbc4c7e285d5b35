"""Flags that services share, for commands made with click, which this package does without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.rpc.ray_cluster import DEFAULT_ADDRESS, POOLS

Option = Callable[..., Callable[[Any], Any]]
"""`click.option`."""
Flag = tuple[str, dict[str, Any]]
"""A flag's name, and what `click.option` takes besides."""


def add_flags(option: Option, flags: Sequence[Flag]) -> Callable[[Any], Any]:
    """A decorator that adds these flags to a command, in their order."""

    def add(command: Any) -> Any:
        for name, settings in reversed(flags):
            command = option(name, **settings)(command)
        return command

    return add


def access_flags(option: Option, path: object) -> Callable[[Any], Any]:
    """The flags of how callers show who they are: TLS, tokens, and those of `assay.rpc.access`.

    Args:
        option: `click.option`.
        path: the type of a flag that names a file.

    Returns:
        A decorator.
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


def pool_flags(option: Option, choice: Callable[..., object], where: str) -> Callable[[Any], Any]:
    """The flags of where workers run, which `assay.rpc.ray_cluster.check_pool` checks.

    Args:
        option: `click.option`.
        choice: `click.Choice`.
        where: help of --pool.

    Returns:
        A decorator.
    """
    address = "HOST:PORT of Ray's head; auto: of the node here."
    flags: list[Flag] = [
        ("--pool", {"type": choice(POOLS), "default": POOLS[0], "help": where}),
        ("--ray-address", {"default": DEFAULT_ADDRESS, "help": address}),
    ]
    return add_flags(option, flags)
