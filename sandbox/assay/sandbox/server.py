"""Puts the server together from its settings and runs it until it is told to stop."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from assay.rpc.errors import ConfigError
from assay.rpc.serving import RunningServer, ServeConfig, serve
from assay.rpc.tls import ServerTls
from assay.sandbox.config import ServerConfig
from assay.sandbox.runner import Runner
from assay.sandbox.service import execution_service
from assay.sandbox.site import survey


async def run(config: ServerConfig) -> None:
    """Serves until SIGTERM or SIGINT, then drains.

    Args:
        config: the settings.

    Raises:
        ConfigError: a setting or a file is wrong.
        StartupError: the port is in use, isolation is below the floor, the wardens do not
            come up, or no language works.
    """
    serve_config = ServeConfig(
        host=config.host,
        port=config.port,
        drain_s=config.drain_s,
        tls=_tls(config),
        token=config.token,
    )
    runner = Runner(config.runner, survey(config.runner))
    try:
        await serve(
            [execution_service(runner)],
            serve_config,
            on_ready=lambda running: _announce(running, config.port_file),
        )
    finally:
        await runner.close()
        if config.port_file is not None:
            config.port_file.unlink(missing_ok=True)


def _tls(config: ServerConfig) -> ServerTls | None:
    cert, key = config.tls_cert, config.tls_key
    if cert is None and key is None:
        if config.tls_client_ca is not None:
            raise ConfigError("--tls-client-ca needs --tls-cert and --tls-key as well")
        return None
    if cert is None or key is None:
        raise ConfigError("--tls-cert and --tls-key go together; one of them is missing")
    return ServerTls(cert, key, config.tls_client_ca)


def _announce(running: RunningServer, port_file: Path | None) -> None:
    """Tells whoever started the server where it answers."""
    if port_file is not None:
        partial = port_file.with_name(f"{port_file.name}.{os.getpid()}.tmp")
        try:
            partial.write_text(f"{running.port}\n", encoding="ascii")
            partial.replace(port_file)
        except OSError as error:
            raise ConfigError(
                f"--port-file {port_file} cannot be written: {error.strerror}"
            ) from error
    sys.stdout.write(f"assay sandbox ready on {running.address}\n")
    sys.stdout.flush()
