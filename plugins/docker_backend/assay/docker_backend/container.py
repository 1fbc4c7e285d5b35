"""One container, from its creation to its removal, through the Docker SDK.

A container is made before its program is known: its first process (`container_init.py`) waits for a
job on the container's stdin. When the service dies, even by SIGKILL, Docker closes that stdin, the
first process ends, and the kernel kills the rest; the next service removes the stopped container
(`sweep`).

Covered: no network, read-only root, tmpfs with a size and an inode limit, all capabilities dropped
but the three that the first process needs to become another user and to kill it, no-new-privileges,
a seccomp profile like the jail's filter (`profiles.py`), limits of memory and processes by cgroup,
no log on the host's disk.
Not covered: the kernel itself, which the host and its containers share; `runtime="runsc"` puts
gVisor's kernel in between. Whoever reaches the Docker socket is root on its host: the socket is the
service's and is never mounted into a program's container. A program sees the image's files.
"""

from __future__ import annotations

import datetime as dt
import importlib.resources
import logging
import os
import socket
from dataclasses import dataclass
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import LogConfig, Mount
from requests.exceptions import RequestException

from assay.docker_backend import container_init as init
from assay.docker_backend.profiles import program_profile
from assay.kit.errors import StartupError
from assay.kit.reasons import Reason
from assay.sandbox.backend import MIB, RunLimits, SandboxFault

logger = logging.getLogger(__name__)

LABEL = "assay.sandbox"
DEFAULT_IMAGE = "assay-sandbox"
INIT_BYTES = 32 * MIB  # memory of the first process
INIT_TASKS = 1
# With gVisor the cgroup holds its kernel as well, which dies when it is refused memory or a thread:
# so the first process does the counting, and the cgroup is only the last bound.
GVISOR_BYTES = 256 * MIB
GVISOR_TASKS = 8192
SWEEP_AGE_S = 60.0
_ALWAYS = (
    "pid-namespace",
    "mount-namespace",
    "network-namespace",
    "ipc-namespace",
    "uts-namespace",
    "read-only-root",
    "private-tmpfs",
    "private-proc",
    "own-user",
)
DAEMON_ERRORS = (DockerException, RequestException, OSError)
"""What the SDK raises when the daemon refuses or is gone."""


@dataclass(frozen=True, slots=True)
class DockerConfig:
    """Where containers come from and what they may do.

    Attributes:
        image: the programs' image: the toolchains, and a Python of 3.11 or later named `python`.
        runtime: the daemon's name for an OCI runtime, e.g. "runsc" for gVisor; empty for its own.
        url: the daemon, unix:// or tcp://; empty: DOCKER_HOST, else the default socket.
        python: the interpreter in the image.
        uid: the programs' user and group; another one for each slot, as the kernel counts by user.
        start_timeout_s: how long a container may take to be made and started.
        read_only_paths: folders of the daemon's host that programs see at the same place.
        spare: keep one container of the last shape ready in advance.
    """

    image: str = DEFAULT_IMAGE
    runtime: str = ""
    url: str = ""
    python: str = "python3"
    uid: int = 61000
    start_timeout_s: float = 60.0
    read_only_paths: tuple[str, ...] = ()
    spare: bool = True

    @property
    def level(self) -> str:
        """The isolation level, as results name it."""
        return "gvisor" if self.runtime.startswith("runsc") else "container"


@dataclass(frozen=True, slots=True)
class ContainerShape:
    """The limits that a container is made with; a spare serves runs of its own shape."""

    memory_bytes: int
    disk_bytes: int
    processes: int

    @classmethod
    def of(cls, limits: RunLimits) -> ContainerShape:
        """The shape for a run."""
        return cls(limits.memory_bytes, limits.disk_bytes, limits.processes)


def connect(config: DockerConfig) -> docker.APIClient:
    """A client of the daemon.

    Raises:
        StartupError: the daemon cannot be reached.
    """
    url = config.url or os.environ.get("DOCKER_HOST", "") or "unix:///var/run/docker.sock"
    if not url.startswith(("unix://", "tcp://")) or os.environ.get("DOCKER_TLS_VERIFY"):
        raise StartupError(
            f"the Docker backend speaks to a daemon over unix:// or plain tcp://, not {url!r}: "
            "forward the socket, or run the service beside the daemon"
        )
    try:
        _knock(url)
        api = docker.APIClient(base_url=url, version="auto", timeout=int(config.start_timeout_s))
    except DAEMON_ERRORS as error:
        raise StartupError(
            f"no Docker daemon answers at {url} ({error}): start it, or set DOCKER_HOST"
        ) from error
    api.trust_env = False  # no look at os.environ (proxies) for each request, from several threads
    return api


def _knock(url: str) -> None:
    """Fails at once where there is no socket; the SDK would leave its own open."""
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(url.removeprefix("unix://"))


def check(api: docker.APIClient, config: DockerConfig) -> tuple[str, ...]:
    """The layers that isolate programs, strongest first.

    Raises:
        StartupError: the image or the runtime is not there.
    """
    try:
        info: dict[str, Any] = api.info()
        api.inspect_image(config.image)  # type: ignore[no-untyped-call]
    except ImageNotFound as error:
        raise StartupError(
            f"the Docker image {config.image!r} is not there: pull or build it first"
        ) from error
    except DAEMON_ERRORS as error:
        raise StartupError(f"the Docker daemon does not answer: {error}") from error
    runtimes = sorted(info.get("Runtimes") or {})
    if config.runtime and config.runtime not in runtimes:
        raise StartupError(
            f"the Docker daemon knows no runtime {config.runtime!r} "
            f"(it has {', '.join(runtimes)}): install it "
            "and name it in the daemon's configuration, see docs/operate/sandbox-deployment.md"
        )
    options = " ".join(info.get("SecurityOptions") or [])
    there = {
        "gvisor": config.level == "gvisor",
        "user-namespace": "name=userns" in options,
        **dict.fromkeys(_ALWAYS, True),
        "seccomp": "name=seccomp" in options,
        "apparmor": "name=apparmor" in options,
        "cgroup-memory": bool(info.get("MemoryLimit")),
        "cgroup-pids": bool(info.get("PidsLimit")),
        "no-new-privileges": True,
        "empty-environment": True,
    }
    return tuple(name for name, is_there in there.items() if is_there)


def options(api: docker.APIClient, config: DockerConfig, shape: ContainerShape) -> dict[str, Any]:
    """The arguments of the container's creation, with every layer."""
    tmpfs = f"rw,exec,nosuid,nodev,size={shape.disk_bytes},nr_inodes=16384,mode=0700"
    own = f"{tmpfs},uid={config.uid},gid={config.uid}"
    gvisor = config.level == "gvisor"
    memory_bytes = shape.memory_bytes + INIT_BYTES + (GVISOR_BYTES if gvisor else 0)
    tasks = GVISOR_TASKS if gvisor else shape.processes + INIT_TASKS
    host_config = api.create_host_config(
        network_mode="none",
        read_only=True,
        tmpfs={
            init.FOLDER: own,
            "/tmp": own,  # noqa: S108
            init.LIBRARY_FOLDER: "rw,exec,nosuid,nodev,mode=0755",
        },
        shm_size=shape.disk_bytes,
        ipc_mode="private",
        cap_drop=["ALL"],
        cap_add=["KILL", "SETGID", "SETUID"],
        security_opt=["no-new-privileges", f"seccomp={program_profile()}"],
        mem_limit=memory_bytes,
        memswap_limit=memory_bytes,
        pids_limit=tasks,
        # Unlike a bind, a mount of what is not there is an error, and makes no folder on the host.
        mounts=[Mount(path, path, type="bind", read_only=True) for path in config.read_only_paths],
        log_config=LogConfig(type="none", config={}),
        restart_policy={"Name": "no"},
        runtime=config.runtime or None,
    )
    return {
        "image": config.image,
        "entrypoint": [config.python, "-I", "-S", "-c"],
        "command": [
            importlib.resources.files(init.__package__).joinpath("container_init.py").read_text()
        ],
        "user": "0:0",
        "hostname": "box",
        "working_dir": "/",
        "environment": {"ASSAY_UID": str(config.uid)},
        "labels": {LABEL: config.level},
        "stdin_open": True,
        "tty": False,
        "host_config": host_config,
    }


class ProgramContainer:
    """A started container and the connection to its first process."""

    def __init__(self, api: docker.APIClient, config: DockerConfig, shape: ContainerShape) -> None:
        """Makes and starts it.

        Raises:
            SandboxFault: WORKER_DIED, the daemon refused.
        """
        self._api = api
        self.shape = shape
        self._removed = False
        self.connection: socket.socket | None = None
        try:
            self.id: str = api.create_container(**options(api, config, shape))["Id"]
        except DAEMON_ERRORS as error:
            raise SandboxFault(
                Reason.WORKER_DIED, f"Docker cannot make a container of {config.image!r}: {error}"
            ) from error
        try:
            self._raw = api.attach_socket(
                self.id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
            self.connection = socket.socket(fileno=os.dup(self._raw.fileno()))
            self.connection.setblocking(False)
            api.start(self.id)
        except DAEMON_ERRORS as error:
            self.remove()
            raise SandboxFault(
                Reason.WORKER_DIED, f"Docker cannot start a container of {config.image!r}: {error}"
            ) from error

    def state(self, timeout_s: float) -> dict[str, Any]:
        """Waits for its end; the daemon's state of it, empty where there is none."""
        try:
            self._api.wait(self.id, timeout=max(1, int(timeout_s)))
            state: dict[str, Any] = self._api.inspect_container(self.id)["State"]
        except DAEMON_ERRORS as error:
            logger.warning("no state of container %s: %s", self.id[:12], error)
            return {}
        return state

    def kill(self) -> None:
        """Kills everything in it; no error if it has ended."""
        try:
            self._api.kill(self.id, "SIGKILL")
        except (APIError, NotFound):
            pass  # it is not running
        except DAEMON_ERRORS as error:
            logger.warning("cannot kill container %s: %s", self.id[:12], error)

    def disconnect(self) -> None:
        """Closes the connection, which ends the first process as well."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
            response = getattr(
                self._raw, "_response", None
            )  # the SDK hangs the connection's owner there
            if response is not None:
                response.close()
            self._raw.close()

    def remove(self) -> None:
        """Kills and removes it. May be called twice and from any thread."""
        if self._removed:
            return
        self._removed = True
        self.disconnect()
        try:
            self._api.remove_container(self.id, v=True, force=True)
        except NotFound:
            pass
        except DAEMON_ERRORS as error:
            logger.warning("cannot remove container %s: %s", self.id[:12], error)


def sweep(api: docker.APIClient) -> int:
    """Removes stopped containers of killed services, and returns how many.

    Those of the last minute are left, as another slot may have just used them.
    """
    count = 0
    now_s = dt.datetime.now(dt.UTC).timestamp()
    try:
        for found in api.containers(
            all=True, filters={"label": LABEL, "status": ["exited", "dead", "created"]}
        ):
            age_s = now_s - float(found["Created"])
            if age_s > SWEEP_AGE_S:
                api.remove_container(found["Id"], v=True, force=True)
                count += 1
    except DAEMON_ERRORS as error:
        logger.warning("cannot sweep containers: %s", error)
    return count
