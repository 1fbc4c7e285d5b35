"""Puts the server together from its settings and runs it until it is told to stop."""

from __future__ import annotations

from assay.rpc import ray_cluster
from assay.rpc.process import announce, server_tls
from assay.rpc.serving import ServeConfig, serve
from assay.sandbox.config import RunnerConfig, ServerConfig
from assay.sandbox.runner import Runner
from assay.sandbox.service import execution_service
from assay.sandbox.site import survey
from assay.sandbox.slots.link import LocalWardens, Wardens
from assay.sandbox.slots.on_ray import RayWardens


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
        tls=server_tls(config.tls_cert, config.tls_key, config.tls_client_ca),
        token=config.token,
        access=config.access,
        metrics_host=config.metrics_host,
        metrics_port=config.metrics_port,
    )
    runner = Runner(config.runner, wardens(config.runner))
    if config.runner.pool == "ray":
        # Before a port is bound: what is wrong is said in a line.
        await ray_cluster.connect(config.runner.ray_address, "assay-sandbox[ray]")
    try:
        await serve(
            [execution_service(runner)],
            serve_config,
            on_ready=lambda running: announce("sandbox", running, config.port_file),
        )
    finally:
        await runner.close()
        if config.port_file is not None:
            config.port_file.unlink(missing_ok=True)


def wardens(config: RunnerConfig) -> Wardens:
    """Where programs run: on this machine, which is surveyed now, or on a cluster's nodes.

    Raises:
        ConfigError, StartupError: this machine cannot run them as it was told to.
    """
    if config.pool == "ray":
        return RayWardens(config)
    site = survey(config)
    return LocalWardens(site, site.settings(config))
