"""The address of a server, and gRPC's options for it. Pure.

    HOST:PORT, [IPV6]:PORT, unix:PATH   one server
    dns:///NAME:PORT                    every address that the name has, by turns
    IP:PORT,IP:PORT                     those replicas, by turns

By turns: each call goes to the next replica that is connected and serves, by grpc.health.v1 Watch.
A stream stays where it was opened.
"""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass

from assay.kit.errors import ConfigError

_ONE_SERVER = ("unix:", "unix-abstract:", "xds:")
_BALANCED: list[tuple[str, int | str]] = [
    (
        "grpc.service_config",
        json.dumps(
            {
                "loadBalancingConfig": [{"round_robin": {}}],
                "healthCheckConfig": {"serviceName": ""},
            }
        ),
    ),
    # A replica that comes back is used again within a second or so, and a name is asked again
    # soon after a replica is gone (gRPC would wait for half a minute).
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.dns_min_time_between_resolutions_ms", 2_000),
]


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed address.

    Attributes:
        several: a list of replicas, whose certificates share no name that stands in it.
        options: channel options to append to the general ones.
    """

    uri: str
    several: bool = False
    loopback: bool = False
    options: tuple[tuple[str, int | str], ...] = ()


def read_target(text: str) -> Target:
    """Parses the address of a server.

    Raises:
        ConfigError: a port is missing, or a list holds something else than IP addresses of one
            family, or one twice.
    """
    if text.startswith(_ONE_SERVER):
        return Target(text, loopback=not text.startswith("xds:"))
    if "," in text:
        return _list(text)
    _check_port(text)
    options = tuple(_BALANCED) if text.startswith("dns:") else ()
    return Target(text, loopback=_is_loopback(text), options=options)


def _list(text: str) -> Target:
    scheme, _, listed = text.rpartition("://") if "://" in text else ("", "", text)
    if scheme:
        raise ConfigError(
            f"the list {text!r} begins with a scheme; write IP:PORT,IP:PORT, "
            "or one name that stands for all: dns:///NAME:PORT"
        )
    addresses = [address.strip() for address in listed.split(",")]
    families = set()
    for address in addresses:
        _check_port(address)
        try:
            families.add(ipaddress.ip_address(_host(address)).version)
        except ValueError:
            raise ConfigError(
                f"{address!r} in a list of replicas is not IP:PORT; write IP addresses, "
                "or one name that stands for all: dns:///NAME:PORT"
            ) from None
    if len(families) > 1:
        raise ConfigError(f"the list {text!r} mixes IPv4 and IPv6; write one of them")
    if len(set(addresses)) < len(addresses):
        raise ConfigError(f"the list {text!r} holds an address twice; write each once")
    return Target(
        f"ipv{families.pop()}:{','.join(addresses)}",
        several=True,
        loopback=all(map(_is_loopback, addresses)),
        options=tuple(_BALANCED),
    )


def _check_port(text: str) -> None:
    if text.startswith(("http://", "https://", "grpc://", "grpcs://")):
        raise ConfigError(
            f"the address {text!r} is a URL; write HOST:PORT of the gRPC port, as in "
            "127.0.0.1:50051"
        )
    port = text.rpartition(":")[2]
    if not port.isdigit() or not 0 < int(port) < 65536 or text.startswith(":"):
        raise ConfigError(f"the address {text!r} is not HOST:PORT, as in 127.0.0.1:50051")


def _host(text: str) -> str:
    return text.rpartition("/")[2].rpartition(":")[0].strip("[]")


def _is_loopback(text: str) -> bool:
    host = _host(text)
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
