"""A Ray cluster as the services use it: it places hosts of workers and notices when one is lost.

A host is a Ray actor on one CPU of a node. Ray neither restarts nor retries it: the service decides
what may run twice. Hosts end with the process that placed them. No object is shared and no code is
sent, so the nodes must have the same packages installed. `connect` imports Ray.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import threading
from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

from assay.kit.errors import ConfigError, StartupError
from assay.kit.pool.places import DEFAULT_ADDRESS, HOW_TO_INSTALL_RAY

_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_CALLS_AT_A_TIME = 64
_REMIND_S = 30.0
_CONNECT_S = 10.0
_JOIN_S = 45.0
_JOIN_ERRORS = (OSError, ValueError, RuntimeError)  # ConnectionError and TimeoutError are the first
_NODE_LABEL = "ray.io/node-id"
_log = logging.getLogger(__name__)


class HostLost(Exception):
    """A host is gone or does not answer: its node, its process, or the connection."""


def check_address(address: str) -> None:
    """Checks --ray-address without connecting.

    Raises:
        ConfigError: it is empty, or an address of Ray's client.
    """
    if "://" in address:
        raise ConfigError(
            "--ray-address is auto or HOST:PORT of the head: Ray's client (ray://) is not used, so "
            "start a node beside the service (ray start --address HOST:PORT --num-cpus 0)"
        )
    if not address:
        raise ConfigError("--ray-address is empty; leave it out to take the node of this machine")


def host_options(avoid: Collection[str] = ()) -> dict[str, Any]:
    """Ray's options that place a host on a CPU of any node but those with the ids in `avoid`."""
    options: dict[str, Any] = {
        "num_cpus": 1,
        "max_restarts": 0,
        "max_task_retries": 0,
        "max_concurrency": _CALLS_AT_A_TIME,
        "scheduling_strategy": "SPREAD",
    }
    if avoid:
        options["label_selector"] = {_NODE_LABEL: f"!in({','.join(sorted(avoid))})"}
    return options


class RayHost:
    """One host, placed or waiting for room. For one event loop."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ask(self, method: str, *arguments: object, timeout_s: float | None = None) -> Any:
        """Calls a method of the host with plain data and waits for its result.

        Raises:
            HostLost: no answer came, or none will.
        """
        calling = asyncio.ensure_future(_awaited(getattr(self._actor, method).remote(*arguments)))
        try:
            await asyncio.wait(
                [calling, self._ended], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if calling.done():
                return calling.result()
        except self._ray.exceptions.RayError as error:
            raise HostLost(_first_line(error)) from error
        finally:
            calling.cancel()
        raise HostLost("ended" if self._ended.done() else f"no answer within {timeout_s:g} s")

    def end(self) -> None:
        """Kills the host and ends running `ask` calls. Harmless when repeated."""
        if not self._ended.done():
            self._ended.set_result(None)
        if self._ray.is_initialized():
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(self._actor, no_restart=True)


class Cluster:
    """The cluster that this process is connected to; see `connect`."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def place(self, kind: type, *arguments: object, avoid: Collection[str] = ()) -> RayHost:
        """A new host; it comes up as soon as a node has room for it.

        Args:
            kind: its class, importable by this name on every node; its methods are coroutines.
            arguments: of its constructor, plain data.
            avoid: ids of nodes that it must not be placed on.

        Raises:
            HostLost: the cluster takes none.
        """
        options = host_options(avoid)
        try:
            return RayHost(self._ray, self._ray.remote(kind).options(**options).remote(*arguments))
        except self._ray.exceptions.RayError as error:
            raise HostLost(_first_line(error)) from error

    async def cpus(self) -> int:
        """CPUs of all nodes."""
        total = await asyncio.to_thread(self._ray.cluster_resources)
        return int(total.get("CPU", 0))

    async def room(self) -> str:
        """The number of CPUs, and of free ones, in words."""
        total, free = await asyncio.gather(
            self.cpus(), asyncio.to_thread(self._ray.available_resources)
        )
        return f"{total} CPUs, {int(free.get('CPU', 0))} of them free"

    async def nodes(self) -> set[str]:
        """Ids of the living nodes that have a CPU."""
        found = await asyncio.to_thread(self._ray.nodes)
        return {n["NodeID"] for n in found if n["Alive"] and n["Resources"].get("CPU", 0) >= 1}

    async def close(self) -> None:
        """Leaves the cluster; every host of ours ends."""
        await asyncio.to_thread(self._ray.shutdown)


class Berths:
    """The nodes that the hosts of one service may use.

    A started host gives the facts "node", "name", "version" and, where it is of no use, "trouble".

    Args:
    Attributes:
        refused: why a node is of no use, by its id.
    """

    def __init__(self, cluster: Cluster, what: str) -> None:
        self.refused: dict[str, str] = {}
        self._cluster = cluster
        self._what = what

    async def place(
        self, distribution: str, kind: type, *arguments: object, start: tuple[object, ...] = ()
    ) -> tuple[RayHost, dict[str, Any]]:
        """Waits for a host that is up, however long that takes; returns it with its facts.

        Raises:
            HostLost: it was lost before, or its node is of no use.
        """
        host = self._cluster.place(kind, *arguments, avoid=tuple(self.refused))
        try:
            about = await self._started(host, start)
        except BaseException:
            host.end()
            raise
        trouble = about.get("trouble", "")
        ours = version(distribution)
        if about["version"] != ours:
            trouble = f"it has {distribution} {about['version']}, this server has {ours}"
        if trouble:
            raise self.refuse(host, about, trouble)
        _log.info("%s is on %s", self._what, _where(about))
        return host, about

    def refuse(self, host: RayHost, about: Mapping[str, Any], trouble: str) -> HostLost:
        """Ends a host and places none on its node again; returns the error to raise."""
        host.end()
        text = f"{_where(about)} is refused: {trouble}"
        self.refused[about["node"]] = text
        return HostLost(text)

    async def first_of(self, filling: Collection[asyncio.Task[Any]], limit_s: float) -> None:
        """Waits until one of the tasks that each start a host is done.

        Raises:
            HostLost: there was no room within `limit_s`, or every node is of no use.
        """
        try:
            async with asyncio.timeout(limit_s):
                while not any(task.done() for task in filling):
                    await asyncio.wait(filling, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
                    if self.refused and await self._cluster.nodes() <= set(self.refused):
                        raise HostLost("; ".join(self.refused.values()))
        except TimeoutError as error:
            raise HostLost(
                f"{self._what} did not come up in the Ray cluster within {limit_s:g} s; each takes "
                f"one CPU, and the cluster has {await self._cluster.room()}"
            ) from error

    async def _started(self, host: RayHost, arguments: tuple[object, ...]) -> dict[str, Any]:
        starting = asyncio.ensure_future(host.ask("start", *arguments))
        try:
            while True:
                done, _ = await asyncio.wait([starting], timeout=_REMIND_S)
                if done:
                    about: dict[str, Any] = starting.result()
                    return about
                room = await self._cluster.room()
                _log.warning("%s waits for room in the Ray cluster, which has %s", self._what, room)
        finally:
            starting.cancel()


async def connect(address: str) -> Cluster:
    """Joins a running cluster, as a process of the node on this machine.

    A process is in one cluster until `Cluster.close`.

    Args:
        address: of the cluster's head, HOST:PORT; "auto" for the one of this machine's node.

    Raises:
        ConfigError: Ray is not installed.
        StartupError: no cluster answers there.
    """
    # Before Ray is imported: it reads them once.
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise ConfigError(f"--pool ray needs Ray; {HOW_TO_INSTALL_RAY}") from error
    if address != DEFAULT_ADDRESS:
        await _check_answers(address)
    logging.getLogger("ray").setLevel(logging.ERROR)
    _log_what_ray_says(importlib.import_module("ray._private.worker"))
    if not ray.is_initialized():
        try:
            await _joined(ray, address)
        except _JOIN_ERRORS as error:
            raise _no_cluster(address, error) from error
    return Cluster(ray)


async def _joined(ray: Any, address: str) -> None:
    """Runs `ray.init`; raises what it raises, and TimeoutError where it takes too long.

    It blocks and would set signal handlers in the main thread, so a thread runs it: a daemon,
    because Ray may try for minutes.
    """
    loop = asyncio.get_running_loop()
    joined: asyncio.Future[None] = loop.create_future()

    def tell(error: BaseException | None) -> None:
        if not joined.done():
            joined.set_result(None) if error is None else joined.set_exception(error)

    def join() -> None:
        try:
            ray.init(
                address=address,
                log_to_driver=False,
                configure_logging=False,
                logging_level=logging.ERROR,
            )
        except _JOIN_ERRORS as error:
            loop.call_soon_threadsafe(tell, error)
        else:
            loop.call_soon_threadsafe(tell, None)

    threading.Thread(target=join, name="ray-init", daemon=True).start()
    try:
        async with asyncio.timeout(_JOIN_S):
            await joined
    except TimeoutError as error:
        raise TimeoutError(f"nothing of Ray's within {_JOIN_S:g} s") from error


async def _check_answers(address: str) -> None:
    """Tries the port, for which Ray itself would take minutes; ConfigError, StartupError."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f"--ray-address {address!r} is neither auto nor HOST:PORT")
    try:
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, OverflowError, TimeoutError) as error:
        raise _no_cluster(address, error) from error
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _no_cluster(address: str, error: BaseException) -> StartupError:
    return StartupError(
        f"no Ray cluster answers at {address} ({_first_line(error)}); start a node on this "
        "machine: ray start --head, or ray start --address HOST:PORT"
    )


def this_node() -> str:
    """The id of the node that this host runs on."""
    ray = importlib.import_module("ray")
    return str(ray.get_runtime_context().get_node_id())


def _log_what_ray_says(worker: Any) -> None:
    """Sends Ray's reports on nodes and workers to our log instead of stderr.

    Ray has no setting for it; a version that has another function prints as before.
    """

    def log(data: Mapping[str, Any], *_: object, **__: object) -> None:
        for line in list(data.get("lines", ()))[:1]:
            _log.warning("ray: %s", str(line).splitlines()[0][:300])

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = log


async def _awaited(reference: Any) -> Any:
    return await reference


def _where(about: Mapping[str, Any]) -> str:
    return f"Ray node {about['node'][:8]} ({about['name']})"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".")[:300] if lines else type(error).__name__
