"""Reads the certificate of a TLS port, without trusting it.

Covered: any host and port that speaks TLS, also with a certificate that has expired or is not ours.
Not covered: whether the certificate is trusted; a server that asks for client certificates before
it sends its own (TLS 1.3 servers send theirs first).
"""

from __future__ import annotations

import socket
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Not in the documentation, though in every CPython since 2.6; a dependency would do the same.
_decode_file: Callable[[str], dict[str, Any]] = vars(ssl)["_ssl"]._test_decode_cert  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class Certificate:
    """The names and addresses of a certificate, and its end in UTC."""

    names: tuple[str, ...]
    ends: datetime


def read_certificate(target: str, timeout_s: float) -> Certificate | None:
    """The certificate at "HOST:PORT"; None where nothing answers or speaks TLS."""
    host, _, port = target.rpartition("/")[2].rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # it is looked at, and nothing is sent
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), timeout_s) as connection,
            context.wrap_socket(connection, server_hostname=host.strip("[]")) as tls,
        ):
            shown = tls.getpeercert(binary_form=True)
    except (OSError, ValueError):
        return None
    return None if shown is None else _decoded(shown)


def _decoded(der: bytes) -> Certificate | None:
    """The standard library decodes certificates from files only."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / "certificate.pem"
        path.write_text(ssl.DER_cert_to_PEM_cert(der), encoding="ascii")
        try:
            facts = _decode_file(str(path))
        except (ssl.SSLError, OSError):
            return None
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(facts["notAfter"]), UTC)
    return Certificate(tuple(name for _, name in facts.get("subjectAltName", ())), ends)
