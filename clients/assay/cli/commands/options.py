"""Options of several commands: which server, and its credentials."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from assay.clients.config import ClientConfig, RetryPolicy
from assay.kit.errors import ConfigError
from assay.kit.targets import read_target
from assay.kit.tls import ClientTls

# A person waits: two more tries are enough to outlive a restart that is nearly done.
IMPATIENT = ClientConfig(retry=RetryPolicy(max_attempts=3))

CERTIFICATE = ("ASSAY_CLIENT_CERT", "ASSAY_CLIENT_KEY")
"""Variables with the files of our own certificate and its key."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """A server as the command line names it; an empty target for none."""

    target: str
    token: str | None
    tls: ClientTls | None


def server_options(command: F) -> F:
    """Adds --target, --token-file and --tls-ca."""
    for option in (
        click.option(
            "--tls-ca", metavar="FILE", help="Encrypt, and trust this certificate authority (PEM)."
        ),
        click.option("--token-file", metavar="FILE", help="Read the bearer token from this file."),
        click.option(
            "--target",
            metavar="HOST:PORT",
            default="",
            help="The server to ask, or its replicas: dns:///NAME:PORT or IP:PORT,IP:PORT.",
        ),
    ):
        command = option(command)
    return command


def read_server(target: str, token_file: str | None, tls_ca: str | None) -> ServerAccess:
    """Checks the options and reads the token, and our certificate if the environment names one.

    Raises:
        ConfigError: The target cannot be parsed, or a file does not exist or is empty.
    """
    if target:
        try:
            read_target(target)
        except ConfigError as error:
            raise ConfigError(f"--target: {error}") from error
    tls = None
    if tls_ca is not None:
        cert, key = (os.environ.get(name) for name in CERTIFICATE)
        tls = ClientTls(Path(tls_ca), Path(cert) if cert else None, Path(key) if key else None)
        tls.credentials()
    return ServerAccess(target, _read_token(token_file), tls)


def _read_token(token_file: str | None) -> str | None:
    if token_file is None:
        return None
    try:
        token = Path(token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not a text file"
        raise ConfigError(f"--token-file {token_file}: {why}; write the token into it") from error
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"--token-file {token_file} holds no token; write the token into it, on one line"
        )
    return token
