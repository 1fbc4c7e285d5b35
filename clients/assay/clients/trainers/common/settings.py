"""A trainer's options and the environment as a client, one for each process.

Trainers load a reward function by path and name, in processes of their own. So an adapter is a
function at the top of its module; settings that the trainer does not pass come from the
environment:

    target     ASSAY_TARGET      the reward server, "host:port", or its replicas
    token      ASSAY_TOKEN       the bearer token, if the server asks for one
    tls_ca     ASSAY_TLS_CA      encrypt, and trust this authority (a PEM file)
    verifier   ASSAY_VERIFIER    the verifier of every row
    task       ASSAY_TASK        or its task, by which the server chooses
    labels     ASSAY_LABELS      labels of every item, "run=dapo-3,model=qwen-1.5b"
    reference  ASSAY_REFERENCE   what labels hold: "text", "json" or "tests" (`rows.label_of`)
    timeout_s  ASSAY_TIMEOUT_S   the whole time that scoring may take, retries included; 60
    on_fault   ASSAY_ON_FAULT    "drop", "raise" or "mask"; see `faults` beside this
    max_fault_ratio  ASSAY_MAX_FAULT_RATIO  ends the run past it; 0.5 (`fault_ratio` beside this)

ASSAY_CLIENT_CERT and ASSAY_CLIENT_KEY name our own certificate, for servers that ask for one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from assay.clients.reward import RewardClient
from assay.clients.trainers.common.fault_ratio import MAX_FAULT_RATIO, read_ratio
from assay.kit.errors import ConfigError
from assay.kit.labels import read_labels
from assay.kit.tls import ClientTls

_FILES = {"client_cert": "ASSAY_CLIENT_CERT", "client_key": "ASSAY_CLIENT_KEY"}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of an adapter, as in the module's table. Empty texts stand for "not set"."""

    target: str = ""
    token: str = field(default="", repr=False)
    tls_ca: str = ""
    client_cert: str = ""
    client_key: str = ""
    verifier: str = ""
    task: str = ""
    labels: str = ""
    reference: str = "text"
    timeout_s: float = 60.0
    on_fault: str = ""
    max_fault_ratio: float = MAX_FAULT_RATIO


NAMES = tuple(entry.name for entry in fields(Settings))


def read_settings(
    options: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """The settings of an adapter: the trainer's options over the environment.

    Options of other names are ignored. `environ` is by default that of this process.

    Raises:
        ConfigError: No target is given, the time-out is no positive number, or max_fault_ratio is
            none from 0 to 1.
    """
    around = os.environ if environ is None else environ
    found: dict[str, Any] = {}
    for name in NAMES:
        value = (options or {}).get(name)
        if value is None:
            value = around.get(_FILES.get(name, f"ASSAY_{name.upper()}"))
        if value not in (None, ""):
            found[name] = str(value)
    if "target" not in found:
        raise ConfigError(
            "no address of a reward server; set target or ASSAY_TARGET, such as 127.0.0.1:50051"
        )
    if "timeout_s" in found:
        found["timeout_s"] = _seconds(found["timeout_s"])
    if "max_fault_ratio" in found:
        found["max_fault_ratio"] = read_ratio(found["max_fault_ratio"])
    return Settings(**found)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ConfigError(f"timeout_s is {text!r}; pass a positive number of seconds")
    return seconds


_clients: dict[Settings, RewardClient] = {}


def client_of(settings: Settings) -> RewardClient:
    """The client of this process for these settings, shared by threads and event loops.

    A forked child connects anew.

    Raises:
        ConfigError: A certificate, its key and the authority are not all named, or the labels are
            none.
    """
    client = _clients.get(settings)
    if client is None:
        client = _clients.setdefault(settings, _make_client(settings))
    return client


def close_clients() -> None:
    """Closes the clients of this process, as its exit does; the next call makes new ones."""
    while _clients:
        _clients.popitem()[1].close()


def _make_client(settings: Settings) -> RewardClient:
    if (settings.client_cert or settings.client_key) and not settings.tls_ca:
        raise ConfigError("a client certificate goes with tls_ca (ASSAY_TLS_CA); name it too")
    tls = None
    if settings.tls_ca:
        tls = ClientTls(
            Path(settings.tls_ca), _path(settings.client_cert), _path(settings.client_key)
        )
    pairs = settings.labels.split(",") if settings.labels else ()
    return RewardClient(
        settings.target,
        tls=tls,
        token=settings.token or None,
        timeout_s=settings.timeout_s,
        labels=read_labels(pairs, "labels (ASSAY_LABELS):"),
    )


def _path(text: str) -> Path | None:
    return Path(text) if text else None
