"""Puts the server together from its settings and runs it."""

from __future__ import annotations

from dataclasses import replace

from assay.kit.build import Build
from assay.kit.http.app import http_listener
from assay.kit.pool import places
from assay.kit.process import announce, server_tls
from assay.kit.serving import Admission, RunningServer, ServeConfig, serve
from assay.sandbox.config import SandboxServerConfig
from assay.sandbox.http import SITE, SandboxFront
from assay.sandbox.runner import ProgramRunner
from assay.sandbox.service import execution_service, session_service
from assay.sandbox.sessions.place import open_sessions
from assay.sandbox.workers.place import Supervisors


async def run(config: SandboxServerConfig) -> None:
    """Serves until SIGTERM or SIGINT, then drains.

    Raises:
        ConfigError: a setting or a file is wrong.
        StartupError: the port is in use, isolation is below the floor, the supervisors do not come
            up,
            or no language works.
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
        build=Build("sandbox", "assay-rl-sandbox"),
    )
    supervisors = Supervisors(config.runner)
    runner = ProgramRunner(config.runner, supervisors)
    sessions = open_sessions(config, supervisors.surveyed)
    # Of each session one, beside those of a server without any.
    calls = serve_config.max_concurrent_calls + sessions.places
    serve_config = replace(serve_config, max_concurrent_calls=calls)
    # Before a port is bound: what is wrong is said in a line.
    await places.join(config.runner.pool, config.runner.ray_address)
    public = config.access.is_public(config.http.bind)

    def front(admission: Admission) -> SandboxFront:
        return SandboxFront(runner, admission, config.http, public=public, sessions=sessions)

    listener = http_listener(SITE, front, config.http, config.access)

    def on_ready(running: RunningServer) -> None:
        http_address = "" if listener is None else listener.address
        announce("sandbox", running, config.port_file, http_address)

    try:
        services = [execution_service(runner), session_service(sessions)]
        await serve(services, serve_config, on_ready=on_ready, beside=listener)
    finally:
        await sessions.stop()
        await runner.close()
        if config.port_file is not None:
            config.port_file.unlink(missing_ok=True)
