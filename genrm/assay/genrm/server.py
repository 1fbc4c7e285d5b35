"""Puts the server together from its settings and runs it until it is stopped."""

from __future__ import annotations

from assay.clients import AsyncRewardClient
from assay.clients.config import BETWEEN_SERVICES
from assay.genrm.answers import AnswerVerifier
from assay.genrm.config import JudgeServerConfig
from assay.genrm.runner import Runner
from assay.genrm.service import genrm_services
from assay.kit.build import Build
from assay.kit.errors import ConfigError
from assay.kit.process import announce, client_tls, server_tls
from assay.kit.serving import ServeConfig, serve


async def run(config: JudgeServerConfig) -> None:
    """Serves until SIGTERM or SIGINT, then drains.

    Raises:
        ConfigError: a setting or a file is wrong.
        StartupError: the port is in use, or a model cannot be loaded or does not answer.
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
        build=Build("genrm", "assay-rl-genrm"),
    )
    runner = Runner(config.runner, answers=_answers(config))
    try:
        await serve(
            genrm_services(runner),
            serve_config,
            on_ready=lambda running: announce("genrm", running, config.port_file),
        )
    finally:
        await runner.close()
        if config.port_file is not None:
            config.port_file.unlink(missing_ok=True)


def _answers(config: JudgeServerConfig) -> AnswerVerifier | None:
    if not config.reward_target:
        return None
    if any(ours := (config.client_cert, config.client_key)) and config.reward_tls_ca is None:
        raise ConfigError("--client-cert needs --reward-tls-ca")
    tls = client_tls(config.reward_tls_ca, *ours)
    return AnswerVerifier(
        AsyncRewardClient(
            config.reward_target, tls=tls, token=config.reward_token, config=BETWEEN_SERVICES
        )
    )
