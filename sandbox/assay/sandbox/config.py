"""The settings of the sandbox, as frozen values. `__main__` makes them from flags."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

from assay.kit import limits
from assay.kit.access import Access
from assay.kit.errors import ConfigError
from assay.kit.http.config import HttpConfig
from assay.kit.pool import places
from assay.kit.process import usable_cores
from assay.sandbox.domain import MIB, PYTHON_PACKAGES, Limits

ENVIRONMENT_PREFIX = "ASSAY_SANDBOX"
DEFAULT_PORT = 50052
BACKENDS = ("jail", "docker", "runsc")
FLOORS = ("namespaces", "uid", "confined")  # strongest first
MAX_JOB_BYTES = 32 * MIB


@dataclass(frozen=True, slots=True)
class RunnerConfig:
    """How programs are run.

    Attributes:
        slots: programs that run at the same time; 0 for one per core, with Ray for one per CPU of
            the cluster.
        pool: where they run: "local", supervisors of this machine, or "ray", placed by Ray.
        ray_address: of the Ray cluster, HOST:PORT; "auto" for that of this machine's node.
        languages: which languages to serve, by name; empty for all that are installed.
        python_packages: distributions beside the service that Python programs may import in the
            jail, with what these require.
        backend: what isolates: "jail" (the kernel's own walls), "docker" or "runsc" (a container
            for each run).
        image: the container image, for the Docker backends; empty for their default.
        isolation_floor: the weakest level of the jail at which to serve.
        queue_items: jobs that may wait for a slot.
        queue_mb: MiB that the waiting jobs may hold; at least one message.
        cache_dir: folder of compiled programs; None for one of the service's own, in TMPDIR.
        cache_mb: MiB that it may hold; 0 for no cache.
        max_cpu_s: the most CPU time that a job may ask for, in seconds.
        max_wall_s: the most time on the clock.
        max_memory_mb: the most memory, in MiB.
        max_output_mb: the most bytes kept of a stream, in MiB.
        max_written_mb: the most bytes written to a stream, in MiB.
        max_disk_mb: the most bytes on disk, in MiB.
        max_processes: the most processes and threads.
        max_compile_s: the most time on the clock for a compilation, in seconds.

    Raises:
        ConfigError: a value is out of range.
    """

    slots: int = 0
    pool: str = places.LOCAL
    ray_address: str = places.DEFAULT_ADDRESS
    languages: tuple[str, ...] = ()
    python_packages: tuple[str, ...] = PYTHON_PACKAGES
    backend: str = "jail"
    image: str = ""
    isolation_floor: str = "namespaces"
    queue_items: int = 8192
    queue_mb: int = 512
    cache_dir: Path | None = None
    cache_mb: int = 1024
    max_cpu_s: float = 300.0
    max_wall_s: float = 300.0
    max_memory_mb: int = 4096
    max_output_mb: int = 16
    max_written_mb: int = 1024
    max_disk_mb: int = 1024
    max_processes: int = 512
    max_compile_s: float = 120.0

    def __post_init__(self) -> None:
        places.check_pool(self.pool, self.ray_address)
        self._require("slots", self.slots >= 0, "must be 0 or more")
        self._require("queue-items", self.queue_items >= 1, "must be 1 or more")
        least_mb = limits.MAX_MESSAGE_BYTES // MIB
        self._require("queue-mb", self.queue_mb >= least_mb, f"must be {least_mb} or more")
        self._require("cache-mb", self.cache_mb >= 0, "must be 0 or more")
        known = self.backend in BACKENDS
        self._require("backend", known, f"must be one of {', '.join(BACKENDS)}")
        known = self.isolation_floor in FLOORS
        self._require("isolation-floor", known, f"must be one of {', '.join(FLOORS)}")
        for name in ("cpu", "wall", "compile"):
            value_s = getattr(self, f"max_{name}_s")
            fine = 0 < value_s < math.inf
            self._require(f"max-{name}-s", fine, "must be above 0 and finite (seconds)")
        for name in ("memory_mb", "output_mb", "written_mb", "disk_mb", "processes"):
            flag = f"max-{name.replace('_', '-')}"
            self._require(flag, getattr(self, f"max_{name}") >= 1, "must be 1 or more")
        # One result must fit into one message, both streams and all.
        most_mb = limits.MAX_MESSAGE_BYTES // MIB // 4
        self._require("max-output-mb", self.max_output_mb <= most_mb, f"must be at most {most_mb}")

    @staticmethod
    def _require(flag: str, holds: bool, trouble: str) -> None:
        if not holds:
            raise ConfigError(f"--{flag} {trouble}")

    def to_json(self) -> str:
        """As text, for another machine."""
        return json.dumps(dataclasses.asdict(self), default=str)

    @staticmethod
    def from_json(text: str) -> RunnerConfig:
        """Reads what `to_json` wrote."""
        data = json.loads(text)
        folder = data["cache_dir"]
        return RunnerConfig(
            **{
                **data,
                "languages": tuple(data["languages"]),
                "python_packages": tuple(data["python_packages"]),
                "cache_dir": None if folder is None else Path(folder),
            }
        )

    @property
    def slot_count(self) -> int:
        """Slots, the cores counted; 0 for as many as a cluster has room for."""
        if self.slots or self.pool != places.LOCAL:
            return self.slots
        return usable_cores()

    @property
    def max_batch_items(self) -> int:
        """Most jobs of one request: what the queue can take at once."""
        return min(limits.MAX_BATCH_ITEMS, self.queue_items)

    @property
    def max_limits(self) -> Limits:
        """The greatest limits that a job may ask for."""
        return Limits(
            cpu_s=self.max_cpu_s,
            wall_s=self.max_wall_s,
            memory_bytes=self.max_memory_mb * MIB,
            output_bytes=self.max_output_mb * MIB,
            max_output_bytes=self.max_written_mb * MIB,
            disk_bytes=self.max_disk_mb * MIB,
            processes=self.max_processes,
            compile_wall_s=self.max_compile_s,
        )


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How the server is reached.

    Attributes:
        runner: how programs are run.
        host: address to bind; loopback unless told otherwise.
        port: 0 for any free one.
        port_file: the port is written here when the server is ready.
        tls_cert: certificate chain, PEM; None for no TLS.
        tls_key: its private key, PEM.
        tls_client_ca: clients must show a certificate of this authority; None if they need none.
        token: bearer token that clients must send; None for none. Never printed.
        access: further tokens, and what each tenant may ask for.
        drain_s: how long running calls may take to end after SIGTERM.
        metrics_port: where metrics are read over HTTP, 0 for any free one; None: nowhere.
        metrics_host: address to bind for them.
        http: HTTP/JSON beside gRPC.
    """

    runner: RunnerConfig
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
    http: HttpConfig = field(default_factory=HttpConfig)
