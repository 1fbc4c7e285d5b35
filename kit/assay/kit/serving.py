"""Serves gRPC services: binds, tests itself, serves, drains, stops.

    starting   bound; health NOT_SERVING; calls refused with UNAVAILABLE, STARTING; self-tests run
    serving    health SERVING for each service and for the whole ("")
    draining   health NOT_SERVING; new calls refused with UNAVAILABLE, DRAINING; running calls may
               end for drain_s, then they are cancelled and answered DRAINING, so that a client may
               retry elsewhere. Before that, calls to a service that lingers still pass
    stopped    services closed, port free

A self-test that fails ends the start.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, cast

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from prometheus_client.registry import Collector

from assay.kit.access import Access, doorman
from assay.kit.build import Build
from assay.kit.errors import AssayError, StartupError
from assay.kit.gate import CallGate, Phase
from assay.kit.interceptors import CallInterceptor
from assay.kit.limits import server_options
from assay.kit.metrics import CallMetrics, MetricsEndpoint
from assay.kit.quotas import Quotas
from assay.kit.reloading import Reloader
from assay.kit.tls import LiveTls, ServerTls
from assay.kit.tokens import Doorman
from assay.kit.watching import Reloadable

_log = logging.getLogger(__name__)
_LAST_BYTES_S = 2.0
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@dataclass(frozen=True, slots=True)
class Service:
    """One gRPC service to serve.

    Attributes:
        name: full name, as "assay.api.reward.v1.RewardService".
        add_to_server: adds the servicer, as `lambda s:
            add_RewardServiceServicer_to_server(servicer, s)`.
        self_test: raises where the service does not work.
        close: frees its resources; called once, after the drain or when the start fails.
        reloadables: the files that it reads again while it serves.
        linger: awaited when the server begins to stop; until it returns, calls to this service
            pass, and it refuses by itself what it takes no more of.
    """

    name: str
    add_to_server: Callable[[grpc.aio.Server], None]
    self_test: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]] | None = None
    collectors: Sequence[Collector] = ()
    reloadables: Sequence[Reloadable] = ()
    linger: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """Where and how to serve.

    Attributes:
        port: 0 takes a free one.
        drain_s: seconds that running calls may take to end when the server stops.
        tls: None speaks plain text.
        token: the bearer token of callers, beside those of the tokens file; with neither everybody
            is let in. Health is exempt.
        access: further tokens, reflection, the limits of tenants, trust in a network.
        max_concurrent_calls: above it a call is refused with QUEUE_FULL.
        metrics_port: 0 for a free one; None for no metrics.
        build: which build of which service it is, for the metrics; None for nothing of it.
    """

    host: str = "127.0.0.1"
    port: int = 0
    drain_s: float = 10.0
    tls: ServerTls | None = None
    token: str | None = None
    access: Access = field(default_factory=Access)
    max_concurrent_calls: int = 1024
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    build: Build | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What admits every call of a server, by any protocol.

    Attributes:
        gate: the server's phase and the running calls.
        door: checks tokens.
        tls: None for plain text.
    """

    gate: CallGate
    door: Doorman
    quotas: Quotas
    calls: CallMetrics
    collectors: Sequence[Collector]
    tls: LiveTls | None


class Beside(Protocol):
    """Another protocol in the same process, with the same gate and tokens as gRPC."""

    async def open(self, admission: Admission) -> None:
        """Binds and answers; the gate refuses calls until the self-tests are done.

        Raises:
            StartupError: the port cannot be bound.
            ConfigError: a network would be served without tokens, or a TLS file is unusable.
        """

    async def close(self) -> None:
        """Frees the port after the drain. May be called without `open`, or after it failed."""


class RunningServer:
    """A server that serves. `start` makes it; as an async context manager it stops at the end.

    Attributes:
        address: as "127.0.0.1:50051".
        metrics_address: as "127.0.0.1:9464"; None without metrics.
    """

    def __init__(
        self,
        *,
        server: grpc.aio.Server,
        gate: CallGate,
        servicer: health.aio.HealthServicer,
        services: Sequence[Service],
        config: ServeConfig,
        port: int,
        door: Doorman,
        calls: CallMetrics,
        quotas: Quotas,
        tls: LiveTls | None,
        reloader: Reloader,
        beside: Beside | None = None,
    ) -> None:
        self._quotas = quotas
        self._tls = tls
        self._reloader = reloader
        self._watching: asyncio.Task[None] | None = None
        self._reloading: set[asyncio.Task[None]] = set()
        self._beside = beside
        self._server = server
        self._gate = gate
        self._health = servicer
        self._services = services
        self._config = config
        self._door = door
        self._stopping: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        self.port = port
        self.address = address_of(config.host, port)
        self.metrics_address: str | None = None
        self._calls = calls
        self._endpoint: MetricsEndpoint | None = None

    async def __aenter__(self) -> RunningServer:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def stop(self, drain_s: float | None = None) -> None:
        """Drains and stops; a second call waits for the first."""
        if self._stopping is None:
            seconds = self._config.drain_s if drain_s is None else drain_s
            self._stopping = asyncio.create_task(self._stop(seconds))
        await asyncio.shield(self._stopping)

    def hurry(self) -> None:
        """Ends a drain in progress, or the next one, at once: running calls are cancelled."""
        self._gate.hurry()

    def reload(self) -> None:
        """Reads tokens, certificates and what services take from files now.

        Changed ones are read without this.
        """
        self._door.reload()
        task = asyncio.create_task(self._reloader.reload())
        self._reloading.add(task)
        task.add_done_callback(self._reloading.discard)

    async def wait(self) -> None:
        """Returns when the server has stopped."""
        await self._stopped.wait()

    def _show_metrics(self) -> None:
        config = self._config
        if config.metrics_port is None:
            return
        self._endpoint = MetricsEndpoint(
            self._collectors(), config.metrics_host, config.metrics_port
        )
        self.metrics_address = address_of(config.metrics_host, self._endpoint.port)
        _log.info("metrics on http://%s/metrics", self.metrics_address)

    def _collectors(self) -> list[Collector]:
        own = [collector for service in self._services for collector in service.collectors]
        build = [] if self._config.build is None else self._config.build.collectors
        return [*self._calls.collectors, *self._reloader.collectors, *build, *own]

    async def _start(self) -> None:
        self._show_metrics()
        for name in ("", *(service.name for service in self._services)):
            await self._health.set(name, _NOT_SERVING)
        await self._server.start()
        if self._beside is not None:
            await self._beside.open(
                Admission(
                    self._gate, self._door, self._quotas, self._calls, self._collectors(), self._tls
                )
            )
        await _run_self_tests(self._services)
        if self._reloader:
            self._watching = asyncio.create_task(self._reloader.run())
        self._gate.phase = Phase.SERVING
        for name in (*(service.name for service in self._services), ""):
            await self._health.set(name, _SERVING)

    async def _linger(self) -> None:
        lingering = [one.linger() for one in self._services if one.linger is not None]
        if lingering:
            waiting = asyncio.gather(*lingering, return_exceptions=True)
            await self._gate.wait_or_hurry(waiting)
            if waiting.done() and not waiting.cancelled():
                for error in waiting.result():
                    if error is not None:
                        _log.error("a service did not wait for its callers", exc_info=error)

    async def _stop(self, drain_s: float) -> None:
        try:
            for task in (*self._reloading, *([self._watching] if self._watching else [])):
                task.cancel()
            self._gate.drain_but([one.name for one in self._services if one.linger is not None])
            await self._health.enter_graceful_shutdown()
            await self._linger()
            if self._gate.running:
                _log.info("draining %d calls for at most %g s", self._gate.running, drain_s)
            cancelled = await self._gate.drain(drain_s)
            if cancelled:
                _log.warning("cancelled %d calls that outstayed the drain", cancelled)
            if self._beside is not None:
                await self._beside.close()
            await self._server.stop(_LAST_BYTES_S)
            await _close(self._services)
            if self._endpoint is not None:
                await asyncio.to_thread(self._endpoint.close)
        finally:
            self._stopped.set()


async def start(
    services: Sequence[Service], config: ServeConfig, *, beside: Beside | None = None
) -> RunningServer:
    """Binds, runs the self-tests, and serves with health SERVING.

    The server closes the services when it stops, and when the start fails.

    Raises:
        StartupError: the port is in use, the host is not ours, or a self-test failed.
        ConfigError: a TLS file or the tokens file is missing or unusable, no caller could send the
            token, or a network would be served without one.
    """
    running: RunningServer | None = None
    try:
        running = await _bind(services, config, beside)
        await running._start()  # noqa: SLF001  # the two are one thing; nobody else starts it
    except BaseException:
        if running is None:
            await _close(services)
        else:
            await running.stop(0.0)
        raise
    _log.info("serving on %s", running.address)
    return running


async def serve(
    services: Sequence[Service],
    config: ServeConfig,
    *,
    on_ready: Callable[[RunningServer], None] | None = None,
    beside: Beside | None = None,
    until: Callable[[], Coroutine[Any, Any, object]] | None = None,
) -> bool:
    """Serves until SIGTERM or SIGINT, then drains; a second signal ends the drain.

    Where `until` returns, it drains as well.

    At SIGHUP it reads again those of its files that may change. Run it in the main thread, where
    signals arrive.

    Returns:
        Whether a signal asked it to stop, before the drain or in it.

    Raises:
        StartupError: as `start`.
        ConfigError: as `start`.
    """
    asked = asyncio.Event()
    running: RunningServer | None = None

    def on_signal() -> None:
        if asked.is_set() and running is not None:
            running.hurry()
        asked.set()

    def on_hangup() -> None:
        if running is not None:
            running.reload()

    handlers: dict[signal.Signals, Callable[[], None]]
    handlers = {signal.SIGTERM: on_signal, signal.SIGINT: on_signal}
    if (
        config.access.tokens_file is not None
        or config.tls is not None
        or any(service.reloadables for service in services)
    ):
        handlers[signal.SIGHUP] = on_hangup
    with _signals(handlers):
        starting = asyncio.create_task(start(services, config, beside=beside))
        waiting = asyncio.create_task(asked.wait())
        ending: list[asyncio.Task[Any]] = [waiting]
        try:
            await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                running = starting.result()
                if on_ready is not None:
                    on_ready(running)
                if until is not None:
                    ending.append(asyncio.create_task(until()))
                await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
            _log.info("stopping")
        finally:
            for task in ending:
                task.cancel()
            await _stop_whatever_started(starting)
    return asked.is_set()


async def _stop_whatever_started(starting: asyncio.Task[RunningServer]) -> None:
    starting.cancel()
    (outcome,) = await asyncio.gather(starting, return_exceptions=True)
    if isinstance(outcome, RunningServer):
        await outcome.stop()


@contextlib.contextmanager
def _signals(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for kind, callback in handlers.items():
        loop.add_signal_handler(kind, callback)
    try:
        yield
    finally:
        for kind in handlers:
            loop.remove_signal_handler(kind)


async def _bind(
    services: Sequence[Service], config: ServeConfig, beside: Beside | None
) -> RunningServer:
    tls = None if config.tls is None else LiveTls(config.tls)
    reloadables = [one for service in services for one in service.reloadables]
    reloader = Reloader(reloadables if tls is None else [tls.reloadable(), *reloadables])
    await asyncio.to_thread(check_port, config.host, config.port)
    access = config.access
    door = await asyncio.to_thread(doorman, access, config.host, config.token, config.tls)
    gate = CallGate(config.max_concurrent_calls, access.tenant_calls)
    calls = CallMetrics(gate)
    quotas = access.quotas()
    certified = config.tls is not None and config.tls.client_ca_file is not None
    interceptor = CallInterceptor(gate, door, quotas, calls.ended, certified)
    server = grpc.aio.server(interceptors=(interceptor,), options=server_options())
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    for service in services:
        service.add_to_server(server)
    if await asyncio.to_thread(access.reflects, config.host):
        names = [service.name for service in services]
        reflection.enable_server_reflection(
            [*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server
        )
    address = address_of(config.host, config.port)
    try:
        if tls is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, tls.credentials())
    except RuntimeError as error:
        raise StartupError(f"cannot listen on {address}: choose another host or port") from error
    return RunningServer(
        server=server,
        gate=gate,
        servicer=servicer,
        services=services,
        config=config,
        port=port,
        door=door,
        calls=calls,
        quotas=quotas,
        tls=tls,
        reloader=reloader,
        beside=beside,
    )


async def _run_self_tests(services: Sequence[Service]) -> None:
    """Runs them at the same time; raises the first failure and logs the others."""

    async def run(service: Service) -> None:
        await service.self_test()

    outcomes = await asyncio.gather(*map(run, services), return_exceptions=True)
    failures: list[StartupError] = []
    for service, outcome in zip(services, outcomes, strict=True):
        if outcome is None:
            continue
        _log.debug("the self-test of %s failed", service.name, exc_info=outcome)
        known = isinstance(outcome, AssayError)
        text = str(outcome) if known else f"{type(outcome).__name__}: {outcome}"
        failure = StartupError(
            f"{service.name} does not serve: its self-test failed: {_one_line(text)}"
        )
        failure.__cause__ = outcome
        failures.append(failure)
    for failure in failures[1:]:
        _log.error("%s", failure)
    if failures:
        raise failures[0]


async def _close(services: Sequence[Service]) -> None:
    for service in reversed(services):
        if service.close is None:
            continue
        (outcome,) = await asyncio.gather(service.close(), return_exceptions=True)
        if outcome is not None:
            _log.error("%s did not close", service.name, exc_info=outcome)


def check_port(host: str, port: int) -> None:
    """Finds out why an address cannot be bound.

    Raises:
        StartupError: it is in use, not ours, or not permitted.
    """
    if not 0 <= port < 65536:
        raise StartupError(f"{port} is not a port: choose one from 0 (any free one) to 65535")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise StartupError(
            f"the host {host!r} is not known: bind 127.0.0.1, or 0.0.0.0 for every interface"
        ) from error
    failures = [failure for entry in found if (failure := _try_bind(entry[0], entry[4]))]
    for failure in failures:
        if failure.errno == errno.EADDRINUSE:
            raise StartupError(
                f"port {port} on {host} is in use: choose another port (0 takes a free one), "
                "or stop the process that listens there"
            ) from failure
    if len(failures) == len(found):
        reason = os.strerror(failures[0].errno or 0)
        remedy = (
            "choose a port above 1023"
            if failures[0].errno == errno.EACCES
            else "bind 127.0.0.1, or 0.0.0.0 for every interface"
        )
        raise StartupError(
            f"cannot listen on {address_of(host, port)}: {reason}; {remedy}"
        ) from failures[0]


def _try_bind(family: socket.AddressFamily, address: object) -> OSError | None:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(cast("tuple[str, int]", address))
    except OSError as error:
        return error
    return None


def address_of(host: str, port: int) -> str:
    """As "127.0.0.1:50051", or "[::1]:50051"."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
