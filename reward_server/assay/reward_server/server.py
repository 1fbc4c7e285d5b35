"""Puts the server together from its settings and runs it until it is told to stop."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from assay.clients.execution import AsyncExecutionClient
from assay.reward_server.config import ServerConfig
from assay.reward_server.domain import Verifier
from assay.reward_server.registry import RegistryError, load_registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.service import reward_service
from assay.reward_server.verifiers.code import CodeVerifier
from assay.rpc.errors import ConfigError, StartupError
from assay.rpc.serving import RunningServer, ServeConfig, serve
from assay.rpc.tls import ClientTls, ServerTls


async def run(config: ServerConfig) -> None:
    """Serves until SIGTERM or SIGINT, then drains.

    Args:
        config: the settings.

    Raises:
        ConfigError: a setting or a file is wrong.
        StartupError: the port is in use, the workers do not come up, or a self-test failed.
    """
    serve_config = ServeConfig(
        host=config.host,
        port=config.port,
        drain_s=config.drain_s,
        tls=_tls(config),
        token=config.token,
    )
    try:
        registry = load_registry(_remote(config))
    except RegistryError as error:
        raise StartupError(str(error)) from error
    scorer = RewardScorer(config.scorer, registry=registry)
    try:
        await serve(
            [reward_service(scorer)],
            serve_config,
            on_ready=lambda running: _announce(running, config.port_file),
        )
    finally:
        await scorer.close()
        if config.port_file is not None:
            config.port_file.unlink(missing_ok=True)


def _remote(config: ServerConfig) -> list[Verifier]:
    """The verifiers that ask other services, of those services that the operator named."""
    if not config.sandbox_target:
        return []
    tls = None
    if config.sandbox_tls_ca is not None:
        tls = ClientTls(ca_file=config.sandbox_tls_ca)
        tls.credentials()
    client = AsyncExecutionClient(config.sandbox_target, tls=tls, token=config.sandbox_token)
    return [CodeVerifier(client)]


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
    sys.stdout.write(f"assay reward_server ready on {running.address}\n")
    sys.stdout.flush()
