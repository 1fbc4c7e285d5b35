"""Where a pool's workers can run: on this machine, or in a place that a plug-in brings.

A plug-in names a `WorkerPlace` under the entry-point group `assay.worker_places`; `--pool` takes
the entry point's name. `assay-rl-ray-pool` brings `ray`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, TypeAlias

from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.kit.pool.frames import Frame
from assay.kit.pool.link import Workers

GROUP = "assay.worker_places"
LOCAL = "local"
"""Processes of this machine."""
DEFAULT_ADDRESS = "auto"
RAY_PLUG_IN = "assay-rl-ray-pool"
HOW_TO_INSTALL_RAY = "in a checkout of Assay, run: pip install './plugins/ray_pool[ray]'"

Ask: TypeAlias = Callable[[bytes, bytes], Awaitable[Frame]]
"""Sends a job, its kind and body, to the worker of a node; returns its answer."""


class Node(Protocol):
    """A service's part on a machine of a place."""

    @property
    def workers(self) -> Workers:
        """Its workers; one at a time is asked for."""

    async def about(self, ask: Ask) -> Mapping[str, Any]:
        """Plain data on this machine for the service; called once a worker is up.

        Raises:
            LinkError: the machine is of no use; the text says why.
        """


@dataclass(frozen=True, slots=True)
class Placement:
    """The workers that a service wants in a place.

    Attributes:
        address: as --ray-address gives it.
        distribution: the service's package, which every machine must have in our version.
        what: a worker's name for people, as "a worker".
        node: "module:function", importable on every machine; the function makes a `Node` of the
            settings, or raises LinkError where the machine is of no use.
        start_s: how long the first worker may take to be up, in seconds.
        accept: returns why a machine that gave this `about` is refused, or an empty text.
    """

    address: str
    distribution: str
    what: str
    node: str
    settings: str
    start_s: float = 120.0
    accept: Callable[[Mapping[str, Any]], str] = lambda _: ""


class WorkerPlace(Protocol):
    """A place for workers besides this machine."""

    def check(self, address: str) -> None:
        """Checks an address without connecting.

        Raises:
            ConfigError: it is none.
        """

    async def join(self, address: str) -> None:
        """Connects this process, before a service binds its port; harmless when repeated.

        Raises:
            ConfigError: a package that the place needs is not installed.
            StartupError: nothing answers there.
        """

    def workers(self, placement: Placement) -> Workers:
        """The workers of a pool in this place."""


def installed_places() -> list[str]:
    """The values of `--pool` in this environment; nothing is imported."""
    return [LOCAL, *sorted(_entries())]


def find_place(name: str) -> WorkerPlace:
    """Loads the place of this name.

    Raises:
        ConfigError: no installed plug-in brings it, or the plug-in cannot be loaded. The text names
            the installed places, and the command that installs `ray`.
    """
    entry = _entries().get(name)
    if entry is None:
        raise ConfigError(_why_absent(name))
    try:
        place: WorkerPlace = entry.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"--pool {name}: {entry.value} cannot be loaded: {error}") from error
    return place


def check_pool(pool: str, address: str) -> None:
    """Checks --pool and --ray-address.

    Raises:
        ConfigError: the place is not installed, the address is none, or one contradicts the other.
    """
    if pool != LOCAL:
        find_place(pool).check(address)
    elif address != DEFAULT_ADDRESS:
        raise ConfigError("--ray-address needs --pool ray")


async def join(pool: str, address: str) -> None:
    """Connects this process to the place of its workers, unless that is this machine.

    Raises:
        ConfigError: the place is not installed, or a package that it needs.
        StartupError: nothing answers there.
    """
    if pool != LOCAL:
        await find_place(pool).join(address)


def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _why_absent(name: str) -> str:
    here = installed_places()
    text = f"--pool {name!r} is not installed here, where there is {', '.join(here)}"
    if "ray" in here:
        return text + did_you_mean(name, here)
    return f"{text}; ray comes with {RAY_PLUG_IN}; {HOW_TO_INSTALL_RAY}"
