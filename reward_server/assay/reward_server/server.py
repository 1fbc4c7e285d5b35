"""Puts the server together from its settings and runs it until it is told to stop."""

from __future__ import annotations

from assay.clients.config import BETWEEN_SERVICES
from assay.clients.execution import AsyncExecutionClient
from assay.clients.judging import AsyncJudgeClient
from assay.reward_server.config import ServerConfig
from assay.reward_server.domain import Verifier
from assay.reward_server.journal.writer import Journal
from assay.reward_server.registry import RegistryError, load_registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.service import reward_service
from assay.reward_server.verifiers import judges
from assay.reward_server.verifiers.code import CodeVerifier
from assay.reward_server.verifiers.sql import SqlVerifier
from assay.rpc.errors import ConfigError, StartupError
from assay.rpc.process import announce, client_tls, server_tls
from assay.rpc.serving import ServeConfig, serve


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
        tls=server_tls(config.tls_cert, config.tls_key, config.tls_client_ca),
        token=config.token,
        access=config.access,
        metrics_host=config.metrics_host,
        metrics_port=config.metrics_port,
    )
    try:
        registry = load_registry(_remote(config), config.profiles)
    except RegistryError as error:
        raise StartupError(str(error)) from error
    journal = _journal(config)
    if journal is not None:
        await journal.start()
    scorer = RewardScorer(config.scorer, registry=registry, journal=journal)
    try:
        await serve(
            [reward_service(scorer)],
            serve_config,
            on_ready=lambda running: announce("reward_server", running, config.port_file),
        )
    finally:
        await scorer.close()
        if journal is not None:
            await journal.close()
        if config.port_file is not None:
            config.port_file.unlink(missing_ok=True)


def _journal(config: ServerConfig) -> Journal | None:
    """The journal that the operator asked for; not started yet."""
    if config.journal is None:
        return None
    return Journal(config.journal, config.journal_max_mb * 2**20)


def _remote(config: ServerConfig) -> list[Verifier]:
    """The verifiers that ask other services, of those services that the operator named.

    Raises:
        ConfigError: a file of TLS is missing or unusable.
    """
    found: list[Verifier] = []
    ours = config.client_cert, config.client_key
    if any(ours) and config.sandbox_tls_ca is None and config.genrm_tls_ca is None:
        raise ConfigError("--client-cert needs --sandbox-tls-ca or --genrm-tls-ca")
    if config.sandbox_target:
        tls = client_tls(config.sandbox_tls_ca, *ours)
        sandbox = AsyncExecutionClient(
            config.sandbox_target, tls=tls, token=config.sandbox_token, config=BETWEEN_SERVICES
        )
        found += [CodeVerifier(sandbox), SqlVerifier(sandbox)]
    if config.genrm_target:
        tls = client_tls(config.genrm_tls_ca, *ours)
        genrm = AsyncJudgeClient(
            config.genrm_target, tls=tls, token=config.genrm_token, config=BETWEEN_SERVICES
        )
        found += [make(genrm) for make in judges.VERIFIERS]
    return found
