"""Builds the server from its settings and runs it until a signal stops it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.clients.config import BETWEEN_SERVICES
from assay.clients.execution import AsyncExecutionClient
from assay.clients.judging import AsyncJudgeClient
from assay.clients.sessions import AsyncSessionClient
from assay.kit.build import Build
from assay.kit.errors import ConfigError, StartupError
from assay.kit.http.app import http_listener
from assay.kit.http.listener import HttpListener
from assay.kit.pool import places
from assay.kit.process import announce, client_tls, server_tls
from assay.kit.serving import Admission, RunningServer, ServeConfig, serve
from assay.kit.watching import FileWatch
from assay.reward_server.config import ServerConfig
from assay.reward_server.domain import Verifier
from assay.reward_server.files import read_verifiers
from assay.reward_server.http.front import RewardFront
from assay.reward_server.http.site import SITE
from assay.reward_server.journal.writer import Journal
from assay.reward_server.profiles.appeals import read_key
from assay.reward_server.registry import RegistryError, load_registry
from assay.reward_server.renewal import Renewal, read_with_renewal
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.service import reward_service
from assay.reward_server.verifiers import judges, sandboxed

_ONE_BY_ONE = replace(BETWEEN_SERVICES, max_concurrent_calls=1024)


async def run(config: ServerConfig) -> None:
    """Serves until SIGTERM or SIGINT, then drains.

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
        build=Build("reward_server", "assay-rl-reward-server"),
    )
    renewal: Renewal | None = None
    if config.reload:
        files, renewal = read_with_renewal(config.verifier)
    else:
        files = read_verifiers(config.verifier)
    profiles = FileWatch(config.profiles)
    services = _services(config)
    try:
        registry = load_registry(
            _remote(services), config.profiles, files, read_key(config.appeal_key)
        )
    except RegistryError as error:
        raise StartupError(str(error)) from error
    # Before a port is bound: what is wrong is said in a line.
    await places.join(config.scorer.pool, config.scorer.ray_address)
    journal = _journal(config)
    if journal is not None:
        await journal.start()
    scorer = RewardScorer(
        config.scorer,
        registry=registry,
        journal=journal,
        profiles=profiles,
        reliability=FileWatch(config.reliability),
    )
    listener = _listener(config, scorer, services)

    bound: dict[str, int] = {}

    def on_ready(running: RunningServer) -> None:
        http_address = "" if listener is None else listener.address
        bound.update(port=running.port)
        if http_address:
            bound.update(http_port=int(http_address.rpartition(":")[2]))
        announce("reward_server", running, config.port_file, http_address)

    try:
        stopped = await serve(
            [reward_service(scorer, renewal)],
            serve_config,
            on_ready=on_ready,
            beside=listener,
            until=None if renewal is None else renewal.wait,
        )
    finally:
        await scorer.close()
        for client in (services.programs, services.sessions):
            if client is not None:
                await client.close()
        if journal is not None:
            await journal.close()
        if config.port_file is not None:
            config.port_file.unlink(missing_ok=True)
    if renewal is not None and not stopped:
        renewal.end(**bound)


@dataclass(frozen=True, slots=True)
class _Services:
    """Clients of the services behind; None for one that the operator did not name.

    Attributes:
        sandbox: for verifiers, which send many programs in a call.
        programs: the same sandbox, for HTTP, where each program is a call.
        sessions: the same, for HTTP.
        genrm: asks judges.
    """

    sandbox: AsyncExecutionClient | None
    programs: AsyncExecutionClient | None
    sessions: AsyncSessionClient | None
    genrm: AsyncJudgeClient | None


def _listener(
    config: ServerConfig, scorer: RewardScorer, services: _Services
) -> HttpListener | None:
    """HTTP beside gRPC; None without --http-port."""
    public = config.access.is_public(config.http.bind)

    def front(admission: Admission) -> RewardFront:
        return RewardFront(
            scorer,
            admission,
            config.http,
            verifier=config.http_verifier,
            mask_faults=config.http_mask_faults,
            sandbox=services.programs,
            sessions=services.sessions,
            genrm=services.genrm,
            journal=config.journal,
            public=public,
        )

    return http_listener(SITE, front, config.http, config.access)


def _journal(config: ServerConfig) -> Journal | None:
    """The journal that the operator asked for; not started yet."""
    if config.journal is None:
        return None
    return Journal(config.journal, config.journal_max_mb * 2**20)


def _services(config: ServerConfig) -> _Services:
    """Clients of the services that the operator named.

    Raises:
        ConfigError: a file of TLS is missing or unusable.
    """
    sandbox: AsyncExecutionClient | None = None
    programs: AsyncExecutionClient | None = None
    sessions: AsyncSessionClient | None = None
    genrm: AsyncJudgeClient | None = None
    ours = config.client_cert, config.client_key
    if any(ours) and config.sandbox_tls_ca is None and config.genrm_tls_ca is None:
        raise ConfigError("--client-cert needs --sandbox-tls-ca or --genrm-tls-ca")
    if config.sandbox_target:
        tls = client_tls(config.sandbox_tls_ca, *ours)
        sandbox = AsyncExecutionClient(
            config.sandbox_target, tls=tls, token=config.sandbox_token, config=BETWEEN_SERVICES
        )
        if config.http.port is not None:
            programs = AsyncExecutionClient(
                config.sandbox_target, tls=tls, token=config.sandbox_token, config=_ONE_BY_ONE
            )
            sessions = AsyncSessionClient(
                config.sandbox_target, tls=tls, token=config.sandbox_token, config=_ONE_BY_ONE
            )
    if config.genrm_target:
        tls = client_tls(config.genrm_tls_ca, *ours)
        genrm = AsyncJudgeClient(
            config.genrm_target, tls=tls, token=config.genrm_token, config=BETWEEN_SERVICES
        )
    return _Services(sandbox, programs, sessions, genrm)


def _remote(services: _Services) -> list[Verifier]:
    found: list[Verifier] = []
    if services.sandbox is not None:
        found += [make(services.sandbox) for make in sandboxed.VERIFIERS]
    if services.genrm is not None:
        found += [make(services.genrm) for make in judges.VERIFIERS]
    return found
