"""Certificates for tests, made on the spot: good ones, a stranger's, one that has expired."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Party:
    """A certificate and its key."""

    cert_file: Path
    key_file: Path


@dataclass(frozen=True)
class Certificates:
    """One authority's server, expired server and client; and a client of another authority."""

    ca_file: Path
    server: Party
    expired: Party
    client: Party
    stranger: Party


def openssl(*arguments: str | Path) -> None:
    """Runs openssl."""
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def make_certificates(folder: Path) -> Certificates:
    """Makes them in a folder, for reward.test and 127.0.0.1."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: it makes the certificates of these tests")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    def authority(name: str) -> Party:
        cert, key = folder / f"{name}.pem", folder / f"{name}.key"
        openssl("req", "-x509", *curve, "-keyout", key, "-out", cert, "-days", "2",
                "-subj", f"/CN={name}")  # fmt: skip
        return Party(cert, key)

    def party(name: str, signer: Party, days: int = 2) -> Party:
        cert, key = folder / f"{name}.pem", folder / f"{name}.key"
        request, names = folder / f"{name}.csr", folder / f"{name}.ext"
        names.write_text("subjectAltName=DNS:reward.test,IP:127.0.0.1\n")
        openssl("req", *curve, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", request, "-CA", signer.cert_file, "-CAkey",
                signer.key_file, "-CAcreateserial", "-out", cert, "-days", str(days),
                "-extfile", names)  # fmt: skip
        return Party(cert, key)

    ca, other = authority("ca"), authority("other")
    return Certificates(
        ca.cert_file,
        party("server", ca),
        party("expired", ca, days=-1),
        party("client", ca),
        party("stranger", other),
    )
