"""TLS and mutual TLS from PEM files.

Files are read and checked when the credentials are made. A missing, unreadable or unusable file,
and a key that does not belong to its certificate, are a ConfigError that names the file. The
handshake finds certificates that expired, or that the other side does not trust.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from assay.kit.errors import ConfigError


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

    def credentials(self) -> grpc.ServerCredentials:
        """Reads and checks the files.

        Raises:
            ConfigError: a file is missing or unusable.
        """
        chain = _read_pair(self.cert_file, self.key_file, "TLS certificate", "TLS key")
        client_ca = _read_authorities(self.client_ca_file, "client CA")
        return grpc.ssl_server_credentials(
            [(chain[1], chain[0])],
            root_certificates=client_ca,
            require_client_auth=client_ca is not None,
        )


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
        # The empty password keeps OpenSSL from asking for one at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert_file, key_file, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(
            f"{cert_what} file {cert_file} and {key_what} file {key_file} cannot be used together: "
            f"they must be a valid PEM pair, the key without a password ({_in_short(error)})"
        ) from error
    return chain, key


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
