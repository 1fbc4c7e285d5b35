"""The settings of the reward server, as frozen values. `__main__` makes them from flags."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from assay.kit import limits
from assay.kit.access import Access
from assay.kit.errors import ConfigError
from assay.kit.http.config import HttpConfig
from assay.kit.labels import is_name
from assay.kit.pool import places
from assay.kit.process import usable_cores

ENVIRONMENT_PREFIX = "ASSAY_REWARD"
DEFAULT_PORT = 50051
MIN_JOURNAL_MB = 8
MAX_JOURNAL_MB = 2**20


@dataclass(frozen=True, slots=True)
class ScorerConfig:
    """How items are scored.

    Attributes:
        workers: processes that judge at the same time; 0 for one per core, with Ray for one per CPU
            of the cluster.
        pool: "local", processes of this machine, or "ray", placed by Ray.
        ray_address: HOST:PORT of the Ray cluster; "auto" for that of this machine's node.
        queue_items: items that may wait for a worker.
        queue_mb: MiB that the waiting items may hold; at least one message.
        item_timeout_s: time-out of an item that states none.
        max_item_timeout_s: the longest time-out that an item may state.
        worker_memory_mb: address space of one worker, in MiB; 0 for no limit.
        worker_items: a worker is replaced after so many items.
        worker_growth_mb: a worker is replaced when its resident memory has grown by so many MiB.
        cache_entries: judgements that are remembered; 0 for none.
        preload: names of lazy verifiers to load and test at the start; "all" for all of them.
        metric_labels: names of the callers' labels that metrics count items by.

    Raises:
        ConfigError: a value is out of range.
    """

    workers: int = 0
    pool: str = places.LOCAL
    ray_address: str = places.DEFAULT_ADDRESS
    queue_items: int = 8192
    queue_mb: int = 512
    item_timeout_s: float = limits.DEFAULT_ITEM_TIMEOUT_S
    max_item_timeout_s: float = limits.MAX_ITEM_TIMEOUT_S
    worker_memory_mb: int = 2048
    worker_items: int = 5000
    worker_growth_mb: int = 512
    cache_entries: int = 65_536
    preload: tuple[str, ...] = ()
    metric_labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        places.check_pool(self.pool, self.ray_address)
        self._require("workers", self.workers >= 0, "must be 0 or more")
        self._require("queue-items", self.queue_items >= 1, "must be 1 or more")
        least_mb = limits.MAX_MESSAGE_BYTES // 2**20
        self._require("queue-mb", self.queue_mb >= least_mb, f"must be {least_mb} or more")
        longest_s = self.max_item_timeout_s
        self._require(
            "max-item-timeout-s", 0 < longest_s < math.inf, "must be above 0 and finite (seconds)"
        )
        self._require(
            "item-timeout-s",
            0 < self.item_timeout_s <= longest_s,
            f"must be above 0 and at most {longest_s:g} (seconds)",
        )
        self._require(
            "worker-memory-mb",
            self.worker_memory_mb == 0 or self.worker_memory_mb >= 256,
            "must be 0 (no limit) or 256 or more",
        )
        self._require("worker-items", self.worker_items >= 1, "must be 1 or more")
        self._require("worker-growth-mb", self.worker_growth_mb >= 1, "must be 1 or more")
        self._require("cache-entries", self.cache_entries >= 0, "must be 0 or more")
        for name in self.metric_labels:
            self._require("metric-labels", is_name(name), f"has {name[:80]!r}, no label's name")

    @staticmethod
    def _require(flag: str, holds: bool, trouble: str) -> None:
        if not holds:
            raise ConfigError(f"--{flag} {trouble}")

    @property
    def worker_count(self) -> int:
        """The number of workers; 0 for as many as a cluster has room for."""
        if self.workers or self.pool != places.LOCAL:
            return self.workers
        return usable_cores()

    @property
    def parcels(self) -> int:
        """Workers that take part in the quick work of large batches, beside this process."""
        return min(self.worker_count, usable_cores() - 1) if self.pool == places.LOCAL else 0

    @property
    def max_batch_items(self) -> int:
        """Most items of one request: what the queue can take at once."""
        return min(limits.MAX_BATCH_ITEMS, self.queue_items)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How the server is reached. Tokens are never printed.

    Attributes:
        host: address to bind; loopback by default.
        port: 0 for any free one.
        port_file: the port is written here when the server is ready.
        tls_cert: certificate chain, PEM; None for no TLS.
        tls_key: its private key, PEM.
        tls_client_ca: clients must show a certificate of this authority; None if they need none.
        token: bearer token that clients must send; None for none.
        access: further tokens, and what each tenant may ask for.
        drain_s: how long running calls may take to end after SIGTERM.
        metrics_port: serves metrics over HTTP, 0 on any free one; None: nowhere.
        metrics_host: address to bind for them.
        sandbox_target: address of the sandbox; empty: `code` is not served.
        sandbox_tls_ca: authority of the sandbox's certificate, PEM; None for no TLS.
        sandbox_token: bearer token for the sandbox; None for none.
        genrm_target: address of the genrm service; empty: judges that are models are not served.
        genrm_tls_ca: authority of its certificate, PEM; None for no TLS.
        genrm_token: bearer token for genrm; None for none.
        client_cert: our certificate chain, for services that ask for one, PEM; None for none.
        client_key: its private key, PEM.
        profiles: files of profiles, besides the shipped ones.
        appeal_key: secret by which items are drawn for appeals; None: another at each start.
        reliability: files of measured rates, besides the shipped one.
        verifier: functions in files, each "[NAME=]FILE.py:FUNCTION".
        reload: the server starts anew when one of these files changes.
        journal: file that every judgement and fault is written to; None for none.
        journal_max_mb: most MiB of that file and its log.
        http: HTTP/JSON beside gRPC.
        http_verifier: judges where an HTTP call names neither a verifier nor a task.
        http_mask_faults: NeMo Gym's /verify answers a fault with a masked row, and not an error.

    Raises:
        ConfigError: a value is out of range.
    """

    scorer: ScorerConfig
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    port_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    token: str | None = field(default=None, repr=False)
    access: Access = field(default_factory=Access)
    drain_s: float = 10.0
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    sandbox_target: str = ""
    sandbox_tls_ca: Path | None = None
    sandbox_token: str | None = field(default=None, repr=False)
    genrm_target: str = ""
    genrm_tls_ca: Path | None = None
    genrm_token: str | None = field(default=None, repr=False)
    client_cert: Path | None = None
    client_key: Path | None = None
    profiles: tuple[Path, ...] = ()
    appeal_key: str | None = field(default=None, repr=False)
    reliability: tuple[Path, ...] = ()
    verifier: tuple[str, ...] = ()
    reload: bool = False
    journal: Path | None = None
    journal_max_mb: int = 1024
    http: HttpConfig = field(default_factory=HttpConfig)
    http_verifier: str = ""
    http_mask_faults: bool = False

    def __post_init__(self) -> None:
        if self.reload and not self.verifier:
            raise ConfigError("--reload is for the files of --verifier; name one, or leave it out")
        if not MIN_JOURNAL_MB <= self.journal_max_mb <= MAX_JOURNAL_MB:
            raise ConfigError(
                f"--journal-max-mb must be {MIN_JOURNAL_MB} to {MAX_JOURNAL_MB} (MiB)"
            )
