"""Each service's process: flags into settings, its address to the process that started it."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

from assay.kit.errors import ConfigError
from assay.kit.serving import RunningServer
from assay.kit.tls import ClientTls, ServerTls


def server_tls(cert: Path | None, key: Path | None, client_ca: Path | None) -> ServerTls | None:
    """TLS by the flags --tls-cert, --tls-key and --tls-client-ca; None for none.

    Raises:
        ConfigError: a flag is given without the one that it needs.
    """
    if cert is None and key is None:
        if client_ca is not None:
            raise ConfigError("--tls-client-ca needs --tls-cert and --tls-key as well")
        return None
    if cert is None or key is None:
        raise ConfigError("--tls-cert and --tls-key go together; one of them is missing")
    return ServerTls(cert, key, client_ca)


def client_tls(ca: Path | None, cert: Path | None, key: Path | None) -> ClientTls | None:
    """TLS to another service, of this authority and our own certificate; None without an authority.

    Raises:
        ConfigError: a file cannot be used, or only one of certificate and key is given.
    """
    if ca is None:
        return None
    tls = ClientTls(ca, cert, key)
    tls.credentials()
    return tls


def read_token(file: Path | None, variable: str) -> str | None:
    """A bearer token: of a file, else of a variable of the environment; None for none.

    Raises:
        ConfigError: the file cannot be read.
    """
    if file is None:
        return os.environ.get(variable) or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token file {file} cannot be read: {error}") from error


def announce(
    name: str, running: RunningServer, port_file: Path | None, http_address: str = ""
) -> None:
    """Writes the server's address to stdout and to the port file.

    Further lines are "assay NAME metrics on HOST:PORT" and "assay NAME http on HOST:PORT", where
    these are served. From here on what gRPC writes about strangers is logged once a minute.

    Raises:
        ConfigError: the port file cannot be written.
    """
    if port_file is not None:
        partial = port_file.with_name(f"{port_file.name}.{os.getpid()}.tmp")
        try:
            partial.write_text(f"{running.port}\n", encoding="ascii")
            partial.replace(port_file)
        except OSError as error:
            raise ConfigError(
                f"--port-file {port_file} cannot be written: {error.strerror}"
            ) from error
    if sys.platform == "linux":
        from assay.kit.native_log import NativeLog  # noqa: PLC0415 - its modules are Linux's

        atexit.register(NativeLog().close)
    lines = [f"assay {name} ready on {running.address}\n"]
    if running.metrics_address is not None:
        lines.append(f"assay {name} metrics on {running.metrics_address}\n")
    if http_address:
        lines.append(f"assay {name} http on {http_address}\n")
    # At once: who sees that it is ready sees where the rest is.
    sys.stdout.write("".join(lines))
    sys.stdout.flush()


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
