"""TLS and mutual TLS from PEM files, which a server reads again when they change.

Files are read and checked when the credentials are made. A missing, unreadable or unusable file,
and a key that does not belong to its certificate, are a ConfigError that names the file. The
handshake finds certificates that expired, or that the other side does not trust.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import os
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from assay.kit.errors import ConfigError
from assay.kit.watching import FileWatch, Reloadable

_SETTLED_S = 0.1
"""How long the first handshake after a change waits, and those behind it: gRPC frees the old
certificates while a handshake that began before may still read them (its issue 36693, a crash), and
the others wait for what it fetches."""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """A server's certificate, and the clients that it lets in.

    Attributes:
        cert_file: PEM certificate chain of the server.
        key_file: PEM private key of that certificate, without a password.
        client_ca_file: PEM authorities; when given, clients need a certificate of theirs (mutual
            TLS).
    """

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them."""
        return tuple(one for one in (self.cert_file, self.key_file, self.client_ca_file) if one)

    def read(self) -> ServerPems:
        """Reads and checks the files.

        Raises:
            ConfigError: a file is missing or unusable.
        """
        chain, key = _read_pair(self.cert_file, self.key_file, "TLS certificate", "TLS key")
        client_ca = _read_authorities(self.client_ca_file, "client CA")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with _named(chain, self.cert_file) as cert_file, _named(key, self.key_file) as key_file:
            context.load_cert_chain(cert_file, key_file)
        if client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=client_ca.decode())
        return ServerPems(chain, key, client_ca, context)


@dataclass(frozen=True, slots=True)
class ServerPems:
    """What a server's files hold, checked; for gRPC, and as a context of `ssl`."""

    chain: bytes
    key: bytes
    client_ca: bytes | None
    context: ssl.SSLContext

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """For gRPC."""
        return grpc.ssl_server_certificate_configuration(
            [(self.key, self.chain)], root_certificates=self.client_ca
        )


class LiveTls:
    """A server's TLS: a handshake is made with what was put in force last.

    Connections that stand go on with what they began with. Each change has a context of its own,
    so that no session is resumed across it: a client whose authority is gone shows a certificate.

    Attributes:
        changed: called after each change.

    Raises:
        ConfigError: a file is missing or unusable.
    """

    def __init__(self, files: ServerTls) -> None:
        self.files = files
        self.changed: list[Callable[[], None]] = []
        self._watch = FileWatch(files.files)
        self._pems = files.read()
        # One place, which gRPC's threads empty: what is put in last is what they find.
        self._fresh: collections.deque[ServerPems] = collections.deque(maxlen=1)

    def reloadable(self) -> Reloadable:
        """The files, for the server that reads them again."""
        return Reloadable("certificates", self._watch, self.files.read, self.take)

    async def take(self, pems: ServerPems) -> str:
        """Puts it in force for the next handshakes."""
        self._pems = pems
        self._fresh.append(pems)
        for call in self.changed:
            call()
        return f"{self.files.cert_file}, sha256 {hashlib.sha256(pems.chain).hexdigest()[:12]}"

    def credentials(self) -> grpc.ServerCredentials:
        """For gRPC, which asks at each handshake whether there is something new."""

        def fetch() -> grpc.ServerCertificateConfiguration | None:
            try:
                configuration = self._fresh.pop().configuration()
            except IndexError:
                return None
            time.sleep(_SETTLED_S)  # those that began are past the old one, those that come wait
            return configuration

        return grpc.dynamic_ssl_server_credentials(
            self._pems.configuration(),
            fetch,  # type: ignore[arg-type]  # None is "nothing new", which the stubs do not know
            self.files.client_ca_file is not None,
        )

    def context(self) -> ssl.SSLContext:
        """For asyncio, which asks it to wrap each connection."""
        live = _LiveContext(ssl.PROTOCOL_TLS_SERVER)
        live.current = lambda: self._pems.context
        return live


class _LiveContext(ssl.SSLContext):
    current: Callable[[], ssl.SSLContext]

    def wrap_bio(self, *arguments: Any, **settings: Any) -> ssl.SSLObject:
        """Wraps by the context in force."""
        return self.current().wrap_bio(*arguments, **settings)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The authorities that a client trusts, and its own certificate.

    Attributes:
        ca_file: PEM authorities to trust; None trusts those that gRPC ships.
        cert_file: PEM certificate chain of the client, for mutual TLS; goes with key_file.
        key_file: PEM private key of that certificate, without a password.
        server_name: expected in the server's certificate, where it is not the host of the address.
    """

    ca_file: Path | str | None = None
    cert_file: Path | str | None = None
    key_file: Path | str | None = None
    server_name: str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Reads and checks the files.

        Raises:
            ConfigError: a file is missing or unusable, or one of cert_file and key_file is missing.
        """
        chain: tuple[bytes, bytes] | tuple[None, None] = (None, None)
        if self.cert_file is not None and self.key_file is not None:
            chain = _read_pair(
                self.cert_file, self.key_file, "client TLS certificate", "client TLS key"
            )
        elif self.cert_file is not None or self.key_file is not None:
            given = self.cert_file or self.key_file
            raise ConfigError(
                f"client TLS needs a certificate and its key, got only {given}: give both, or none"
            )
        return grpc.ssl_channel_credentials(
            root_certificates=_read_authorities(self.ca_file, "TLS CA"),
            private_key=chain[1],
            certificate_chain=chain[0],
        )


def _read(path: Path | str, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"{what} file {path} cannot be read: {reason}") from error


def _read_pair(
    cert_file: Path | str, key_file: Path | str, cert_what: str, key_what: str
) -> tuple[bytes, bytes]:
    chain, key = _read(cert_file, cert_what), _read(key_file, key_what)
    if b"-----BEGIN CERTIFICATE-----" not in chain:
        raise ConfigError(f"{cert_what} file {cert_file} holds no PEM certificate")
    if b"PRIVATE KEY-----" not in key:
        raise ConfigError(f"{key_what} file {key_file} holds no PEM private key")
    try:
        with _named(chain, cert_file) as cert_name, _named(key, key_file) as key_name:
            # The empty password keeps OpenSSL from asking for one at the terminal.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert_name, key_name, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(
            f"{cert_what} file {cert_file} and {key_what} file {key_file} cannot be used together: "
            f"they must be a valid PEM pair, the key without a password ({_in_short(error)})"
        ) from error
    return chain, key


@contextlib.contextmanager
def _named(text: bytes, file: Path | str) -> Iterator[str]:
    """A name under which `ssl` finds what was read, though the file may have changed since.

    Where the system has no memory files, it is the file's own.
    """
    try:
        descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        yield str(file)
        return
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as memory:
            memory.write(text)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _read_authorities(path: Path | str | None, what: str) -> bytes | None:
    if path is None:
        return None
    authorities = _read(path, what)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=authorities.decode())
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"{what} file {path} holds no usable PEM certificates ({_in_short(error)})"
        ) from error
    return authorities


def _in_short(error: Exception) -> str:
    return getattr(error, "reason", None) or type(error).__name__
