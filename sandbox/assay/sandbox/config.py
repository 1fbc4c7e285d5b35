"""The sandbox's settings, as frozen values. `__main__` makes them from flags."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from assay.kit import limits
from assay.kit.access import Access
from assay.kit.errors import ConfigError
from assay.kit.http.config import HttpConfig
from assay.kit.pool import places
from assay.kit.process import usable_cores
from assay.sandbox.domain import MIB, PYTHON_PACKAGES, RunLimits

ENVIRONMENT_PREFIX = "ASSAY_SANDBOX"
DEFAULT_PORT = 50052
FLOORS = ("namespaces", "uid", "confined")  # strongest first
MAX_JOB_BYTES = 32 * MIB
_LONGEST_S = 1e8
_REPLICA_NAME = re.compile(r"[A-Za-z0-9._:-]{1,80}")


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """How programs are run. "mb" are MiB.

    Attributes:
        slots: concurrent programs; 0 for one per core, with Ray one per CPU of the cluster.
        pool: "local", supervisors of this machine, or "ray", placed by Ray.
        ray_address: of the Ray cluster, HOST:PORT; "auto" for that of this machine's node.
        languages: to serve, by name; empty for all that are installed.
        python_packages: distributions beside the service that Python programs may import in the
            jail,
            with their requirements.
        backend: "jail", or the name of a plug-in (`assay.sandbox.backends`).
        image: the container image; empty for the back end's default.
        isolation_floor: the weakest level of the jail at which to serve.
        queue_items: jobs that may wait for a slot.
        queue_mb: size of the waiting jobs; at least one message.
        cache_dir: folder of compiled programs; None for the user's cache folder.
        cache_mb: its size; 0 for no cache.
        max_cpu_s, max_wall_s, max_memory_mb, max_disk_mb, max_processes, max_compile_s: the
            greatest
            limits that a job may ask for.
        max_output_mb: the most kept of a stream.
        max_written_mb: the most written to a stream.

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
    def _require(flag: str, holds: bool, problem: str) -> None:
        if not holds:
            raise ConfigError(f"--{flag} {problem}")

    def to_json(self) -> str:
        """As text, for another machine."""
        return json.dumps(dataclasses.asdict(self), default=str)

    @staticmethod
    def from_json(text: str) -> SandboxConfig:
        """Reads what `to_json` wrote."""
        data = json.loads(text)
        folder = data["cache_dir"]
        return SandboxConfig(
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
        """Most jobs of one request: at most what the queue holds."""
        return min(limits.MAX_BATCH_ITEMS, self.queue_items)

    @property
    def max_limits(self) -> RunLimits:
        """The greatest limits that a job may ask for."""
        return RunLimits(
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
class SessionsConfig:
    """How sessions are kept. The greatest limits of a cell are those of programs.

    Attributes:
        sessions: serve them.
        max_sessions: open at once, forks included; 0 for one for each 16 MiB of half the memory,
            as far as descriptors go.
        sessions_per_tenant: of these, one tenant's; 0 for no limit.
        session_cells: that compute at once; 0 for four per core.
        session_spares: that wait ready to be taken.
        session_lease_s: where a caller states none.
        session_max_lease_s: the longest.
        session_cpu_s: CPU time over a session's life, where a caller states none.
        session_max_cpu_s: the most of it.
        session_memory_mb: of a session, where a caller states none.
        session_checkpoints: the most that a session may hold.
        session_drain_s: how long open sessions may go on after SIGTERM, before the drain.
        replica_name: by which clients come back to this server; empty for the host's name and the
            port.

    Raises:
        ConfigError: a value is out of range.
    """

    sessions: bool = True
    max_sessions: int = 0
    sessions_per_tenant: int = 0
    session_cells: int = 0
    session_spares: int = 2
    session_lease_s: float = 600.0
    session_max_lease_s: float = 86400.0
    session_cpu_s: float = 600.0
    session_max_cpu_s: float = 86400.0
    session_memory_mb: int = 1024
    session_checkpoints: int = 16
    session_drain_s: float = 0.0
    replica_name: str = ""

    def __post_init__(self) -> None:
        for name in ("max_sessions", "sessions_per_tenant", "session_cells", "session_spares"):
            self._require(name, getattr(self, name) >= 0, "must be 0 or more")
        for name in ("session_memory_mb", "session_checkpoints"):
            self._require(name, getattr(self, name) >= 1, "must be 1 or more")
        for name in ("session_lease_s", "session_cpu_s"):
            most = getattr(self, name.replace("session", "session_max"))
            self._require(name, 0 < getattr(self, name) <= most, f"must be above 0, at most {most}")
        for name in ("session_max_lease_s", "session_max_cpu_s"):
            fine = 0 < getattr(self, name) < _LONGEST_S
            self._require(name, fine, f"must be above 0 and below {_LONGEST_S:g} (seconds)")
        fine = 0 <= self.session_drain_s < math.inf
        self._require("session_drain_s", fine, "must be 0 or more, and finite")
        fine = not self.replica_name or _REPLICA_NAME.fullmatch(self.replica_name) is not None
        self._require("replica_name", fine, "takes 1 to 80 letters, digits, '.', '_', ':' or '-'")

    @staticmethod
    def _require(name: str, holds: bool, problem: str) -> None:
        if not holds:
            raise ConfigError(f"--{name.replace('_', '-')} {problem}")


@dataclass(frozen=True, slots=True)
class SandboxServerConfig:
    """How the server is reached.

    Attributes:
        port: 0 for any free one.
        port_file: the port is written here when the server is ready.
        tls_cert: certificate chain, PEM; None for no TLS.
        tls_key: its private key, PEM.
        tls_client_ca: clients need a certificate of this authority; None: they need none.
        token: bearer token that clients must send; None for none. Never printed.
        access: further tokens, and each tenant's limits.
        drain_s: how long running calls may take to end after SIGTERM.
        metrics_port: for metrics over HTTP, 0 for any free one; None: none.
    """

    runner: SandboxConfig
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
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
