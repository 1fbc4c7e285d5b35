"""One channel to each replica: a session lives in one, so its calls may not go by turns."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import time
from collections.abc import Callable

from assay.clients.core.channel import GrpcTransport, Transport
from assay.kit.errors import ConfigError, refuse
from assay.kit.reasons import Reason
from assay.kit.targets import read_target
from assay.kit.tls import ClientTls

_ASK_NAME_AGAIN_S = 10.0


class Replicas:
    """The replicas behind a target: one server or proxy, a list, or a name with its addresses.

    Args:
        target: as `assay.kit.targets` reads it.
        open_one: opens the channel to an address.
    """

    def __init__(self, target: str, open_one: Callable[[str], Transport]) -> None:
        self._name = _name_of(target)
        self._listed = [] if self._name else [one.strip() for one in target.split(",")]
        self._open_one = open_one
        self._open: dict[str, Transport] = {}
        self._turn = 0
        self._asked_s = float("-inf")

    @property
    def several(self) -> bool:
        """Whether there may be more than one."""
        return bool(self._name) or len(self._listed) > 1

    def transport(self, address: str) -> Transport:
        """The channel to an address; from any thread."""
        found = self._open.get(address)
        return self._open.setdefault(address, self._open_one(address)) if found is None else found

    async def addresses(self) -> list[str]:
        """All of them, each time another one first.

        Raises:
            UnavailableError: the name has no address.
        """
        if self._name and time.monotonic() - self._asked_s > _ASK_NAME_AGAIN_S:
            self._listed = await _look_up(self._name)
            self._asked_s = time.monotonic()
        first = self._turn % len(self._listed)
        self._turn += 1
        return self._listed[first:] + self._listed[:first]

    async def close(self) -> None:
        """Closes every channel."""
        for transport in list(self._open.values()):
            await transport.close()


def grpc_opener(
    target: str, tls: ClientTls | None, token: str | None
) -> Callable[[str], Transport]:
    """How the addresses of a target are reached: by TLS, under the name of the target."""
    if target:
        read_target(target)
    name = _name_of(target).rpartition(":")[0]
    if tls is not None and tls.server_name is None:
        if "," in target:
            raise ConfigError(
                f"TLS to the list {target!r} needs the name that all their certificates hold: "
                "set server_name, or write dns:///NAME:PORT"
            )
        if name:
            tls = dataclasses.replace(tls, server_name=name)
    return lambda address: GrpcTransport(address, tls=tls, token=token)


def _name_of(target: str) -> str:
    """NAME:PORT of dns:///NAME:PORT; else empty."""
    return target.removeprefix("dns:").rpartition("/")[2] if target.startswith("dns:") else ""


async def _look_up(name: str) -> list[str]:
    host, _, port = name.rpartition(":")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM
        )
    except OSError as error:
        raise refuse(Reason.UNREACHABLE, f"the name {host} has no address: {error}") from error
    hosts = dict.fromkeys(str(entry[4][0]) for entry in found)
    return [f"[{one}]:{port}" if ":" in one else f"{one}:{port}" for one in sorted(hosts)]
