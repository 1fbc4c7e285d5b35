"""Who may reach a service: the settings, and the rule that no port is open to a network.

A service reached from loopback alone needs no token. Any other needs one, or client certificates,
or the setting that its network is trusted; else it does not start.

It is reached at the address that it binds, unless a setting names another: inside a container it
binds every interface, and the container's engine publishes the port.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.quotas import Quotas
from assay.kit.tls import ServerTls
from assay.kit.tokens import Doorman, TokensFile

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may reach a service, and the limits of each tenant.

    Attributes:
        tokens_file: hashed tokens of tenants, see `assay.kit.tokens`; None for none.
        trusted_network: serve a network without a token or client certificates.
        published_on: the address that the port is reached at, where it is not the bound one.
        reflection: lets tools ask for the contract; None: only on loopback.
        tenant_items_per_s: items of a tenant each second; 0 for no limit.
        tenant_items_in_flight: unfinished items of a tenant; 0 for no limit.
        tenant_calls: running calls of a tenant; 0 for no limit.

    Raises:
        ConfigError: a limit is out of range.
    """

    tokens_file: Path | None = None
    trusted_network: bool = False
    published_on: str = ""
    reflection: bool | None = None
    tenant_items_per_s: float = 0.0
    tenant_items_in_flight: int = 0
    tenant_calls: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.tenant_items_per_s < math.inf:
            raise ConfigError("--tenant-items-per-s must be 0 (no limit) or more, and finite")
        if self.tenant_items_in_flight < 0:
            raise ConfigError("--tenant-items-in-flight must be 0 (no limit) or more")
        if self.tenant_calls < 0:
            raise ConfigError("--tenant-calls must be 0 (no limit) or more")

    def quotas(self) -> Quotas:
        """Fresh accounts under these limits."""
        return Quotas(self.tenant_items_per_s, self.tenant_items_in_flight)

    def is_public(self, host: str) -> bool:
        """Whether others than this machine's users reach a service bound there."""
        return not is_loopback(self.published_on or host)

    def reflects(self, host: str) -> bool:
        """Whether a service bound there answers reflection."""
        return not self.is_public(host) if self.reflection is None else self.reflection


def take_access(flags: dict[str, Any]) -> Access:
    """Takes the values of `assay.kit.flags.access_flags` out of a command's values.

    Raises:
        ConfigError: a limit is out of range.
    """
    return Access(**{field.name: flags.pop(field.name) for field in fields(Access)})


def doorman(access: Access, host: str, token: str | None, tls: ServerTls | None) -> Doorman:
    """The authenticator of a service.

    Raises:
        ConfigError: the tokens file is unusable, no caller could send the token, or the service
            would let a network in.
    """
    file = TokensFile(access.tokens_file) if access.tokens_file is not None else None
    asks = Doorman(token, file)
    check_door(access, host, asks, tls)
    tenants = {one.tenant for one in file.tokens} if file else set()
    if len(tenants) > 1 and not access.tenant_items_in_flight:
        _log.warning("one of %d tenants can fill the queue: set --tenant-items-in-flight",
                     len(tenants))  # fmt: skip
    return asks


def check_door(access: Access, host: str, asks: Doorman, tls: ServerTls | None) -> None:
    """Raises ConfigError where a port bound at `host` would let a network in."""
    if access.is_public(host) and not access.trusted_network:
        certified = tls is not None and tls.client_ca_file is not None
        if not asks.asks and not certified:
            raise ConfigError(
                f"{access.published_on or host} is not loopback, and callers would need no token: "
                "give --tokens-file, --token-file or --tls-client-ca, "
                "or --trusted-network where everybody in reach may call"
            )
        if tls is None:
            _log.warning("tokens and texts cross the network in plain text: give --tls-cert")


def certified_tenant(facts: Mapping[str, Iterable[bytes]]) -> str:
    """The tenant that a client's certificate names.

    Args:
        facts: gRPC's auth context of a call, with the values of each property.

    Returns:
        The common name, else the first alternative name, with "-" for characters that no tenant's
        name has, at most 64 characters; "" for a caller without a certificate.
    """
    for key in ("x509_common_name", "x509_subject_alternative_name"):
        for value in facts.get(key, ()):
            name = re.sub(r"[^A-Za-z0-9._-]", "-", value.decode(errors="replace")).lstrip("-._")
            if name:
                return name[:64]
    return ""


def is_loopback(host: str) -> bool:
    """Whether an address, or every address of a name, is of this machine's loopback."""
    bare = host.strip("[]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(bare, None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return False
    return bool(bare) and all(ipaddress.ip_address(one[4][0]).is_loopback for one in found)
